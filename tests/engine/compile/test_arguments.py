"""A launch passes all arguments of a kernel, even those that simplification removed."""

from __future__ import annotations

import numpy as np
import pytest

from glassgrad import Tensor, Variable
from glassgrad.base.config import Context

ALWAYS = Tensor(True).reshape(1)


@pytest.mark.parametrize("noopt", [0, 1])
@pytest.mark.parametrize("value", [0, 1, 3])
def test_unused_buffers_keep_their_slots(noopt: int, value: int) -> None:
    array, other = np.arange(5, dtype=np.float32), Tensor(-3.0).realize()
    x, start = Tensor(array).realize(), Variable("start", 0, 4).bind(value)
    with Context(NOOPT=noopt):
        found = ALWAYS.where(x[start : start + 1] * 2, other)
        assert found.tolist() == [2 * array[value]]


def test_unused_variables_keep_their_slots() -> None:
    array = np.arange(5, dtype=np.float32)
    x, y = Tensor(array).realize(), Tensor(array * 10).realize()
    first, second = Variable("a", 0, 4).bind(2), Variable("b", 0, 4).bind(3)
    found = ALWAYS.where(x[second : second + 1], y[first : first + 1])
    assert found.tolist() == [3.0]
