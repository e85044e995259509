"""Captured functions write in place to values that they made, and return views of them."""

from __future__ import annotations

import numpy as np
import pytest

from glassgrad import Tensor, TinyJit

ON_COMPILED_BACKEND = True


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
