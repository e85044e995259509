"""LLVM IR -> object code or assembly: calls LLVM's C functions from any number of threads.

They are in llvmlite's library. llvmlite's Python part takes 100 ms to import and serialises all
calls; LLVM only requires that threads share neither a context nor a target machine.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import POINTER, byref, c_bool, c_char_p, c_int, c_size_t, c_uint, c_void_p
from functools import cache
from importlib.util import find_spec
from threading import Condition
from types import SimpleNamespace
from typing import Any, NamedTuple

from glassgrad.base.errors import CompileError, DeviceError

# Loop strength reduction takes a third of LLVM's time, and the text already has pointers that
# advance (render/llvm_pointers.py).
DISABLED_PASS = "-disable-lsr"
LIBRARIES = {"darwin": "libllvmlite.dylib", "win32": "llvmlite.dll"}

TEXT = POINTER(c_char_p)  # an output string that the caller frees
SIGNATURES: dict[str, tuple[Any, ...]] = {  # the result, then the arguments
    "GetVersionInfo": (c_uint,),
    "InitializeNativeTarget": (None,),
    "InitializeNativeAsmPrinter": (None,),
    "GetProcessTriple": (None, TEXT),
    "GetHostCPUName": (None, TEXT),
    "GetHostCPUFeatures": (c_int, TEXT),
    "DisposeString": (None, c_char_p),
    "SetCommandLine": (None, c_char_p, c_char_p),
    "GetTargetFromTriple": (c_void_p, c_char_p, TEXT),
    "CreateTargetMachine": (
        c_void_p, c_void_p, c_char_p, c_char_p, c_char_p, c_int, c_char_p, c_char_p, c_int, c_int,
        c_char_p,
    ),
    "ContextCreate": (c_void_p, c_bool),
    "ContextDispose": (None, c_void_p),
    "ParseAssembly": (c_void_p, c_void_p, c_char_p, TEXT),
    "LinkModules": (c_int, c_void_p, c_void_p, TEXT),
    "DisposeModule": (None, c_void_p),
    "TargetMachineEmitToMemory": (c_void_p, c_void_p, c_void_p, c_int, TEXT),
    "GetBufferStart": (c_void_p, c_void_p),
    "GetBufferSize": (c_size_t, c_void_p),
    "DisposeMemoryBuffer": (None, c_void_p),
}  # fmt: skip
# Calls that release the GIL; getting it back takes up to 5 ms, so short calls keep it.
RELEASES_GIL = frozenset(("ParseAssembly", "LinkModules", "TargetMachineEmitToMemory"))


class Host(NamedTuple):
    """The processor in LLVM's terms, and the version of LLVM."""

    triple: str
    cpu: str
    features: str
    version: str


def library_path() -> str:
    """The path of llvmlite's LLVM library. llvmlite itself is not imported."""
    package = find_spec("llvmlite")
    if package is None or package.origin is None:
        raise DeviceError(
            "the CPU device needs llvmlite", hint="pip install llvmlite, or use DEV=PYTHON"
        )
    name = LIBRARIES.get(sys.platform, "libllvmlite.so")
    return os.path.join(os.path.dirname(package.origin), "binding", name)


@cache
def llvm() -> Any:
    """The LLVM functions in SIGNATURES, initialized for this machine."""
    path = library_path()
    try:
        library, brief = ctypes.CDLL(path), ctypes.PyDLL(path)
        found = SimpleNamespace()
        for name, (result, *arguments) in SIGNATURES.items():
            function = (library if name in RELEASES_GIL else brief)[f"LLVMPY_{name}"]
            function.restype, function.argtypes = result, arguments
            setattr(found, name, function)
    except (OSError, AttributeError) as error:
        raise DeviceError(
            f"llvmlite's library cannot be used: {error}", hint="pip install --upgrade llvmlite"
        ) from error
    found.InitializeNativeTarget()
    found.InitializeNativeAsmPrinter()
    return found


def detect_host() -> Host:
    """This machine, as detected by LLVM."""
    number, version = llvm().GetVersionInfo(), ""
    while number:
        number, part = divmod(number, 256)
        version = f"{part}.{version}" if version else str(part)
    features = sorted(filter(None, _read_text(llvm().GetHostCPUFeatures).split(",")), key=_feature)
    triple, cpu = _read_text(llvm().GetProcessTriple), _read_text(llvm().GetHostCPUName)
    return Host(triple, cpu, ",".join(features), version)


