"""Division rounds down for all signs, as Python's does."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from support.compiler.on_cpu import apply

from glassgrad.base.dtype import DType, dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.lower.math.division import divide, remainder
from glassgrad.memory.view import numpy_dtype

INTS = [dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.uint8, dtypes.uint64]
SMALL = (-9, -8, -7, -5, -4, -3, -2, -1, 1, 2, 3, 4, 5, 7, 8, 9)


def pairs(dtype: DType) -> tuple[list[int], list[int]]:
    """Small numbers of all signs, and the bounds of the dtype, whose quotient fits."""
    low, high = int(dtypes.min(dtype)), int(dtypes.max(dtype))
    numbers = [n for n in (*SMALL, 0, low, low + 1, high - 1, high) if low <= n <= high]
    found = [(x, y) for x, y in product(numbers, numbers) if y and low <= x // y <= high]
    return [x for x, _ in found], [y for _, y in found]


def check(dtype: DType, xs: list[int], ys: list[int], want: tuple[list[int], list[int]]) -> None:
    kind = numpy_dtype(dtype)
    arrays = [np.array(xs, kind), np.array(ys, kind)]
    for op, make, expected in ((Ops.FLOORDIV, divide, want[0]), (Ops.FLOORMOD, remainder, want[1])):

        def function(x: UOp, y: UOp, op: Ops = op, make: object = make) -> UOp:
            return make(UOp(op, x.dtype, (x, y)))

        for width in (1, 8):
            got = apply(function, arrays, [dtype, dtype], dtype, width)
            assert got.tolist() == expected, (op, width)


@pytest.mark.parametrize("dtype", INTS, ids=lambda dtype: dtype.name)
def test_quotients_and_remainders_are_those_of_python(dtype: DType) -> None:
    xs, ys = pairs(dtype)
    want = (
        [x // y for x, y in zip(xs, ys, strict=True)],
        [x % y for x, y in zip(xs, ys, strict=True)],
    )
    check(dtype, xs, ys, want)


@pytest.mark.parametrize("divisor", [1, 2, 3, 8, 10, 64, -1, -2, -3])
def test_division_by_a_constant_is_that_of_python(divisor: int) -> None:
    xs = list(range(-70, 70))
    for op, make, want in (
        (Ops.FLOORDIV, divide, [x // divisor for x in xs]),
        (Ops.FLOORMOD, remainder, [x % divisor for x in xs]),
    ):

        def function(x: UOp, op: Ops = op, make: object = make) -> UOp:
            return make(UOp(op, x.dtype, (x, x.const_like(divisor))))

        got = apply(function, [np.array(xs, np.int32)], [dtypes.int32], dtypes.int32, 1)
        assert got.tolist() == want


@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.int64, dtypes.uint8])
def test_division_by_zero_gives_zero_as_in_numpy(dtype: DType) -> None:
    xs = [n for n in (7, -7, 0, int(dtypes.max(dtype))) if n >= dtypes.min(dtype)]
    zeros = [0] * len(xs)
    check(dtype, xs, zeros, (zeros, zeros))


def test_the_one_quotient_that_does_not_fit_wraps_around() -> None:
    low = int(dtypes.min(dtypes.int32))
    check(dtypes.int32, [low], [-1], ([low], [0]))


def test_a_power_of_two_is_a_shift_and_a_mask() -> None:
    x = UOp(Ops.PARAM, dtypes.int32, (), None)
    assert divide(x // 8).op is Ops.SHR
    assert remainder(x % 8).op is Ops.AND
    assert divide(x // 6).op is not Ops.SHR
