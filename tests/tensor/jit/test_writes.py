"""Captured functions write in place to values that they made, and return views of them."""

from __future__ import annotations

import numpy as np
import pytest

from glassgrad import Tensor, TinyJit

ON_COMPILED_BACKEND = True


def floats(*values: float) -> Tensor:
    return Tensor(np.array(values, np.float32)).realize()


def _part_of_a_value(x: Tensor, y: Tensor) -> Tensor:
    made = (x * 0.5).exp2()
    made[-2] *= y
    return made


def _all_of_a_value(x: Tensor, y: Tensor) -> Tensor:
    made = (x > 0).where(x, x)
    made[:] *= y
    return made


def _number_in_a_value(x: Tensor, y: Tensor) -> Tensor:
    made = x * y
    made[0] = 5.0
    return made


def _what_is_the_argument_itself(x: Tensor, y: Tensor) -> Tensor:
    made = x.float()
    made += 2
    return made * y


@pytest.mark.parametrize(
    "function",
    [_part_of_a_value, _all_of_a_value, _number_in_a_value, _what_is_the_argument_itself],
)
def test_values_made_inside_can_be_written_in_place(function) -> None:
    captured = TinyJit(function)
    results = []
    for n in range(1, 6):
        x, y = Tensor([n + 0.5, -n, 2.0]).realize(), Tensor(float(n)).realize()
        results.append((captured(x, y), function(x, y).numpy()))
        assert x.tolist() == [n + 0.5, -n, 2.0]
    for found, expected in results:  # each has memory of its own
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)


def test_a_view_of_a_tensor_that_replays_write_is_returned() -> None:
    outside = Tensor([1.0, 2.0]).realize()

    @TinyJit
    def put(x: Tensor) -> Tensor:
        outside[0:1] = x
        return outside.reshape(2, 1)

    for n in range(5):
        found = put(Tensor([float(n)]).realize())
        assert (found.tolist(), outside.tolist()) == ([[n], [2]], [n, 2])
        outside += 1
        assert outside.tolist() == [n + 1, 3]
        outside -= 1


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("returned", ["view", "both", "argument"])
def test_a_write_through_a_detached_argument_writes_the_argument(size: int, returned: str) -> None:
    @TinyJit
    def double(x: Tensor) -> list[Tensor]:
        view = x.detach()
        view *= 2
        return {"view": [view], "both": [view, x], "argument": [x]}[returned]

    for number in range(5):
        x = Tensor(np.arange(size, dtype=np.float32) + number).realize()
        expected = (np.arange(size) + number) * 2
        for result in [*double(x), x]:
            assert np.array_equal(result.numpy(), expected)


def test_a_stored_view_of_outside_memory_is_unchanged_by_replays() -> None:
    weight, views = floats(1, 2), []

    @TinyJit
    def add(x: Tensor) -> Tensor:
        views.append(weight.reshape(2))
        return x + weight

    for number in range(4):
        assert add(floats(number, 0)).tolist() == [number + 1, 2]
        assert weight.tolist() == views[-1].tolist() == [1, 2]


def test_a_stored_view_of_an_argument_follows_the_next_argument() -> None:
    views = []

    @TinyJit
    def double(x: Tensor) -> Tensor:
        views.append(x.reshape(2))
        return x * 2

    for number in range(4):
        assert double(floats(number, 0)).tolist() == [2 * number, 0]
        assert views[-1].tolist() == [number, 0]


def test_a_value_equal_to_an_argument_that_was_written_is_not_written_in_its_memory() -> None:
    @TinyJit
    def change(x: Tensor, y: Tensor) -> Tensor:
        x -= y
        same = x.pad((0, 0))
        same[0:1] = 7
        x += same.max()
        return same

    for number in range(5):
        x = floats(number + 1, 5)
        assert change(x, floats(1, 1)).tolist() == [7, 4]
        assert x.tolist() == [number + 7, 11]