def _feature(flag: str) -> str:
    return flag[1:]  # without + or -


def _read_text(ask: Any) -> str:
    text = c_char_p()
    ask(byref(text))
    return _take_text(text)


def _take_text(text: c_char_p) -> str:
    found = (text.value or b"").decode(errors="replace")
    llvm().DisposeString(text)
    return found


# ---------------------------------------------------------------------- threads in LLVM


class LLVMGate:
    """Counts the threads in LLVM, and lets none in while the process forks.

    LLVM's options are global to the process. Ours are set only while some thread is inside, so that
    other users of LLVM keep their own.
    """

    def __init__(self) -> None:
        self.free = Condition()
        self.workers = 0

    def __enter__(self) -> None:
        with self.free:
            if not self.workers:
                llvm().SetCommandLine(b"glassgrad", DISABLED_PASS.encode())
            self.workers += 1

    def __exit__(self, *_: object) -> None:
        with self.free:
            self.workers -= 1
            if not self.workers:
                llvm().SetCommandLine(b"glassgrad", f"{DISABLED_PASS}=false".encode())
                self.free.notify_all()

    def close(self) -> None:
        """Wait until no thread is inside, and let none in."""
        self.free.acquire()
        while self.workers:
            self.free.wait()

    def open(self) -> None:
        self.free.release()


LLVM_GATE = LLVMGate()
if hasattr(os, "register_at_fork"):  # a child must not inherit LLVM in the middle of a call
    os.register_at_fork(
        before=LLVM_GATE.close, after_in_parent=LLVM_GATE.open, after_in_child=LLVM_GATE.open
    )

IDLE_MACHINES: dict[tuple[Host, int], list[int]] = {}  # idle target machines, for reuse


@contextmanager
def _machine(host: Host, level: int) -> Iterator[int]:
    """A target machine; position-independent code of the small model makes a constant one
    operand.
    """
    idle = IDLE_MACHINES.setdefault((host, level), [])
    try:
        machine = idle.pop()
    except IndexError:
        machine = _new_machine(host, level)
    try:
        yield machine
    finally:
        idle.append(machine)


def _new_machine(host: Host, level: int) -> int:
    error = c_char_p()
    triple, cpu, features = (text.encode() for text in host[:3])
    target = llvm().GetTargetFromTriple(triple, byref(error))
    if not target:
        raise CompileError(f"LLVM does not know this machine: {_take_text(error)}")
    machine: int = llvm().CreateTargetMachine(
        target, triple, cpu, features, level, b"pic", b"small", False, False, b""
    )
    return machine


# ---------------------------------------------------------------------- compiling


def emit(texts: Sequence[str], host: Host, level: int, is_object: bool = True) -> bytes:
    """Modules with distinct symbols, as one object file or as assembly."""
    library = llvm()
    with LLVM_GATE, _machine(host, level) as machine:
        context = library.ContextCreate(True)  # pointers have no types
        module = None
        try:
            for text in texts:
                module = _link_modules(module, _parse(text, context))
            return _emit(module, machine, is_object)
        finally:
            if module is not None:
                library.DisposeModule(module)
            library.ContextDispose(context)


def _parse(text: str, context: int) -> int:
    error = c_char_p()
    module: int | None = llvm().ParseAssembly(context, text.encode(), byref(error))
    message = _take_text(error)
    if module is None or message:
        raise CompileError(f"LLVM cannot parse a kernel: {message}")
    return module


def _link_modules(module: int | None, other: int) -> int:
    error = c_char_p()
    if module is None:
        return other
    if llvm().LinkModules(module, other, byref(error)):
        raise CompileError(f"LLVM cannot link kernels: {_take_text(error)}")
    return module


def _emit(module: int | None, machine: int, is_object: bool) -> bytes:
    error = c_char_p()
    buffer = llvm().TargetMachineEmitToMemory(machine, module, is_object, byref(error))
    if not buffer:
        raise CompileError(f"LLVM cannot compile a kernel: {_take_text(error)}")
    code = ctypes.string_at(llvm().GetBufferStart(buffer), llvm().GetBufferSize(buffer))
    llvm().DisposeMemoryBuffer(buffer)
    return code
