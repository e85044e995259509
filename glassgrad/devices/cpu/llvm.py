"""LLVM IR -> object code or assembly: LLVM's own functions, called from any number of threads.

They are in llvmlite's library. Its Python part takes 100 ms to import and lets one thread at a time
into LLVM; all that LLVM asks for is that threads share neither a context nor a target machine.
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

# Finding pointers that walk through memory takes LLVM a third of its time, and the text says which
# do (render/llvm_pointers.py).
LEFT_OUT = "-disable-lsr"
LIBRARIES = {"darwin": "libllvmlite.dylib", "win32": "llvmlite.dll"}

TEXT = POINTER(c_char_p)  # where a text is put, which is ours to dispose of
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
# Who calls these lets other threads run Python; to get back in afterwards takes up to 5 ms.
LONG = frozenset(("ParseAssembly", "LinkModules", "TargetMachineEmitToMemory"))


class Host(NamedTuple):
    """The processor as LLVM calls it, and the version of LLVM."""

    triple: str
    cpu: str
    features: str
    version: str


def library_path() -> str:
    """Where llvmlite keeps LLVM. llvmlite itself is not imported."""
    package = find_spec("llvmlite")
    if package is None or package.origin is None:
        raise DeviceError(
            "the CPU device needs llvmlite", hint="pip install llvmlite, or use DEV=PYTHON"
        )
    name = LIBRARIES.get(sys.platform, "libllvmlite.so")
    return os.path.join(os.path.dirname(package.origin), "binding", name)


@cache
def llvm() -> Any:
    """The functions of LLVM that we call, ready to compile for this machine."""
    path = library_path()
    try:
        library, brief = ctypes.CDLL(path), ctypes.PyDLL(path)
        found = SimpleNamespace()
        for name, (result, *arguments) in SIGNATURES.items():
            function = (library if name in LONG else brief)[f"LLVMPY_{name}"]
            function.restype, function.argtypes = result, arguments
            setattr(found, name, function)
    except (OSError, AttributeError) as error:
        raise DeviceError(
            f"llvmlite's library cannot be used: {error}", hint="pip install --upgrade llvmlite"
        ) from error
    found.InitializeNativeTarget()
    found.InitializeNativeAsmPrinter()
    return found


def asked_host() -> Host:
    """This machine, as LLVM sees it."""
    number, version = llvm().GetVersionInfo(), ""
    while number:
        number, part = divmod(number, 256)
        version = f"{part}.{version}" if version else str(part)
    features = sorted(filter(None, _told(llvm().GetHostCPUFeatures).split(",")), key=_feature)
    triple, cpu = _told(llvm().GetProcessTriple), _told(llvm().GetHostCPUName)
    return Host(triple, cpu, ",".join(features), version)


def _feature(flag: str) -> str:
    return flag[1:]  # behind + or -


def _told(ask: Any) -> str:
    text = c_char_p()
    ask(byref(text))
    return _taken(text)


def _taken(text: c_char_p) -> str:
    found = (text.value or b"").decode(errors="replace")
    llvm().DisposeString(text)
    return found


# ---------------------------------------------------------------------- who is at work


class Workshop:
    """Threads at work in LLVM: any number, or none while the process forks.

    LLVM's options are the whole process's. Ours are set while somebody works here, so that others
    find them as they were.
    """

    def __init__(self) -> None:
        self.free = Condition()
        self.workers = 0

    def __enter__(self) -> None:
        with self.free:
            if not self.workers:
                llvm().SetCommandLine(b"glassgrad", LEFT_OUT.encode())
            self.workers += 1

    def __exit__(self, *_: object) -> None:
        with self.free:
            self.workers -= 1
            if not self.workers:
                llvm().SetCommandLine(b"glassgrad", f"{LEFT_OUT}=false".encode())
                self.free.notify_all()

    def close(self) -> None:
        """Wait until nobody works, and let nobody in."""
        self.free.acquire()
        while self.workers:
            self.free.wait()

    def open(self) -> None:
        self.free.release()


WORKSHOP = Workshop()
if hasattr(os, "register_at_fork"):  # a child must not inherit a compiler at work
    os.register_at_fork(
        before=WORKSHOP.close, after_in_parent=WORKSHOP.open, after_in_child=WORKSHOP.open
    )

MACHINES: dict[tuple[Host, int], list[int]] = {}  # target machines that nobody uses just now


@contextmanager
def _machine(host: Host, level: int) -> Iterator[int]:
    """Position-independent code of the small model: a constant is an operand, not two loads."""
    idle = MACHINES.setdefault((host, level), [])
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
        raise CompileError(f"LLVM does not know this machine: {_taken(error)}")
    machine: int = llvm().CreateTargetMachine(
        target, triple, cpu, features, level, b"pic", b"small", False, False, b""
    )
    return machine


# ---------------------------------------------------------------------- what it is for


def emit(texts: Sequence[str], host: Host, level: int, is_object: bool = True) -> bytes:
    """Texts, of which no two define the same name, as one object file; or as assembly."""
    library = llvm()
    with WORKSHOP, _machine(host, level) as machine:
        context = library.ContextCreate(True)  # pointers have no types
        module = None
        try:
            for text in texts:
                module = _joined(module, _parsed(text, context))
            return _emitted(module, machine, is_object)
        finally:
            if module is not None:
                library.DisposeModule(module)
            library.ContextDispose(context)


def _parsed(text: str, context: int) -> int:
    error = c_char_p()
    module: int | None = llvm().ParseAssembly(context, text.encode(), byref(error))
    message = _taken(error)
    if module is None or message:
        raise CompileError(f"LLVM refused a kernel: {message}")
    return module


def _joined(module: int | None, other: int) -> int:
    error = c_char_p()
    if module is None:
        return other
    if llvm().LinkModules(module, other, byref(error)):
        raise CompileError(f"LLVM cannot join kernels: {_taken(error)}")
    return module


def _emitted(module: int | None, machine: int, is_object: bool) -> bytes:
    error = c_char_p()
    buffer = llvm().TargetMachineEmitToMemory(machine, module, is_object, byref(error))
    if not buffer:
        raise CompileError(f"LLVM cannot compile a kernel: {_taken(error)}")
    code = ctypes.string_at(llvm().GetBufferStart(buffer), llvm().GetBufferSize(buffer))
    llvm().DisposeMemoryBuffer(buffer)
    return code
