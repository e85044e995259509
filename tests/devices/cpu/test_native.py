"""LLVM compiles and loads in this process, and only on demand."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

from glassgrad.base.config import Context
from glassgrad.devices.cpu.llvm import DISABLED_PASS
from glassgrad.devices.cpu.native import compile_text, host, link, load_text
from glassgrad.devices.cpu.object_cache import object_key, write_object

DOUBLE = "define i64 @twice(i64 %x) {\n  %y = add i64 %x, %x\n  ret i64 %y\n}\n"


def call(address: int, value: int) -> int:
    return int(ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)(value))


def test_code_is_compiled_loaded_and_called(tmp_path: Path) -> None:
    with Context(CACHE=str(tmp_path), CACHELEVEL=1):
        first = load_text(DOUBLE, ("twice",))
        again = load_text(DOUBLE, ("twice",))
    assert call(first.address("twice"), 21) == 42 == call(again.address("twice"), 21)
    assert not first.was_cached and again.was_cached


def test_an_entry_that_cannot_be_loaded_is_compiled_again(tmp_path: Path) -> None:
    with Context(CACHE=str(tmp_path), CACHELEVEL=1):
        write_object(object_key(DOUBLE, *host(), "2", DISABLED_PASS), b"not an object file")
        built = load_text(DOUBLE, ("twice",))
        assert not built.was_cached
        assert call(built.address("twice"), 4) == 8
        assert load_text(DOUBLE, ("twice",)).was_cached


def test_constants_and_library_calls_are_within_reach() -> None:
    """Code of the small model must find its constants and the C library's functions."""
    text = """
    declare double @cos(double)
    define double @f(double %x) {
      %a = fadd double %x, 0x3FB999999999999A
      %b = call double @cos(double %a)
      ret double %b
    }
    """
    library = link(compile_text(text), ("f",))
    function = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(library["f"])
    assert function(-0.1) == 1.0


def test_importing_the_devices_does_not_load_llvm() -> None:
    script = (
        "import sys, glassgrad.device, glassgrad.devices.cpu.device\n"
        "from glassgrad.devices.cpu.llvm import llvm\n"
        "sys.exit('llvmlite' in sys.modules or llvm.cache_info().currsize)"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    assert (
        subprocess.run([sys.executable, "-c", script], env=environment, check=False).returncode == 0
    )
