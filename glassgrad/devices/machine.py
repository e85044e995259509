"""this machine -> Target: vector registers, caches and cores, read from the system."""

from __future__ import annotations

from pathlib import Path

from glassgrad.base.config import THREADS
from glassgrad.base.dtype import DType, dtypes
from glassgrad.devices.native import Host
from glassgrad.devices.pool import available_cores
from glassgrad.ir.stages import Target

CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
QUOTA = Path("/sys/fs/cgroup/cpu.max")
DEFAULT_BYTES = {1: 32 << 10, 2: 512 << 10, 3: 8 << 20}
UNITS = {"K": 10, "M": 20, "G": 30}


def cpu_target(host: Host) -> Target:
    """The facts that the stages read when they work for this CPU."""
    features = set(host.features.split(","))
    vector_bytes, registers = vector_registers(features)
    sizes = cache_bytes(CACHES)
    return Target(
        name="CPU",
        language="llvm",
        arch=host.cpu,
        features=host.features,
        vector_bytes=vector_bytes,
        registers=registers,
        cores=THREADS.value or usable_cores(),
        l1_bytes=sizes[1],
        l2_bytes=sizes[2],
        l3_bytes=sizes[3],
        dtypes=frozenset(native_dtypes(host, features)),
    )


def native_dtypes(host: Host, features: set[str]) -> list[DType]:
    """What loads, stores and converts by itself: half floats only where no library is called."""
    has_half = "+f16c" in features or host.triple.startswith("aarch64")
    narrow = {dtypes.bfloat16, *dtypes.fp8s} | (set() if has_half else {dtypes.float16})
    return [dtype for dtype in dtypes.all if dtype not in narrow]


def vector_registers(features: set[str]) -> tuple[int, int]:
    """(bytes, number) of the widest vector registers."""
    if "+avx512f" in features:
        return 64, 32
    if "+avx" in features:
        return 32, 16
    return (16, 32) if "+neon" in features else (16, 16)


def cache_bytes(folder: Path) -> dict[int, int]:
    """Bytes of the data caches by level, as Linux tells; common sizes where it does not."""
    found = dict(DEFAULT_BYTES)
    for entry in sorted(folder.glob("index*")):
        try:
            level = int((entry / "level").read_text())
            kind = (entry / "type").read_text().strip()
            text = (entry / "size").read_text().strip()
            if kind != "Instruction":
                found[level] = int(text.rstrip("KMG")) << UNITS.get(text[-1:], 0)
        except (OSError, ValueError):
            continue
    return found


def usable_cores() -> int:
    """The cores this process may run on, or fewer if a container has a smaller share of them."""
    cores = len(available_cores())
    try:
        quota, period = QUOTA.read_text().split()
        return max(1, min(cores, -(-int(quota) // int(period))))
    except (OSError, ValueError):
        return cores
