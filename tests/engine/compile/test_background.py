"""Compilation in background threads."""

from __future__ import annotations

import threading

import pytest

from glassgrad import Tensor
from glassgrad.base.errors import CompileError
from glassgrad.devices.registry import Device
from glassgrad.engine.compile.background import background_compiler
from glassgrad.ir.stages import Program, Source


def source(number: int, text: str | None = None) -> Source:
    name = f"compiled{number}"
    body = f"define void @{name}(ptr %a, ptr %s, i64 %b, i64 %e) {{\n  ret void\n}}\n"
    return Source(name, text or body, "llvm", Program(name, ()))


def test_several_sources_are_compiled_in_another_thread() -> None:
    device = Device["CPU"]
    with background_compiler(device, 3) as later:
        waiting = [later(source(number)) for number in range(3)]
        names = [wait().source.name for wait in waiting]
    assert names == ["compiled0", "compiled1", "compiled2"]
    assert not any("compiler" in thread.name for thread in threading.enumerate())


def test_an_error_is_raised_where_the_result_is_awaited() -> None:
    device = Device["CPU"]
    with (
        pytest.raises(CompileError, match="LLVM cannot parse"),
        background_compiler(device, 2) as later,
    ):
        waiting = [later(source(7, "no such instruction")), later(source(8))]
        waiting[0]()
    assert not any("compiler" in thread.name for thread in threading.enumerate())


def test_an_error_before_compiling_leaves_no_thread() -> None:
    with pytest.raises(ValueError, match="early"), background_compiler(Device["CPU"], 2):
        raise ValueError("early")
    assert not any("compiler" in thread.name for thread in threading.enumerate())


def test_a_bar_is_shown_on_a_terminal_when_it_takes_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    from glassgrad.engine.compile import background as compiling

    monkeypatch.setattr(compiling, "PROGRESS_BAR_DELAY", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with background_compiler(Device["CPU"], 2) as later:
        for wait in [later(source(number)) for number in (11, 12)]:
            wait()
    assert "compiling" in capsys.readouterr().err


def test_nothing_is_written_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    x = Tensor([[1.5, 2.5]])
    Tensor.realize(x.exp().sum(1).contiguous() * 3, (x + 7).log().contiguous())
    assert capsys.readouterr().err == ""
