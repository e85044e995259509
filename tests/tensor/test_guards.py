"""Guards: Python numbers that a captured function reads outside of itself are watched."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import pytest

from glassgrad import Context, Tensor, TinyJit
from glassgrad.base.errors import CaptureError
from glassgrad.tensor.guards import Guards

ON_COMPILED_ROAD = True
SCALE = 2.0
step = 0  # the name of a method that the functions below call


def one() -> Tensor:
    return Tensor([1.0]).realize()


def names(function: Any) -> list[str]:
    return sorted(watch.name for watch in Guards(function).watches)


def shift(x: Tensor) -> Tensor:
    return x + SCALE


# ---------------------------------------------------------------------- what is watched


def test_closures_globals_and_attributes_are_watched() -> None:
    number, config = 3, SimpleNamespace(model=SimpleNamespace(size=4), name="a")
    array = [1, 2]

    def f(x: Any, y: int = 7) -> Any:
        return x * number + SCALE * config.model.size + len(array) + y

    assert names(f) == ["SCALE", "array", "config.model.size", "number"]


def test_functions_that_are_called_by_name_are_read_too() -> None:
    inner = 3

    def g(x: Any) -> Any:
        return [x + inner for _ in range(2)]

    assert names(lambda x: shift(g(x))) == ["SCALE", "inner"]
    assert names(functools.partial(lambda y, x: shift(x), 1)) == ["SCALE"]
    assert names(TinyJit(shift)) == ["SCALE"]
    assert names(Context(DEBUG=0)(shift)) == ["SCALE"]


def test_closures_of_one_name_are_told_apart() -> None:
    def made(number: int) -> Any:
        return lambda x: x + number

    one, two = made(1), made(2)
    assert names(lambda x: one(two(x))) == ["number", "number"]


def test_a_method_is_not_taken_for_a_global_of_its_name() -> None:
    assert names(lambda optimiser: optimiser.step()) == []


def test_a_property_is_not_run() -> None:
    class Loud:
        @property
        def size(self) -> int:
            raise AssertionError("somebody looked")

    loud = Loud()
    assert names(lambda x: x + loud.size) == []


def test_functions_that_call_each_other_are_read_once() -> None:
    def even(n: int) -> Any:
        return n == 0 or odd(n - SCALE)

    def odd(n: int) -> Any:
        return n != 0 and even(n - SCALE)

    assert names(even) == ["SCALE"]


def test_what_is_not_there_yet_is_not_watched() -> None:
    def f(x: Any) -> Any:
        return x + later

    assert names(f) == []
    later = 1
    assert f(1) == 2


# ---------------------------------------------------------------------- new values


def test_another_number_in_a_closure_means_another_capture() -> None:
    factor = 2.0
    runs: list[float] = []

    @TinyJit
    def f(x: Tensor) -> Tensor:
        runs.append(factor)
        return x * factor

    x = one()
    for factor in (2.0, 3.0, 2.0, 3.0):
        for _ in range(4):
            assert f(x).item() == factor
    assert runs == [2.0, 2.0, 3.0, 3.0]
    factor = 3
    assert f(x).item() == 3.0
    assert runs[-1] == 3
    assert type(runs[-1]) is int


def test_another_global_means_another_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    f, x = TinyJit(shift), one()
    for _ in range(3):
        assert f(x).item() == 3.0
    monkeypatch.setitem(globals(), "SCALE", 10.0)
    for _ in range(3):
        assert f(x).item() == 11.0
    assert len(f.captures) == 2


def test_an_attribute_that_changes_is_seen() -> None:
    config = SimpleNamespace(rate=1.0)
    f, x = TinyJit(lambda x: x + config.rate), one()
    for _ in range(3):
        assert f(x).item() == 2.0
    config.rate = 5.0
    for _ in range(3):
        assert f(x).item() == 6.0
    del config.rate
    with pytest.raises(AttributeError):
        f(x)


class Trainer:
    rate: float = 1.0

    def __init__(self) -> None:
        self.rate = 2.0
        self.shift = 0.0

    @TinyJit
    def step(self, x: Tensor) -> Tensor:
        return self.scaled(x) + self.shift

    def scaled(self, x: Tensor) -> Tensor:
        return x * self.rate


def test_numbers_of_the_object_whose_method_is_captured_are_watched() -> None:
    one_trainer, other, x = Trainer(), Trainer(), one()
    for _ in range(3):
        assert one_trainer.step(x).item() == other.step(x).item() == 2.0
    one_trainer.rate, one_trainer.shift = 5.0, 1.0
    for _ in range(3):
        assert one_trainer.step(x).item() == 6.0
        assert other.step(x).item() == 2.0


def test_in_strict_mode_another_number_is_an_error_that_names_it() -> None:
    factor = 2.0
    f, x = TinyJit(lambda x: x * factor, strict=True), one()
    for _ in range(3):
        f(x)
    factor = 4.0
    with pytest.raises(CaptureError, match=r"reads factor, which was 2\.0 and is 4\.0"):
        f(x)


def test_a_number_that_is_different_at_the_second_call_is_reported() -> None:
    factor = 2.0
    f, x = TinyJit(lambda x: x * factor), one()
    f(x)
    factor = 4.0
    with pytest.raises(CaptureError, match=r"4\.0, which was 2\.0 in the call before"):
        f(x)


def test_a_counter_inside_does_not_keep_a_function_from_being_replayed() -> None:
    calls = 0

    @TinyJit
    def f(x: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        return x + 1

    for _ in range(5):
        f(one())
    assert calls == 2


def test_a_number_that_became_a_tensor_is_seen() -> None:
    mask: Any = None
    f, x = TinyJit(lambda x: x if mask is None else x * mask), one()
    for _ in range(3):
        assert f(x).item() == 1.0
    mask = Tensor([3.0]).realize()
    for _ in range(3):
        assert f(x).item() == 3.0


def test_captures_used_longest_ago_are_forgotten_first() -> None:
    f, x = TinyJit(lambda x, n: x + n), one()
    for _ in range(2):
        f(x, 0)
    for n in range(1, 40):
        for _ in range(2):
            f(x, n)
        assert f(x, 0).item() == 1.0
    kept = [key[0][2][1] for key in f.captures]
    assert len(kept) == 32
    assert "0" in kept
    assert "1" not in kept


def test_jit_can_be_switched_off() -> None:
    calls: list[int] = []

    @TinyJit
    def f(x: Tensor) -> Tensor:
        calls.append(1)
        return x + 1

    x = one()
    for _ in range(3):
        f(x)
    with Context(JIT=0):
        for _ in range(3):
            assert f(x).item() == 2.0
    assert f(x).item() == 2.0
    assert len(calls) == 5
