"""This machine -> Target: vector registers, caches and cores, read from the system."""

from __future__ import annotations

import os

from glassgrad.base.config import THREADS
from glassgrad.base.dtype import DType, dtypes
from glassgrad.devices.cpu.llvm import Host
from glassgrad.devices.cpu.pool import available_cores
from glassgrad.ir.stages import Dot, Target

CACHES = "/sys/devices/system/cpu/cpu0/cache"
QUOTA = "/sys/fs/cgroup/cpu.max"
DEFAULT_BYTES = {1: 32 << 10, 2: 512 << 10, 3: 8 << 20}  # by cache level, if none are reported
LINE_FACTS = ("coherency_line_size", "ways_of_associativity")
DEFAULT_LINES = 64, 8  # bytes, ways
UNITS = {"K": 10, "M": 20, "G": 30}

SIGNED, UNSIGNED, SHORT = dtypes.int8, dtypes.uint8, dtypes.int16
PACKED = dtypes.int32  # LLVM before 21 wants bytes packed into ints; later ones take both
# (required feature, instruction), by bytes of a vector register
X86_DOTS: dict[int, tuple[tuple[str, Dot], ...]] = {
    64: (
        ("+avx512vnni", Dot(UNSIGNED, SIGNED, "x86.avx512.vpdpbusd.512", PACKED)),
        ("+avx512bw", Dot(SHORT, SHORT, "x86.avx512.pmaddw.d.512", accumulates=False)),
    ),
    32: (
        ("+avxvnniint8", Dot(SIGNED, SIGNED, "x86.avx2.vpdpbssd.256", PACKED)),
        ("+avxvnniint8", Dot(UNSIGNED, UNSIGNED, "x86.avx2.vpdpbuud.256", PACKED)),
        ("+avxvnni", Dot(UNSIGNED, SIGNED, "x86.avx512.vpdpbusd.256", PACKED)),
        ("+avx2", Dot(SHORT, SHORT, "x86.avx2.pmadd.wd", accumulates=False)),
    ),
    16: (("+sse2", Dot(SHORT, SHORT, "x86.sse2.pmadd.wd", accumulates=False)),),
}
NEON_DOTS = (
    ("+dotprod", Dot(SIGNED, SIGNED, "aarch64.neon.sdot.v4i32.v16i8")),
    ("+dotprod", Dot(UNSIGNED, UNSIGNED, "aarch64.neon.udot.v4i32.v16i8")),
    ("+i8mm", Dot(UNSIGNED, SIGNED, "aarch64.neon.usdot.v4i32.v16i8")),
)


def cpu_target(host: Host) -> Target:
    """This CPU as a Target."""
    features = set(host.features.split(","))
    vector_bytes, registers = vector_registers(features)
    sizes = cache_bytes(CACHES)
    line_bytes, ways = l1_lines(CACHES)
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
        line_bytes=line_bytes,
        l1_ways=ways,
        dtypes=frozenset(native_dtypes(host, features)),
        dots=dots_of(host, features, vector_bytes),
    )


def native_dtypes(host: Host, features: set[str]) -> list[DType]:
    """The dtypes with native loads, stores and casts; float16 only where casts need no library
    call.
    """
    has_half = "+f16c" in features or host.triple.startswith("aarch64")
    emulated = {dtypes.bfloat16, *dtypes.fp8s} | (set() if has_half else {dtypes.float16})
    return [dtype for dtype in dtypes.all if dtype not in emulated]


def dots_of(host: Host, features: set[str], vector_bytes: int) -> tuple[Dot, ...]:
    """The dot-product instructions for the widest vectors."""
    table = NEON_DOTS if host.triple.startswith("aarch64") else X86_DOTS.get(vector_bytes, ())
    is_x86 = host.triple.startswith("x86_64")
    available = {*features, "+sse2"} if is_x86 else features  # all x86-64 processors have it
    return tuple([dot for needed, dot in table if needed in available])


def vector_registers(features: set[str]) -> tuple[int, int]:
    """(bytes, count) of the widest vector registers."""
    if "+avx512f" in features:
        return 64, 32
    if "+avx" in features:
        return 32, 16
    return (16, 32) if "+neon" in features else (16, 16)


def cache_bytes(folder: str) -> dict[int, int]:
    """Bytes of the data caches by level, as Linux reports them; else common sizes."""
    found = dict(DEFAULT_BYTES)
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    for name in [name for name in names if name.startswith("index")]:
        try:
            level = int(_read(folder, name, "level"))
            kind = _read(folder, name, "type")
            text = _read(folder, name, "size")
            if kind != "Instruction":
                found[level] = int(text.rstrip("KMG")) << UNITS.get(text[-1:], 0)
        except (OSError, ValueError):
            continue
    return found


def l1_lines(folder: str) -> tuple[int, int]:
    """(bytes of an L1 cache line, ways of L1)."""
    try:
        found = [int(_read(folder, "index0", name)) for name in LINE_FACTS]
    except (OSError, ValueError):
        return DEFAULT_LINES
    return (found[0], found[1]) if all(found) else DEFAULT_LINES


def _read(*path: str) -> str:
    with open(os.path.join(*path)) as file:
        return file.read().strip()


def usable_cores() -> int:
    """The cores available to this process, or fewer if a container's quota is smaller."""
    cores = len(available_cores())
    try:
        quota, period = _read(QUOTA).split()
        return max(1, min(cores, -(-int(quota) // int(period))))
    except (OSError, ValueError):
        return cores
