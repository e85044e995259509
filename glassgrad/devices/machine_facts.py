"""this machine -> what tells its processor, system and LLVM from others, without asking LLVM."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

CPU_FACTS = Path("/proc/cpuinfo")
ONE_CORE_BYTES = 16 << 10  # more than the lines of one core; a file of many cores is long
CHANGING = ("cpu MHz", "bogomips", "BogoMIPS")


def machine_facts(path: Path = CPU_FACTS) -> tuple[str, ...] | None:
    """Texts that are equal only where LLVM would say the same; None where there are none."""
    try:
        with path.open("rb") as file:
            lines = file.read(ONE_CORE_BYTES).decode(errors="replace").split("\n\n")[0].split("\n")
        system = os.uname()
        compiler = find_spec("llvmlite")
        library = Path((compiler and compiler.origin) or "").parent / "binding" / "libllvmlite.so"
        stat = library.stat()
    except (OSError, AttributeError, ValueError):
        return None
    cpu = [line for line in lines if not line.startswith(CHANGING)]
    return (
        *cpu,
        system.machine,
        system.release,
        str(library),
        str(stat.st_size),
        str(stat.st_mtime_ns),
    )
