"""Guards: changes of Python values that a captured function reads are noticed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from glassgrad import Context, Tensor, TinyJit
from glassgrad.base.errors import CaptureError

ON_COMPILED_BACKEND = True
SCALE = 2.0


def one() -> Tensor:
    return Tensor([1.0]).realize()


def shift(x: Tensor) -> Tensor:
    return x + SCALE


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
    assert sorted(runs) == [2.0] * 4 + [3.0] * 4  # two of each are checks
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
    assert f.count_captures() == 2


def test_a_changed_attribute_is_noticed() -> None:
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


def test_attributes_of_the_owner_of_a_method_are_guarded() -> None:
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


def test_a_number_that_is_different_at_the_second_call_means_another_first_call() -> None:
    factor = 2.0
    f, x = TinyJit(lambda x: x * factor), one()
    assert f(x).item() == 2.0
    factor = 4.0
    assert [f(x).item() for _ in range(3)] == [4.0, 4.0, 4.0]


def test_a_counter_inside_does_not_keep_a_function_from_being_replayed() -> None:
    calls = 0

    @TinyJit
    def f(x: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        return x + 1

    with Context(JIT_CHECK=0):
        for _ in range(5):
            f(one())
    assert calls == 2


def test_a_number_replaced_by_a_tensor_is_noticed() -> None:
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
