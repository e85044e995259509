"""Numbers inside of lists, dicts and objects, which captured functions read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from glassgrad.base.errors import CaptureError
from glassgrad.nn.optim import AdamW
from glassgrad.tensor.contents import contents
from glassgrad.tensor.jit import TinyJit
from glassgrad.tensor.tensor import Tensor

ON_COMPILED_ROAD = True
RATES = [0.5, 2.0]
OPTIONS: dict[str, Any] = {"scale": 3.0, "names": ("a", "b")}


@pytest.mark.parametrize("value", [[1.0], (1, [2]), {"a": {"b": 3}}, SimpleNamespace(p=0.5)])
def test_equal_numbers_are_equal_contents(value: Any) -> None:
    assert contents(value) == contents(value) is not None


@pytest.mark.parametrize(
    ("one", "other"),
    [([1.0], [1]), ([1.0, 2.0], [2.0, 1.0]), ({"a": 1}, {"b": 1}), ([0.0], [-0.0]), ([1], (1,))],
)
def test_other_numbers_kinds_and_places_are_other_contents(one: Any, other: Any) -> None:
    assert contents(one) != contents(other)


@pytest.mark.parametrize("value", [[], [Tensor([1.0])], {"a": "text"}, Tensor([1.0]), Tensor, len])
def test_what_holds_no_numbers_has_no_contents(value: Any) -> None:
    assert contents(value) is None


def test_contents_are_shown_by_their_numbers() -> None:
    assert str(contents([0.5, {"a": 2}])) == "(0.5, 2)"


def test_numbers_in_lists_and_dicts_outside_are_not_baked_in() -> None:
    rates = [1.0, 2.0]

    @TinyJit
    def scaled(x: Tensor) -> Tensor:
        return x * rates[0] + RATES[1] * OPTIONS["scale"]

    for turn in range(4):
        assert scaled(Tensor([2.0])).item() == 8.0, turn
    rates[0] = 10.0
    assert [scaled(Tensor([2.0])).item() for _ in range(4)] == [26.0] * 4
    try:
        OPTIONS["scale"] = 4.0
        assert [scaled(Tensor([2.0])).item() for _ in range(4)] == [28.0] * 4
    finally:
        OPTIONS["scale"] = 3.0
    rates[0] = 1.0
    assert scaled(Tensor([2.0])).item() == 8.0


def test_strict_functions_say_which_list_changed() -> None:
    rates = [1.0, 2.0]

    @TinyJit
    def scaled(x: Tensor) -> Tensor:
        return x * rates[0]

    strict = TinyJit(scaled.fxn, strict=True)
    for _ in range(3):
        strict(Tensor([2.0]))
    rates[0] = 3.0
    with pytest.raises(CaptureError, match=r"rates, which was \(1.0, 2.0\) and is \(3.0, 2.0\)"):
        strict(Tensor([2.0]))


def test_attributes_of_argument_objects_are_not_baked_in() -> None:
    options = SimpleNamespace(scale=2.0)

    class Options:
        def __init__(self) -> None:
            self.scale = 2.0

    options = Options()

    @TinyJit
    def scaled(x: Tensor, how: Options) -> Tensor:
        return x * how.scale

    for scale in (2.0, 5.0, 2.0):
        options.scale = scale
        assert [scaled(Tensor([1.0]), options).item() for _ in range(4)] == [scale] * 4


def test_options_of_an_optimiser_outside_are_not_baked_in() -> None:
    w = Tensor([1.0])
    optimizer = AdamW([w], lr=1.0, eps=0.0, weight_decay=0.0)

    @TinyJit
    def step() -> Tensor:
        optimizer.zero_grad()
        loss = w.sum().backward()
        return loss.realize(*optimizer.schedule_step())

    for decay in (0.0, 0.0, 0.0, 0.5, 0.5, 0.0):
        optimizer.weight_decay = decay
        before = w.item()
        step()
        assert w.item() == pytest.approx(before - 1.0 - decay * before, abs=1e-5)


def test_lists_that_the_function_appends_to_do_not_matter() -> None:
    seen: list[int] = []

    @TinyJit
    def counted(x: Tensor) -> Tensor:
        seen.append(1)
        return x + 1

    assert [counted(Tensor([1.0])).item() for _ in range(5)] == [2.0] * 5
    assert len(seen) == 2
