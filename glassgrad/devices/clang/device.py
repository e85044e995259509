"""C source -> machine code by this machine's C compiler; runs on the CPU device's thread pool."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple
from weakref import finalize

from glassgrad.base.dtype import dtypes
from glassgrad.base.errors import CompileError, DeviceError
from glassgrad.base.events import LISTENERS, KernelCompiled, announce
from glassgrad.base.fast_dataclasses import replace, unique
from glassgrad.devices.cpu.break_even import core_work_ns
from glassgrad.devices.cpu.machine import cpu_target
from glassgrad.devices.cpu.native import host
from glassgrad.devices.cpu.object_cache import object_key, read_object, write_object
from glassgrad.devices.cpu.pool import Pool, Table
from glassgrad.devices.protocol import Call
from glassgrad.ir.stages import Source, Target
from glassgrad.memory.allocator import Allocator, allocator_for

COMPILERS = ("clang", "gcc", "cc")
FLAGS = (
    *("-O2", "-march=native", "-shared", "-fPIC"),
    # MULACC says where to fuse; ints wrap; scratch is untyped.
    *("-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing", "-fno-math-errno"),
    # No warnings about vectors wider than the machine's registers.
    *("-w", "-x", "c", "-"),
)


class Compiler(NamedTuple):
    """A C compiler: its path, and its version text."""

    path: str
    version: str


@cache
def find_compiler(search: str | None, who: str = "device CLANG") -> Compiler:
    """The first C compiler on the search path."""
    for name in COMPILERS:
        if path := shutil.which(name, path=search):
            found = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
            return Compiler(path, found.stdout)
    raise DeviceError(
        f"{who} needs a C compiler, and there is no {', '.join(COMPILERS)} on the PATH",
        hint="install clang or gcc (apt install clang, or xcode-select --install), or use DEV=CPU",
    )


def clang_target() -> Target:
    """This CPU as a target for C, where low-precision floats are ints: not every compiler has
    them.
    """
    facts = cpu_target(host())
    low_precision = {dtypes.float16, dtypes.bfloat16, *dtypes.fp8s}
    return replace(facts, name="CLANG", language="c", dtypes=facts.dtypes - low_precision)


@unique
class CompiledC:
    """A compiled kernel. Its code stays loaded as long as this object lives."""

    source: Source
    address: int
    library: Any
    pool: Pool

    def __call__(self, pointers: tuple[int, ...], values: tuple[int, ...] = ()) -> None:
        Table(self.pool, (Call(self, pointers, values),)).run()


class ClangDevice:
    """This machine's processor, through clang or gcc."""

    def __init__(self, name: str = "CLANG") -> None:
        self.name = name
        self.compiler = find_compiler(os.environ.get("PATH"))
        facts = clang_target()
        self.pool = Pool(facts.cores)
        self.target = replace(facts, core_work_ns=core_work_ns(self.pool))
        self.allocator: Allocator = allocator_for(name)

    def compile(self, source: Source) -> CompiledC:
        start = perf_counter()
        key = object_key(source.text, *self.compiler, *FLAGS, *host())
        code = read_object(key)
        was_cached = code is not None
        if code is None:
            code = compile_text(self.compiler.path, source.text)
            write_object(key, code)
        library = load_library(code)
        if LISTENERS:
            seconds = perf_counter() - start
            announce(KernelCompiled(source.name, self.name, source, seconds, cached=was_cached))
        function = ctypes.cast(library[source.name], ctypes.c_void_p)
        return CompiledC(source, function.value or 0, library, self.pool)

    def prepare(self, calls: Sequence[Call]) -> Table:
        return Table(self.pool, calls)

    def run(self, calls: Sequence[Call]) -> None:
        Table(self.pool, calls).run()

    def synchronize(self) -> None:
        """Nothing to do: calls return when their work is done."""


def compile_text(compiler: str, text: str) -> bytes:
    """C -> the bytes of a shared library."""
    with tempfile.TemporaryDirectory(prefix="glassgrad-") as folder:
        output = Path(folder) / "kernel.so"
        command = [compiler, *FLAGS, "-o", str(output), "-lm"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CompileError(
                f"{Path(compiler).name} failed to compile a kernel:\n{done.stderr}\n{text}"
            )
        return output.read_bytes()


def load_library(code: bytes) -> Any:
    """A shared library in this process; unloaded with its last reference."""
    with tempfile.TemporaryDirectory(prefix="glassgrad-") as folder:
        path = Path(folder) / "kernel.so"
        path.write_bytes(code)
        try:
            library = ctypes.CDLL(str(path))
        except OSError as error:
            raise CompileError(f"a compiled kernel cannot be loaded: {error}") from error
    finalize(library, _unload, library._handle).atexit = False
    return library


def _unload(handle: int) -> None:
    ctypes.CDLL(None).dlclose(ctypes.c_void_p(handle))
