"""this machine -> what tells its processor, system and LLVM from others, without asking LLVM."""

from __future__ import annotations

import os

from glassgrad.base.errors import DeviceError
from glassgrad.devices.cpu.llvm import library_path

CPU_FACTS = "/proc/cpuinfo"
ONE_CORE_BYTES = 16 << 10  # more than the lines of one core; a file of many cores is long
CHANGING = ("cpu MHz", "bogomips", "BogoMIPS")


def machine_facts(path: str = CPU_FACTS) -> tuple[str, ...] | None:
    """Texts that are equal only where LLVM would say the same; None where there are none."""
    try:
        with open(path, "rb") as file:
            lines = file.read(ONE_CORE_BYTES).decode(errors="replace").split("\n\n")[0].split("\n")
        system = os.uname()
        library = library_path()
        stat = os.stat(library)
    except (OSError, AttributeError, DeviceError):
        return None
    cpu = [line for line in lines if not line.startswith(CHANGING)]
    return (
        *cpu,
        system.machine,
        system.release,
        library,
        str(stat.st_size),
        str(stat.st_mtime_ns),
    )
