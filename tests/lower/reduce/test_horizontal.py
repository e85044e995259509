"""The lanes of several vectors are combined together, with whole-vector operations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from support.compiler.nests import move, row_sums
from support.compiler.programs import count, program_of

from glassgrad import Tensor
from glassgrad.base.dtype import DType, dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Param
from glassgrad.ir.uop import UOp, const
from glassgrad.loops.opts import OptOps
from glassgrad.lower.reduce.horizontal import combine_lanes
from glassgrad.lower.scope import Scopes

JOIN = {Ops.ADD: lambda a, b: f"({a}{b})", Ops.MAX: lambda a, b: f"[{a}{b}]"}


def vectors(amount: int, dtype: DType, lanes: int) -> list[UOp]:
    buffer = UOp(Ops.PARAM, dtype, (), Param(0, (amount * lanes,), (1,)))
    places = [UOp(Ops.INDEX, dtype, (buffer, const(i, dtypes.long))) for i in range(amount)]
    return [UOp(Ops.LOAD, dtype.vec(lanes), (place,)) for place in places]


def lane_texts(node: UOp, names: dict[UOp, list[str]]) -> list[str]:
    """The lanes of an instruction as letters."""
    if node in names:
        return names[node]
    parts = [lane_texts(source, names) for source in node.src]
    if node.op is Ops.GEP:
        return [parts[0][node.arg]]
    if node.op is Ops.SHUFFLE:
        return [(parts[0] + parts[1])[i] for i in node.arg]
    return [JOIN[node.op](a, b) for a, b in zip(*parts, strict=True)]


def tree(op: Ops, letters: Sequence[str]) -> str:
    while len(letters) > 1:
        pairs = zip(letters[::2], letters[1::2], strict=True)
        letters = [JOIN[op](a, b) for a, b in pairs]
    return letters[0]


@pytest.mark.parametrize("op", [Ops.ADD, Ops.MAX])
@pytest.mark.parametrize("dtype", [dtypes.float64, dtypes.float32, dtypes.int16])
@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
@pytest.mark.parametrize("amount", [1, 2, 3, 4, 6, 8, 11, 16, 20])
def test_neighbouring_lanes_are_combined_first(
    amount: int, lanes: int, dtype: DType, op: Ops
) -> None:
    rows = vectors(amount, dtype, lanes)
    names = {row: [f"{r}.{i} " for i in range(lanes)] for r, row in enumerate(rows)}
    found = combine_lanes(Scopes(), op, rows)
    assert [lane_texts(one, names) for one in found] == [[tree(op, names[row])] for row in rows]


def test_other_numbers_of_lanes_are_combined_one_by_one() -> None:
    rows = vectors(4, dtypes.float32, 6)
    names = {row: [f"{r}{i}" for i in range(6)] for r, row in enumerate(rows)}
    (text,) = lane_texts(combine_lanes(Scopes(), Ops.ADD, rows)[1], names)
    assert text == "(((1011)(1213))(1415))"


def test_eight_rows_take_seven_additions_and_one_takes_no_shuffle() -> None:
    program = program_of(move(move(row_sums(16, 64), OptOps.UNROLL, 1, 8), OptOps.UPCAST, 0, 8))
    assert count(program, Ops.SHUFFLE) == 14
    assert count(program, Ops.ADD) == 8 + 7, "a step of each sum, and then all lanes"
    assert count(program, Ops.GEP) == 8
    alone = program_of(move(row_sums(16, 64), OptOps.UNROLL, 1, 8))
    assert count(alone, Ops.SHUFFLE) == 0 and count(alone, Ops.GEP) == 8


def test_the_largest_lane_of_one_vector_takes_four_steps() -> None:
    """A maximum looks for nan, too: 15 of them would be 45 instructions."""
    (row,) = vectors(1, dtypes.float32, 16)
    (found,) = combine_lanes(Scopes(), Ops.MAX, [row])
    assert sum(node.op is Ops.MAX for node in found.toposort()) == 4
    (total,) = combine_lanes(Scopes(), Ops.ADD, [row])
    assert sum(node.op is Ops.ADD for node in total.toposort()) == 15


@pytest.mark.parametrize("rows", [1, 3, 4, 7, 8, 12, 33])
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int32])
def test_sums_of_products_and_of_rows_are_right(rows: int, kind: type) -> None:
    rng = np.random.default_rng(rows)
    x = rng.integers(-9, 9, (rows, 96)).astype(kind)
    y = rng.integers(-9, 9, (5, 96)).astype(kind)
    np.testing.assert_array_equal((Tensor(x) @ Tensor(y).T).numpy(), x @ y.T)
    wide = Tensor(x).reshape(rows, 96)
    np.testing.assert_array_equal(
        (wide - wide.max(1, keepdim=True)).sum(1).numpy(), (x - x.max(1, keepdims=True)).sum(1)
    )
