"""This machine -> texts that identify its processor, system and LLVM, without asking LLVM."""

from __future__ import annotations

import os

from glassgrad.base.errors import DeviceError
from glassgrad.devices.cpu.llvm import library_path

CPU_FACTS = "/proc/cpuinfo"
MAX_READ_BYTES = 16 << 10  # more than the entry of one core; the file repeats it for each
VOLATILE_FIELDS = ("cpu MHz", "bogomips", "BogoMIPS")


def machine_facts(path: str = CPU_FACTS) -> tuple[str, ...] | None:
    """Texts that are equal only where LLVM would detect the same host; None if unavailable."""
    try:
        with open(path, "rb") as file:
            lines = file.read(MAX_READ_BYTES).decode(errors="replace").split("\n\n")[0].split("\n")
        system = os.uname()
        library = library_path()
        stat = os.stat(library)
    except (OSError, AttributeError, DeviceError):
        return None
    cpu = [line for line in lines if not line.startswith(VOLATILE_FIELDS)]
    return (
        *cpu,
        system.machine,
        system.release,
        library,
        str(stat.st_size),
        str(stat.st_mtime_ns),
    )
