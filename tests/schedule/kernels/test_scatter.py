"""Gradients of lookups: scattered additions."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiler.nests import GPU
from support.compiler.schedules import TARGET, leaf, memory, planned, reduce, right

from glassgrad import Tensor, dtypes
from glassgrad.engine.pipeline import realize
from glassgrad.ir.facts import identity
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp, const
from glassgrad.schedule import schedule
from glassgrad.schedule.kernels.scatter import MIN_TABLE_ROWS, scatter_kernel


def table_gradient(rows: int, indices: list[int], width: int = 3) -> UOp:
    """result[v] = sum over n of x[n] where indices[n] == v"""
    count = len(indices)
    x = leaf(np.arange(1.0, count * width + 1).reshape(count, 1, width))
    index = leaf(np.array(indices).reshape(count, 1, 1), "int32")
    line = UOp(Ops.RESHAPE, dtypes.int32, (UOp(Ops.IOTA, dtypes.int32, (), rows),), (rows, 1))
    hit = UOp(Ops.CMPEQ, dtypes.bool, (line, index))
    return reduce(hit.where(x, const(0, x.dtype)), Ops.ADD, 0)


def adds(roots: list[UOp]) -> int:
    """The stores that add to memory."""
    kernels = schedule(roots, TARGET).kernels
    return sum(store.arg is Ops.ADD for kernel in kernels for store in kernel.body.src)


def test_a_sum_over_one_hots_is_a_scatter() -> None:
    root = table_gradient(100, [3, 99, 3, 0, 3])
    assert adds([root]) == 1
    right([root])


def test_indices_outside_of_the_table_add_nothing() -> None:
    right([table_gradient(100, [-1, 100, 5, 1000, -50])])


def test_a_small_table_keeps_its_loop() -> None:
    root = table_gradient(MIN_TABLE_ROWS - 1, [3, 1, 3])
    assert adds([root]) == 0
    right([root])


def test_other_uses_of_a_scattered_sum_come_after_it() -> None:
    root = table_gradient(100, [3, 99, 3, 0, 3])
    right([root * 2.0 + 1.0, reduce(root, Ops.ADD, 0)])


def test_compiled_additions_are_right_at_repeated_indices() -> None:
    rng = np.random.default_rng(0)
    indices = rng.integers(-2, 130, 500).tolist()
    root = table_gradient(128, indices, 5)
    (view,) = realize([root])
    want = np.zeros((128, 5), np.float32)
    values = np.arange(1.0, 2501.0).reshape(500, 5)
    for place, row in zip(indices, values, strict=True):
        if 0 <= place < 128:
            want[place] += row
    np.testing.assert_allclose(view.numpy(), want, rtol=1e-6)


@pytest.mark.parametrize("width", [64, 128])
def test_the_gradient_of_an_embedding_never_walks_over_table_and_lookups(width: int) -> None:
    table = memory(5000, width)
    found = table[memory(256, dtype=dtypes.int32)]
    (gradient,) = (found * memory(256, width)).sum().gradient(table)
    made = planned(gradient)
    for kernel in made.kernels:
        for node in kernel.body.toposort():
            if node.op is Ops.STORE:
                steps = np.prod([r.size for r in node.bound])
                assert steps <= 5000 * width, "no more than to clear the table"


def test_a_kernel_without_one_hots_is_left_alone() -> None:
    (kernel,) = schedule([reduce(leaf(np.ones((100, 4))), Ops.ADD, 1)], TARGET).kernels
    assert scatter_kernel(kernel, TARGET) is None


def test_gradients_through_tensors_match_numpy() -> None:
    indices = [1, 70, 1, 99]
    table = Tensor(np.ones((100, 2), np.float32)).realize()
    (gradient,) = table[Tensor(indices)].sum().gradient(table)
    want = np.zeros((100, 2), np.float32)
    np.add.at(want, indices, 1)
    np.testing.assert_array_equal(gradient.numpy(), want)


@pytest.mark.parametrize("op", [Ops.MUL, Ops.MAX, Ops.MIN])
def test_other_reductions_are_scattered(op: Ops) -> None:
    x = leaf(np.arange(1.0, 6.0).reshape(5, 1))
    index = leaf(np.array([[3], [99], [3], [0], [3]]), "int32")
    hit = UOp(Ops.CMPEQ, dtypes.bool, (UOp(Ops.IOTA, dtypes.int32, (), 100), index))
    root = reduce(hit.where(x, const(identity(op, x.dtype), x.dtype)), op, 0)
    (kernel,) = right([root]).kernels
    assert [store.arg for store in kernel.body.src] == [None, op]
    other = reduce(hit.where(x, const(2.5, x.dtype)), op, 0)
    (kernel,) = right([other]).kernels
    assert [store.arg for store in kernel.body.src] == [None], "2.5 is not nothing"


def test_added_values_may_depend_on_the_index() -> None:
    x, table = leaf(np.arange(1.0, 6.0).reshape(5, 1)), leaf(np.arange(100.0))
    index = leaf(np.array([[3], [99], [3], [0], [100]]), "int32")
    hit = UOp(Ops.CMPEQ, dtypes.bool, (UOp(Ops.IOTA, dtypes.int32, (), 100), index))
    root = reduce(hit.where(x * table, const(0, x.dtype)), Ops.ADD, 0)
    assert adds([root]) == 1
    right([root])


def written(rows: int, indices: list[int], width: int = 3) -> UOp:
    """result[v] = x[n] for the last n with indices[n] == v, or the old contents"""
    count = len(indices)
    x = leaf(np.arange(1.0, count * width + 1).reshape(count, 1, width))
    before = leaf(-np.arange(1.0, rows * width + 1).reshape(rows, width))
    index = leaf(np.array(indices).reshape(count, 1, 1), "int32")
    line = UOp(Ops.RESHAPE, dtypes.int32, (UOp(Ops.IOTA, dtypes.int32, (), rows),), (rows, 1))
    hit = UOp(Ops.CMPEQ, dtypes.bool, (line, index))
    return reduce(hit.where(x, before), Ops.ASSIGN, 0)


@pytest.mark.parametrize("indices", [[3, 99, 3, 0, 3], [-1, 100, 5, 1000, -50], [7] * 9])
def test_indexed_writes_happen_in_order(indices: list[int]) -> None:
    root = written(100, indices)
    (kernel,) = schedule([root], TARGET).kernels
    assert [store.arg for store in kernel.body.src] == [None, Ops.ASSIGN]
    right([root])


def test_rows_are_written_along_memory_where_one_core_does_it_all() -> None:
    (kernel,) = schedule([written(100, [3, 99, 3], 5)], TARGET).kernels
    assert [[r.size for r in store.bound] for store in kernel.body.src] == [[100, 5], [3, 5]]
    (threads,) = schedule([written(100, [3, 99, 3], 5)], GPU).kernels
    assert [r.size for r in threads.outer] == [5]


@pytest.mark.parametrize("indices", [[3, 1, 3], [1], [0, -1, 40, 2, 2]])
def test_for_small_tables_the_last_step_is_found_with_max(indices: list[int]) -> None:
    root = written(MIN_TABLE_ROWS - 1, indices)
    kernels = schedule([root], TARGET).kernels
    nodes = [node for kernel in kernels for node in kernel.body.toposort()]
    assert not [n for n in nodes if n.op is Ops.REDUCE and n.arg is Ops.ASSIGN]
    right([root])
    right([root * 2.0, reduce(root, Ops.ADD, 0)])
