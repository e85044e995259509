"""LLVM IR -> machine code in this process: llvmlite parses and generates; no other compiler.

llvmlite is large, so it is imported when the first thing is compiled: a process that finds all its
code on disk loads it by itself and never needs LLVM.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import count
from threading import RLock
from typing import Any, NamedTuple

from glassgrad.base.errors import CompileError, DeviceError
from glassgrad.devices.elf import ObjectError
from glassgrad.devices.loader import can_load, load
from glassgrad.devices.machine_facts import machine_facts
from glassgrad.devices.objects import object_key, read_object, write_object

CODEGEN_LEVEL = 2
# Finding pointers that walk through memory takes LLVM a third of its time, and the text says which
# do (render/llvm_pointers.py).
LEFT_OUT = "-disable-lsr"
# LLVM's code generator may be used by one thread at a time.
COMPILING = RLock()
_numbers = count()
if hasattr(os, "register_at_fork"):  # a child must not inherit a compiler at work
    os.register_at_fork(
        before=COMPILING.acquire,
        after_in_parent=COMPILING.release,
        after_in_child=COMPILING.release,
    )


class Host(NamedTuple):
    """The processor as LLVM calls it, and the version of LLVM."""

    triple: str
    cpu: str
    features: str
    version: str


class Linked(NamedTuple):
    """Machine code in memory: addresses by symbol. The code is unloaded with the last reference."""

    library: Any
    symbols: tuple[str, ...]
    code: bytes
    was_cached: bool

    def address(self, symbol: str) -> int:
        return int(self.library[symbol])


@cache
def llvm() -> Any:
    """llvmlite's binding, ready to compile for this machine."""
    try:
        import llvmlite.binding as binding
    except ImportError as error:
        raise DeviceError(
            "the CPU device needs llvmlite", hint="pip install llvmlite, or use DEV=PYTHON"
        ) from error
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


@cache
def host() -> Host:
    """This machine. LLVM is asked once, and again only if machine or LLVM are others."""
    known = _stored_host()
    if known is not None:
        return known
    made = _asked_host()
    if (key := _host_key()) is not None:
        write_object(key, "\n".join(made).encode())
    return made


def is_host_known() -> bool:
    """Whether LLVM need not be asked what machine this is."""
    return _stored_host() is not None


def _host_key() -> str | None:
    facts = machine_facts()
    return None if facts is None else object_key("host 1", *facts)


def _stored_host() -> Host | None:
    key = _host_key()
    stored = None if key is None else read_object(key)
    fields = [] if stored is None else stored.decode(errors="replace").split("\n")
    return Host(*fields) if len(fields) == len(Host._fields) else None


def _asked_host() -> Host:
    binding = llvm()
    version = ".".join(map(str, binding.llvm_version_info))
    features = binding.get_host_cpu_features().flatten()
    return Host(binding.get_process_triple(), binding.get_host_cpu_name(), features, version)


@cache
def _machine(level: int = CODEGEN_LEVEL) -> Any:
    """Position-independent code of the small model: a constant is an operand, not two loads."""
    target = llvm().Target.from_triple(host().triple)
    return target.create_target_machine(
        cpu=host().cpu, features=host().features, opt=level, reloc="pic", codemodel="small"
    )


@cache
def _linker() -> Any:
    # JITLink keeps the sections of an object together, which the small code model relies on.
    return llvm().create_lljit_compiler(use_jit_link=True)


@contextmanager
def _compiling() -> Iterator[None]:
    """LLVM as we use it. Its options are the whole process's: others find them as they were."""
    with COMPILING:
        llvm().set_option("glassgrad", LEFT_OUT)
        try:
            yield
        finally:
            llvm().set_option("glassgrad", f"{LEFT_OUT}=false")


def compile_text(text: str, level: int = CODEGEN_LEVEL) -> bytes:
    """LLVM IR as an object file for this machine."""
    with _compiling():
        try:
            module = llvm().parse_assembly(text)
        except RuntimeError as error:
            raise CompileError(f"LLVM refused a kernel: {error}") from error
        return bytes(_machine(level).emit_object(module))


def compile_together(texts: Sequence[str], level: int = CODEGEN_LEVEL) -> bytes:
    """Several texts as one object file; no two may define the same name."""
    with _compiling():
        first, *others = [llvm().parse_assembly(text) for text in texts]
        for other in others:
            first.link_in(other)
        return bytes(_machine(level).emit_object(first))


def assembly(text: str) -> str:
    """LLVM IR as assembly, for people."""
    with _compiling():
        return str(_machine().emit_assembly(llvm().parse_assembly(text)))


def link(code: bytes, symbols: tuple[str, ...]) -> Any:
    """An object file loaded into this process: by ourselves if we can, else by LLVM."""
    if can_load():
        with suppress(ObjectError):
            return load(code, symbols)
    with COMPILING:
        builder = llvm().JITLibraryBuilder().add_object_img(code).add_current_process()
        for symbol in symbols:
            builder.export_symbol(symbol)
        return builder.link(_linker(), f"glassgrad{next(_numbers)}")


def build(text: str, symbols: tuple[str, ...], level: int = CODEGEN_LEVEL) -> Linked:
    """LLVM IR, or what it was compiled to before, loaded into this process."""
    key = object_key(text, *host(), str(level), LEFT_OUT)
    code = read_object(key)
    if code is not None:
        try:
            return Linked(link(code, symbols), symbols, code, was_cached=True)
        except RuntimeError:  # whole, yet not what this LLVM can load: make it anew
            pass
    code = compile_text(text, level)
    write_object(key, code)
    return Linked(link(code, symbols), symbols, code, was_cached=False)
