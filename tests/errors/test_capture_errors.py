"""Every refusal of a capture names the cause, the line and a remedy."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from glassgrad import Context, Tensor, TinyJit
from glassgrad.base.errors import CaptureError
from glassgrad.tensor.jit.guards import Guards


def x() -> Tensor:
    return Tensor([1.0, 2.0]).realize()


def message(function: Callable[..., Any], calls: int = 2, **options: Any) -> str:
    captured = TinyJit(function, **options)
    with pytest.raises(CaptureError) as caught:
        for _ in range(calls):
            captured(x())
    return str(caught.value)


def seconds(x: Tensor) -> Tensor:
    return x * (1.0 if time.time() > 0 else 2.0)


def today(x: Tensor) -> Tensor:
    return x * (1.0 if datetime.now().year > 2000 else 2.0)


def dice(x: Tensor) -> Tensor:
    return x * (1.0 if random.random() < 2 else 2.0)


def file(x: Tensor) -> Tensor:
    with open(__file__) as opened:
        return x * (1.0 if opened.readable() else 2.0)


def path(x: Tensor) -> Tensor:
    return x * (1.0 if Path(__file__).read_text() else 2.0)


GENERATOR = np.random.default_rng(1)
LINES = iter(range(100))


def numpy_dice(x: Tensor) -> Tensor:
    return x * (1.0 if GENERATOR.random() < 2 else 2.0)


def iterator(x: Tensor) -> Tensor:
    return x * (1.0 if next(LINES) >= 0 else 2.0)


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (seconds, "uses time.time()"),
        (today, "uses datetime.now()"),
        (dice, "uses random.random"),
        (file, "uses open()"),
        (path, "uses read_text()"),
        (numpy_dice, "uses a Generator as GENERATOR"),
        (iterator, "uses an iterator (range_iterator) as LINES"),
    ],
)
def test_values_that_change_by_themselves_are_refused(function: Any, what: str) -> None:
    text = message(function)
    assert what in text
    assert "pass its result as an argument" in text


def test_values_marked_as_constant_are_accepted() -> None:
    captured = TinyJit(seconds, constants=["time.time"])
    assert [captured(x()).tolist() for _ in range(3)] == [[1.0, 2.0]] * 3


def test_a_counter_that_is_read_is_refused() -> None:
    state = SimpleNamespace(step=0)

    def f(x: Tensor) -> Tensor:
        state.step += 1
        return x * state.step

    text = message(f, 3)
    assert "1.0" in text or "state.step from 1 to 2" in text


def test_a_flag_that_is_changed_and_read_is_refused() -> None:
    state = SimpleNamespace(is_even=False)

    def f(x: Tensor) -> Tensor:
        state.is_even = not state.is_even
        return x.realize()

    text = message(f, 4)
    assert "changes state.is_even from" in text
    assert "and reads it" in text


def test_large_data_outside_is_refused() -> None:
    table = np.zeros(300_000)
    text = message(lambda x: x * float(table[0]))
    assert "reads table, an array of 2,400,000 bytes outside" in text
    assert "constants=[...]" in text
    captured = TinyJit(lambda x: x + float(table[0]), constants=[table])
    assert [captured(x()).tolist() for _ in range(3)] == [[1.0, 2.0]] * 3


def test_too_many_values_are_refused() -> None:
    table = [float(n) for n in range(60_000)]
    text = message(lambda x: x * table[0])
    assert "can reach more than 50,000 Python values" in text


def test_arguments_that_could_change_unnoticed_are_refused() -> None:
    captured = TinyJit(lambda x, table: x * float(table[0]))
    with pytest.raises(CaptureError, match="cannot take a ndarray: it could change unnoticed"):
        captured(x(), np.ones(3))
    with pytest.raises(CaptureError, match="cannot take a set"):
        captured(x(), {1.0})


def test_in_strict_mode_the_change_is_named() -> None:
    config = SimpleNamespace(rate=1.0)
    captured = TinyJit(lambda x: x * config.rate, strict=True)
    for _ in range(3):
        captured(x())
    config.rate = 2.0
    with pytest.raises(CaptureError, match=r"reads config\.rate, which was 1\.0 and is 2\.0"):
        captured(x())


# ---------------------------------------------------------------------- what only checks find


@pytest.fixture
def without_guards(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(Guards, "are_valid", lambda self: True)
    with Context(JIT_CHECK=1):
        yield


def changed(function: Callable[[Tensor], Any], change: Callable[[], Any]) -> str:
    captured = TinyJit(function)
    for _ in range(3):
        captured(x())
    change()
    with pytest.raises(CaptureError) as caught:
        captured(x())
    assert captured(x()) is not None  # it starts anew
    return str(caught.value)


@pytest.mark.usefixtures("without_guards")
def test_checks_name_a_number_and_its_line() -> None:
    config = SimpleNamespace(rate=1.5)
    text = changed(lambda x: x * config.rate, lambda: setattr(config, "rate", 2.5))
    assert "uses the number 2.5, which was 1.5 in the call before" in text
    assert "x * config.rate" in text


@pytest.mark.usefixtures("without_guards")
def test_checks_name_a_tensor_that_was_replaced() -> None:
    state = {"w": x()}
    text = changed(lambda v: v * state["w"], lambda: state.update(w=Tensor([1.0, 1.0]).realize()))
    assert "reads another tensor outside, of 2 elements, than when it was captured" in text


@pytest.mark.usefixtures("without_guards")
def test_checks_name_values_computed_differently() -> None:
    steps = [Tensor.relu]
    text = changed(lambda x: steps[0](x), lambda: steps.__setitem__(0, Tensor.exp))
    assert "computes something else than it did when it was captured" in text
    assert "steps[0](x)" in text


@pytest.mark.usefixtures("without_guards")
def test_checks_name_a_number_that_is_returned() -> None:
    config = SimpleNamespace(rate=1.5)
    text = changed(lambda x: (x + 1, config.rate), lambda: setattr(config, "rate", 2.5))
    assert "returns ('a tensor', 2.5), and returned ('a tensor', 1.5) in the call before" in text
