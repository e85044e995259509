"""Split reductions: the same value, and parts that depend on the shape alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.compiler.schedules import TARGET, leaf, memory, reduce
from support.references.graph import evaluate

from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.schedule import schedule
from glassgrad.schedule.graph import split_reduction as long
from glassgrad.schedule.graph.split_reduction import (
    MIN_MATRIX_ELEMENTS,
    MIN_PARALLEL_RESULTS,
    MIN_SPLIT_LENGTH,
    PARTS,
    split_reduction,
    split_scan,
)
from glassgrad.tensor.lazy.collect import collect_values

REDUCING = (Ops.ADD, Ops.MAX, Ops.MIN)


def empty(*shape: int) -> UOp:
    return leaf(np.zeros(shape))


def test_a_short_reduction_stays_one() -> None:
    node = reduce(empty(MIN_SPLIT_LENGTH - 1), Ops.ADD, 0)
    assert split_reduction(node) is node


def test_a_reduction_with_many_results_stays_one() -> None:
    node = reduce(empty(MIN_PARALLEL_RESULTS, MIN_SPLIT_LENGTH), Ops.ADD, 1)
    assert split_reduction(node) is node


def test_a_long_line_becomes_sixty_four_parts() -> None:
    made = split_reduction(reduce(empty(MIN_SPLIT_LENGTH), Ops.ADD, 0))
    assert made.op is Ops.REDUCE and made.src[0].op is Ops.REDUCE
    assert made.src[0].shape == (PARTS,)


def test_the_remainder_of_a_split_reduction_is_added_at_the_end() -> None:
    made = split_reduction(reduce(empty(MIN_SPLIT_LENGTH + 7), Ops.MAX, 0))
    assert made.op is Ops.MAX
    assert made.src[1].src[0].shape == (
        MIN_SPLIT_LENGTH + 7 - (MIN_SPLIT_LENGTH + 7) // PARTS * PARTS,
    )


def test_a_matrix_is_reduced_by_rows_first() -> None:
    made = split_reduction(reduce(empty(256, 1024), Ops.ADD, 0, 1))
    assert made.src[0].shape == (256,)


@given(
    shape=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    first=st.integers(1, 80),
    op=st.sampled_from(REDUCING),
    data=st.data(),
)
def test_parts_give_the_same_value(
    shape: list[int], first: int, op: Ops, data: st.DataObject
) -> None:
    full = (first, *shape)
    axes = data.draw(st.sets(st.integers(0, len(full) - 1), min_size=1).map(sorted).map(tuple))
    rng = np.random.default_rng(first)
    node = reduce(leaf(rng.integers(-9, 9, full), "int32"), op, *axes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long, "MIN_SPLIT_LENGTH", 8)
        patch.setattr(long, "PARTS", 4)
        patch.setattr(long, "MIN_PARALLEL_RESULTS", 3)
        made = split_reduction(node)
    assert made.shape == node.shape
    np.testing.assert_array_equal(evaluate(made), evaluate(node))


def moved(x: UOp, op: Ops, arg: tuple[int, ...]) -> UOp:
    return UOp(op, x.dtype, (x,), arg)


def test_rows_of_a_large_matrix_are_summed_in_parts_of_whole_rows() -> None:
    matrix = empty(2048, MIN_MATRIX_ELEMENTS // 2048)
    for node in (
        reduce(matrix, Ops.ADD, 0),
        reduce(moved(matrix, Ops.PERMUTE, (1, 0)), Ops.ADD, 1),
    ):
        made = split_reduction(node)
        assert made.shape == node.shape
        assert made.src[0].op is Ops.CONTIGUOUS, "the second sum does not swallow the first"
        assert made.src[0].shape == (16, MIN_MATRIX_ELEMENTS // 2048)


def test_a_vector_times_a_large_matrix_is_summed_in_parts() -> None:
    matrix = moved(empty(2048, MIN_MATRIX_ELEMENTS // 2048), Ops.PERMUTE, (1, 0))
    product = UOp(Ops.MUL, matrix.dtype, (empty(2048), matrix))
    assert split_reduction(reduce(product, Ops.ADD, 1)).src[0].op is Ops.CONTIGUOUS


@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((MIN_MATRIX_ELEMENTS // 2048, 2048), 1),
        ((1024, 2048), 0),
        ((2049, 4096), 0),
        ((2, 2048, 2048), 1),
    ],
)
def test_columns_small_matrices_and_odd_numbers_of_rows_stay(
    shape: tuple[int, ...], axis: int
) -> None:
    node = reduce(empty(*shape), Ops.ADD, axis)
    assert split_reduction(node) is node


def test_a_matrix_that_several_results_share_stays() -> None:
    matrix = moved(moved(empty(2048, 4096), Ops.PERMUTE, (1, 0)), Ops.RESHAPE, (1, 4096, 2048))
    node = reduce(UOp(Ops.MUL, matrix.dtype, (empty(8, 1, 2048), matrix)), Ops.ADD, 2)
    assert split_reduction(node) is node


@given(
    rows=st.integers(2, 40),
    columns=st.integers(2, 9),
    is_turned=st.booleans(),
    is_product=st.booleans(),
)
def test_parts_of_rows_give_the_same_value(
    rows: int, columns: int, is_turned: bool, is_product: bool
) -> None:
    rng = np.random.default_rng(rows)
    matrix = leaf(rng.integers(-9, 9, (rows, columns)), "int32")
    x = moved(matrix, Ops.PERMUTE, (1, 0)) if is_turned else matrix
    if is_product:
        factor = leaf(rng.integers(-9, 9, x.shape[1:]), "int32")
        x = UOp(Ops.MUL, x.dtype, (factor, x))
    node = reduce(x, Ops.ADD, int(is_turned))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "MIN_MATRIX_ELEMENTS": 4,
            "ROW_PARTS": (4, 3, 2),
            "MIN_ROWS_PER_PART": 2,
        }.items():
            patch.setattr(long, name, value)
        patch.setattr(long, "MIN_PARALLEL_RESULTS", 1)
        made = split_reduction(node)
    assert made.shape == node.shape
    np.testing.assert_array_equal(evaluate(made), evaluate(node))


def scan(x: UOp, op: Ops, axis: int) -> UOp:
    return UOp(Ops.SCAN, x.dtype, (x,), (op, axis))


@pytest.mark.parametrize(
    "shape",
    [(MIN_SPLIT_LENGTH - 32,), (MIN_PARALLEL_RESULTS, MIN_SPLIT_LENGTH), (MIN_SPLIT_LENGTH + 1,)],
)
def test_a_scan_that_is_short_has_rows_or_no_equal_parts_stays_one(shape: tuple[int, ...]) -> None:
    node = scan(empty(*shape), Ops.ADD, len(shape) - 1)
    assert split_scan(node) is node


@pytest.mark.parametrize("op", [Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN])
@pytest.mark.parametrize(("shape", "axis"), [((128,), 0), ((2, 96), 1), ((96, 3), 0)])
def test_a_split_scan_equals_the_scan(
    op: Ops, shape: tuple[int, ...], axis: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long, "MIN_SPLIT_LENGTH", 64)
    monkeypatch.setattr(long, "SCAN_ALIGNMENT", 8)
    rng = np.random.default_rng(1)
    node = scan(leaf(rng.integers(1, 3, shape) * rng.choice([-1, 1], shape), "int64"), op, axis)
    made = split_scan(node)
    assert made is not node
    np.testing.assert_array_equal(evaluate(made), evaluate(node))


@pytest.mark.parametrize("cores", [1, 2])
def test_a_variance_of_many_values_reads_them_twice(cores: int) -> None:
    """For their mean, and for distances from it, whose sum and sum of squares share a kernel."""
    x = memory(1 << 20)
    roots, *_ = collect_values([x.var().uop])
    made = schedule(roots, replace(TARGET, cores=cores))
    assert [x.uop in buffers for buffers in made.buffers].count(True) == 2
