"""Division, remainders, shifts and powers of ints: all signs, widths and extreme values."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from glassgrad import Tensor, dtypes
from glassgrad.base.dtype import DType, wrap

ints = pytest.mark.parametrize("dtype", dtypes.ints, ids=lambda dtype: dtype.name)
devices = pytest.mark.parametrize("device", ["CPU", "PYTHON"])


def truncated(x: int, y: int) -> int:
    size = abs(x) // abs(y)
    return size if (x < 0) == (y < 0) else -size


def shifted_left(x: int, y: int, bits: int) -> int:
    return x << y if 0 <= y < bits else 0


def shifted_right(x: int, y: int, bits: int) -> int:
    return x >> (y if 0 <= y < bits else bits)


def power(x: int, y: int) -> int:
    if y >= 0:
        return pow(x, y, 1 << 64)
    return {1: 1, -1: 1 if y % 2 == 0 else -1}.get(x, 0)


# name -> tensor operation, the same for Python's unbounded ints
OPERATIONS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[int, int, int], int]]] = {
    "floordiv": (operator.floordiv, lambda x, y, _: x // y if y else 0),
    "mod": (operator.mod, lambda x, y, _: x % y if y else 0),
    "div trunc": (
        lambda x, y: x.div(y, rounding_mode="trunc"),
        lambda x, y, _: truncated(x, y) if y else 0,
    ),
    "div floor": (
        lambda x, y: x.div(y, rounding_mode="floor"),
        lambda x, y, _: x // y if y else 0,
    ),
    "fmod": (lambda x, y: x.fmod(y), lambda x, y, _: x - truncated(x, y) * y if y else 0),
    "lshift": (operator.lshift, shifted_left),
    "rshift": (operator.rshift, shifted_right),
    "pow": (operator.pow, lambda x, y, _: power(x, y)),
    "add": (operator.add, lambda x, y, _: x + y),
    "sub": (operator.sub, lambda x, y, _: x - y),
    "mul": (operator.mul, lambda x, y, _: x * y),
    "abs": (lambda x, y: x.abs(), lambda x, y, _: abs(x)),
    "neg": (lambda x, y: -x, lambda x, y, _: -x),
}


def edge_values(dtype: DType) -> list[int]:
    low, high = int(dtypes.min(dtype)), int(dtypes.max(dtype))
    small = [-64, -33, -8, -7, -3, -2, -1, 0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 32, 63, 64, 65, 100]
    middle = [n for n in small if low <= n <= high]
    return [low, low + 1, high // 2, high - 1, high, *middle]


@ints
@devices
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_equal_those_of_unbounded_ints_and_wrap(
    name: str, device: str, dtype: DType
) -> None:
    function, reference = OPERATIONS[name]
    values = edge_values(dtype)
    pairs = [(x, y) for x in values for y in values]
    x, y = (np.array(side, dtype.name) for side in zip(*pairs, strict=True))
    found = function(Tensor(x, device=device), Tensor(y, device=device))
    assert found.dtype is dtype
    assert found.tolist() == [wrap(reference(*pair, dtype.bits), dtype) for pair in pairs]


@ints
@pytest.mark.parametrize("name", ["floordiv", "mod", "div trunc", "fmod", "lshift", "rshift"])
def test_constant_right_operands(name: str, dtype: DType) -> None:
    """Division by a constant is compiled differently."""
    function, reference = OPERATIONS[name]
    values = edge_values(dtype)
    for y in {-7, -1, 1, 3, 8, values[0], dtypes.max(dtype)} & set(values) - {0}:
        found = function(Tensor(np.array(values, dtype.name)), y).tolist()
        assert found == [wrap(reference(x, y, dtype.bits), dtype) for x in values], y


@ints
@devices
def test_quotients_are_floats_and_rounded_once(device: str, dtype: DType) -> None:
    x = np.array([n for n in edge_values(dtype) if abs(n) < 2**24], dtype.name)
    found = (Tensor(x, device=device) / Tensor(x[::-1].copy(), device=device)).numpy()
    with np.errstate(all="ignore"):
        wanted = x.astype(np.float32) / x[::-1].astype(np.float32)
    np.testing.assert_array_equal(found, wanted)
