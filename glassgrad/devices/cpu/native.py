"""LLVM IR -> machine code in this process: compiled by LLVM or read from disk, then loaded.

LLVM is large, so it is loaded at the first compilation: a process that finds all its code on disk
never loads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from itertools import count
from typing import Any, NamedTuple

from glassgrad.devices.cpu.elf import ObjectError
from glassgrad.devices.cpu.llvm import DISABLED_PASS, LLVM_GATE, Host, detect_host, emit
from glassgrad.devices.cpu.loader import can_load, load
from glassgrad.devices.cpu.machine_facts import machine_facts
from glassgrad.devices.cpu.object_cache import object_key, read_object, write_object

CODEGEN_LEVEL = 2
_numbers = count()


class LinkedCode(NamedTuple):
    """Machine code in memory: addresses by symbol. Unloaded with the last reference."""

    library: Any
    symbols: tuple[str, ...]
    code: bytes
    was_cached: bool

    def address(self, symbol: str) -> int:
        return int(self.library[symbol])


@cache
def host() -> Host:
    """This machine as LLVM detects it; stored on disk until machine or LLVM change."""
    stored = _stored_host()
    if stored is not None:
        return stored
    detected = detect_host()
    if (key := _host_key()) is not None:
        write_object(key, "\n".join(detected).encode())
    return detected


def is_host_cached() -> bool:
    """True if the host is known without loading LLVM."""
    return _stored_host() is not None


def _host_key() -> str | None:
    facts = machine_facts()
    return None if facts is None else object_key("host 1", *facts)


def _stored_host() -> Host | None:
    key = _host_key()
    stored = None if key is None else read_object(key)
    fields = [] if stored is None else stored.decode(errors="replace").split("\n")
    return Host(*fields) if len(fields) == len(Host._fields) else None


def compile_text(text: str, level: int = CODEGEN_LEVEL) -> bytes:
    """LLVM IR as an object file for this machine."""
    return emit((text,), host(), level)


def compile_together(texts: Sequence[str], level: int = CODEGEN_LEVEL) -> bytes:
    """Several modules as one object file; their symbols must be distinct."""
    return emit(texts, host(), level)


def assembly(text: str) -> str:
    """LLVM IR as assembly text."""
    return emit((text,), host(), CODEGEN_LEVEL, is_object=False).decode()


def link(code: bytes, symbols: tuple[str, ...]) -> Any:
    """An object file loaded into this process: by our loader if possible, else by LLVM."""
    if can_load():
        with suppress(ObjectError):
            return load(code, symbols)
    with LLVM_GATE:
        return _linked_by_llvm(code, symbols)


def _linked_by_llvm(code: bytes, symbols: tuple[str, ...]) -> Any:
    import llvmlite.binding as binding

    builder = binding.JITLibraryBuilder().add_object_img(code).add_current_process()
    for symbol in symbols:
        builder.export_symbol(symbol)
    return builder.link(_linker(), f"glassgrad{next(_numbers)}")


@cache
def _linker() -> Any:
    """JITLink keeps the sections of an object together, as the small code model requires."""
    import llvmlite.binding as binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.create_lljit_compiler(use_jit_link=True)


def load_text(text: str, symbols: tuple[str, ...], level: int = CODEGEN_LEVEL) -> LinkedCode:
    """LLVM IR, or its stored object code, loaded into this process."""
    key = object_key(text, *host(), str(level), DISABLED_PASS)
    code = read_object(key)
    if code is not None:
        try:
            return LinkedCode(link(code, symbols), symbols, code, was_cached=True)
        except RuntimeError:  # intact, but this LLVM cannot load it: compile again
            pass
    code = compile_text(text, level)
    write_object(key, code)
    return LinkedCode(link(code, symbols), symbols, code, was_cached=False)
