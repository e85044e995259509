"""Long float sums: an accumulator per block, and a total of all blocks."""

from __future__ import annotations

import numpy as np
import pytest

from glassgrad import Tensor
from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.uop import UOp, const, make_range
from glassgrad.lower.reduce.blocked_sums import (
    MAX_BLOCK_STEPS,
    chain_count,
    split_loops_at_blocks,
    strip_mine_sums,
)

BOUND = 3 * MAX_BLOCK_STEPS * 2.0**-24  # of the sum of absolute values: docs/accuracy.md


def one_sum(*sizes: int) -> UOp:
    """A kernel's body: y[0] = the sum of i + j + …"""
    loops = [make_range(i, size, AxisKind.REDUCE) for i, size in enumerate(sizes)]
    value = const(1.0, dtypes.float32)
    for loop in loops:
        value = value + loop.cast(dtypes.float32)
    total = UOp(Ops.REDUCE, dtypes.float32, (value, *loops), Ops.ADD)
    return UOp(Ops.SINK, dtypes.void, (total,))


def sizes_of(body: UOp) -> list[list[int]]:
    reduces = [node for node in body.toposort() if node.op is Ops.REDUCE]
    return sorted([[r.size for r in node.bound] for node in reduces])


@pytest.mark.parametrize(
    ("sizes", "wanted"),
    [
        ((MAX_BLOCK_STEPS,), [[MAX_BLOCK_STEPS]]),  # short
        ((2 * MAX_BLOCK_STEPS,), [[2, MAX_BLOCK_STEPS]]),
        ((3000,), [[2, 1500]]),  # evenly
        ((4099,), [[2, MAX_BLOCK_STEPS], [3]]),  # a prime leaves a remainder
        ((1000, 1000), [[1000, 1000]]),  # the inner loop is a block
        ((1 << 20, 2), [[1 << 10, 1 << 10, 2]]),
    ],
)
def test_long_loops_are_strip_mined_into_blocks(
    sizes: tuple[int, ...], wanted: list[list[int]]
) -> None:
    assert sizes_of(strip_mine_sums(one_sum(*sizes))) == wanted


def test_the_loops_of_a_block_are_the_inner_ones_that_fit() -> None:
    (long,) = one_sum(9, 64, 32).src
    outer, middle, inner = long.bound
    assert split_loops_at_blocks(long) == ((outer,), (middle, inner))
    (short,) = one_sum(64, 32).src
    assert split_loops_at_blocks(short) == ((), short.bound)


def test_unrolled_steps_that_share_an_accumulator_count() -> None:
    loop, unrolled = make_range(0, 4096, AxisKind.REDUCE), make_range(1, 32, AxisKind.UNROLL)
    value = loop.cast(dtypes.float32) + unrolled.cast(dtypes.float32)
    total = UOp(Ops.REDUCE, dtypes.float32, (value, loop, unrolled), Ops.ADD)
    assert chain_count(1, 32) == 8  # so each takes four steps at a time
    body = strip_mine_sums(UOp(Ops.SINK, dtypes.void, (total,)))
    assert sizes_of(body) == [[8, MAX_BLOCK_STEPS // 4, 32]]


def test_maxima_are_not_blocked() -> None:
    loop = make_range(0, 1 << 20, AxisKind.REDUCE)
    value = loop.cast(dtypes.float32)
    body = UOp(Ops.SINK, dtypes.void, (UOp(Ops.REDUCE, dtypes.float32, (value, loop), Ops.MAX),))
    assert strip_mine_sums(body) is body


def test_an_accumulator_does_not_saturate() -> None:
    assert Tensor([1.0, 2.0]).realize().repeat(2**25).sum().item() == 1.5 * 2**26
    assert Tensor([1.0, 2.0]).realize().repeat(2**25).mean().item() == 1.5


@pytest.mark.parametrize("rows", [100_000, 100_003, 1 << 17])
@pytest.mark.parametrize("columns", [1, 3, 16, 64])
def test_sums_along_any_axis_keep_the_error_bound(rows: int, columns: int) -> None:
    x = np.full((rows, columns), 0.1, np.float32)  # all rounding errors have the same sign
    wanted = x.astype(np.float64).sum(0)
    tall, wide = Tensor(x).realize(), Tensor(x.T.copy()).realize()
    for found in (tall.sum(0), wide.sum(1), (tall + 0.0).exp().log().sum(0)):
        np.testing.assert_allclose(found.numpy(), wanted, rtol=BOUND)


def test_products_of_long_rows_keep_the_error_bound() -> None:
    x = np.full((8, 200_000), 0.1, np.float32)
    wanted = x.astype(np.float64) @ x.T.astype(np.float64)
    t = Tensor(x).realize()
    np.testing.assert_allclose((t @ t.T).numpy(), wanted, rtol=BOUND)
    columns = Tensor(x.T.copy()).realize()
    np.testing.assert_allclose((columns.T @ columns).numpy(), wanted, rtol=BOUND)
    np.testing.assert_allclose((t[0] * t[1]).sum().item(), wanted[0, 1], rtol=BOUND)


def test_several_sums_and_a_maximum_share_their_blocks() -> None:
    x = np.linspace(0.5, 1.0, 100_003, dtype=np.float32)
    t = Tensor(x).realize()
    total, squares, largest = t.sum(), (t * t).sum(), t.max()
    Tensor.realize(total, squares, largest)
    np.testing.assert_allclose(total.item(), x.astype(np.float64).sum(), rtol=BOUND)
    np.testing.assert_allclose(squares.item(), (x.astype(np.float64) ** 2).sum(), rtol=BOUND)
    assert largest.item() == 1.0


@pytest.mark.parametrize("shape", [(1 << 20,), (3, 300_001), (300_000, 4)])
def test_running_sums_keep_the_error_bound(shape: tuple[int, ...]) -> None:
    x = np.full(shape, 0.1, np.float32)
    axis = int(np.argmax(shape))
    wanted = np.cumsum(x.astype(np.float64), axis)
    np.testing.assert_allclose(Tensor(x).cumsum(axis).numpy(), wanted, rtol=BOUND)


def test_long_low_precision_sums_are_computed_in_float32() -> None:
    x = Tensor(np.full(1 << 17, 0.25, np.float32)).cast("bfloat16").realize()
    assert x.sum().item() == 1 << 15
