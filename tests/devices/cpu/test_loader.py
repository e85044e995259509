"""Object files are loaded without LLVM: they run, are not writable, and damage is refused."""

from __future__ import annotations

import ctypes
import gc
import math
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.files.objects import CODE

from glassgrad.devices.cpu.elf import ObjectError
from glassgrad.devices.cpu.loader import Loaded, address_in_process, can_load, load
from glassgrad.devices.cpu.native import compile_text, load_text

pytestmark = pytest.mark.skipif(not can_load(), reason="this system has other object files")


def maps() -> list[tuple[range, str]]:
    rows = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
    found = []
    for place, kind, *_ in rows:
        start, stop = (int(end, 16) for end in place.split("-"))
        found.append((range(start, stop), kind))
    return found


def test_loaded_code_reads_its_constants_and_calls_functions() -> None:
    loaded = load(CODE, ("element",))
    element = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_int64)(loaded["element"])
    for number in range(4):
        assert element(number) == pytest.approx(math.sin(number + 1), abs=1e-6)


def test_data_of_the_process_is_found() -> None:
    text = """
    @_Py_NoneStruct = external global i8
    define ptr @none() { ret ptr @_Py_NoneStruct }
    """
    loaded = load(compile_text(text), ("none",))
    assert ctypes.CFUNCTYPE(ctypes.c_void_p)(loaded["none"])() == id(None)


def test_loaded_code_is_not_writable() -> None:
    loaded = load(CODE, ("element",))
    place = loaded["element"]
    here = [kind for there, kind in maps() if place in there]
    assert here == ["r-xp"]
    start = ctypes.addressof(ctypes.c_char.from_buffer(loaded.memory))
    kinds = {
        k for there, k in maps() if there.start < start + len(loaded.memory) and start < there.stop
    }
    assert kinds == {"r-xp", "r--p"}


def test_memory_is_unmapped() -> None:
    before = sum(kind == "r-xp" for _, kind in maps())
    loaded = [load(CODE, ("element",)) for _ in range(50)]
    assert len(loaded) == 50
    del loaded
    gc.collect()
    assert sum(kind == "r-xp" for _, kind in maps()) <= before + 1


def test_an_unknown_symbol_is_refused() -> None:
    text = "declare void @nobody() define void @f() { call void @nobody() ret void }"
    with pytest.raises(ObjectError, match="nobody"):
        load(compile_text(text), ("f",))
    with pytest.raises(ObjectError, match="no symbol other"):
        load(CODE, ("other",))
    with pytest.raises(ObjectError):
        address_in_process("nobody")


def test_writable_sections_are_refused() -> None:
    text = "@counter = global i64 0 define ptr @where() { ret ptr @counter }"
    with pytest.raises(ObjectError, match="writable"):
        load(compile_text(text), ("where",))
    assert not isinstance(load_text(text, ("where",)).library, Loaded)


@settings(max_examples=300)
@given(st.integers(0, max(len(CODE) - 1, 0)), st.integers(0, 255))
def test_a_damaged_file_never_crashes(place: int, byte: int) -> None:
    damaged = bytearray(CODE)
    damaged[place] = byte
    try:
        load(bytes(damaged), ("element",))
    except ObjectError:
        pass


def test_unknown_relocations_and_machines_are_refused() -> None:
    with pytest.raises(ObjectError, match="machine 40"):
        load(CODE[:18] + struct.pack("<H", 40) + CODE[20:], ("element",))


FIRST = "from glassgrad import Tensor; import sys; (Tensor([1.0])+Tensor([2.0])).tolist();"


def test_a_process_that_finds_its_code_on_disk_imports_neither_llvm_nor_numpy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLASSGRAD_CACHE", str(tmp_path))
    script = FIRST + (
        "from glassgrad.devices.cpu.llvm import llvm\n"
        "print(llvm.cache_info().currsize > 0, 'numpy' in sys.modules)"
    )
    runs = [
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert re.findall(r"\w+", runs[0].stdout) == ["True", "False"]
    assert re.findall(r"\w+", runs[1].stdout) == ["False", "False"]


def test_damaged_objects_on_disk_are_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that hash to what they should, but are no object files that we can load."""
    monkeypatch.setenv("GLASSGRAD_CACHE", str(tmp_path))
    script = FIRST + "print((Tensor([1.0])+Tensor([2.0])).tolist())"
    damage = (
        "from pathlib import Path; from hashlib import blake2b\n"
        f"for path in Path({str(tmp_path)!r}).glob('objects/*/*'):\n"
        "    code = path.read_bytes()[51:]\n"
        "    if code.startswith(b'\\x7fELF'):\n"
        "        code = code[:40] + bytes(24) + code[64:]\n"
        "        digest = blake2b(code, digest_size=32).digest()\n"
        "        path.write_bytes(b'glassgrad object 2\\n' + digest + code)\n"
    )
    for code in (script, damage, script):
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert found.returncode == 0, found.stderr
    assert found.stdout.strip() == "[3.0]"
