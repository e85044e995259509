"""LLVM compiles and loads in this process, and only when asked."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from glassgrad.base.config import Context
from glassgrad.base.errors import CompileError
from glassgrad.devices.native import LEFT_OUT, assembly, build, compile_text, host, link, llvm
from glassgrad.devices.objects import object_key, write_object

DOUBLE = "define i64 @twice(i64 %x) {\n  %y = add i64 %x, %x\n  ret i64 %y\n}\n"


def call(address: int, value: int) -> int:
    return int(ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)(value))


def test_code_is_compiled_loaded_and_called(tmp_path: Path) -> None:
    with Context(CACHE=str(tmp_path), CACHELEVEL=1):
        first = build(DOUBLE, ("twice",))
        again = build(DOUBLE, ("twice",))
    assert call(first.address("twice"), 21) == 42 == call(again.address("twice"), 21)
    assert not first.was_cached and again.was_cached


def test_a_whole_entry_that_is_no_object_is_compiled_anew(tmp_path: Path) -> None:
    with Context(CACHE=str(tmp_path), CACHELEVEL=1):
        write_object(object_key(DOUBLE, *host(), "2", LEFT_OUT), b"not an object file")
        built = build(DOUBLE, ("twice",))
        assert not built.was_cached
        assert call(built.address("twice"), 4) == 8
        assert build(DOUBLE, ("twice",)).was_cached


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


def test_what_llvm_refuses_is_a_compile_error() -> None:
    with pytest.raises(CompileError, match="LLVM refused"):
        compile_text("define nonsense")


def test_assembly_is_text_of_this_machine() -> None:
    assert "twice" in assembly(DOUBLE)


def test_importing_the_devices_does_not_load_llvm() -> None:
    script = (
        "import sys, glassgrad.device, glassgrad.devices.cpu\n"
        "sys.exit(any(name.startswith('llvmlite') for name in sys.modules))"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    assert (
        subprocess.run([sys.executable, "-c", script], env=environment, check=False).returncode == 0
    )


def test_others_find_the_options_of_llvm_as_they_were() -> None:
    """Without the pass that we leave out, this loop multiplies in every round."""
    text = """
    define void @f(ptr %p) {
    entry:
      br label %loop
    loop:
      %i = phi i64 [ 0, %entry ], [ %next, %loop ]
      %far = mul i64 %i, 10007
      %at = getelementptr i64, ptr %p, i64 %far
      store i64 0, ptr %at
      %next = add nsw i64 %i, 1
      %more = icmp slt i64 %next, 100
      br i1 %more, label %loop, label %done
    done:
      ret void
    }
    """

    def theirs() -> str:
        target = llvm().Target.from_triple(host().triple).create_target_machine(opt=2)
        return str(target.emit_assembly(llvm().parse_assembly(text)))

    before = theirs()
    assert assembly(text).count("mul") > before.count("mul")
    assert theirs() == before
