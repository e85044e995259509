"""A packed capture -> a shared object and its C header, by this machine's C compiler."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from glassgrad.base.errors import CompileError, DeviceError
from glassgrad.devices.clang.device import find_compiler
from glassgrad.engine.export.c_text import CText
from glassgrad.engine.export.serialize import Library, compile_pool

FLAGS = ("-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-w")


def write_library(
    path: Path, text: CText, library: Library, storages: Mapping[str, memoryview]
) -> None:
    """Write the .so and .h files; `storages` are the contents of the function's state."""
    if sys.platform != "linux":
        raise DeviceError(
            "shared objects are exported on Linux only",
            hint="export to a name that does not end in .so, and use glassgrad.load",
        )
    compiler = find_compiler(os.environ.get("PATH"), "exporting a shared object")
    with tempfile.TemporaryDirectory(prefix="glassgrad-", dir=path.parent) as folder:
        inside = Path(folder)
        (inside / "kernels.o").write_bytes(library.code("hidden"))
        (inside / "pool.o").write_bytes(compile_pool(entry="", visibility="hidden"))
        for name, contents in storages.items():
            (inside / f"{name}.bin").write_bytes(contents)
        header = inside / f"{text.name}.h"
        header.write_text(text.header())
        (inside / "call.c").write_text(text.source({name: f"{name}.bin" for name in storages}))
        objects = ["kernels.o"] if library.executables else []
        command = [
            compiler.path,
            *FLAGS,
            "-o",
            "library.so",
            "call.c",
            *objects,
            "pool.o",
            "-lpthread",
        ]
        done = subprocess.run(
            [*command, "-lm"], cwd=inside, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise CompileError(
                f"{compiler.path} failed to compile an exported function:\n{done.stderr}"
            )
        header.replace(path.with_suffix(".h"))
        (inside / "library.so").replace(path)
