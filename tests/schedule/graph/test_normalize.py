"""Normalization: computed values, DETACH, reductions of nothing."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiler.schedules import assign, leaf, reduce, right
from support.references.graph import evaluate

from glassgrad.base.dtype import dtypes
from glassgrad.ir.facts import identity
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.schedule.graph.normalize import normalize


def test_a_computed_value_is_read_from_its_buffer() -> None:
    x, held = leaf([1.0, 2.0]), leaf([2.0, 3.0])
    more = x + 1.0
    more.realized = held
    (found,) = normalize([more * 2.0])
    assert found.src[0] is held
    more.realized = None


def test_detach_is_gone() -> None:
    x = leaf([1.0])
    assert normalize([UOp(Ops.DETACH, x.dtype, (x,)) + 1.0]) == [x + 1.0]


def test_reshapes_in_a_row_become_one_or_none() -> None:
    x = leaf(np.zeros((4, 6)))
    wide = UOp(Ops.RESHAPE, x.dtype, (x,), (24,))
    (found,) = normalize([UOp(Ops.RESHAPE, x.dtype, (wide,), (2, 12))])
    assert found.src[0] is x
    assert normalize([UOp(Ops.RESHAPE, x.dtype, (wide,), (4, 6))]) == [x]


@pytest.mark.parametrize("op", [Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN])
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
def test_a_reduction_of_nothing_is_its_identity(op: Ops, dtype: str) -> None:
    node = reduce(leaf(np.zeros((3, 0)), dtype), op, 1)
    (found,) = normalize([node])
    assert found.op is Ops.EXPAND
    np.testing.assert_array_equal(evaluate(found), evaluate(node))
    (scalar,) = normalize([reduce(leaf(np.zeros((0, 2)), dtype), op, 0, 1)])
    assert scalar.is_const


def test_identities_are_what_changes_nothing() -> None:
    assert identity(Ops.ADD, dtypes.int32) == 0
    assert identity(Ops.MUL, dtypes.float32) == 1
    assert identity(Ops.MAX, dtypes.int8) == -128
    assert identity(Ops.MIN, dtypes.float32) == float("inf")


def test_origins_survive() -> None:
    x = leaf([1.0])
    gone = UOp(Ops.DETACH, x.dtype, (x,))
    node = gone * 3.25
    node.origin = "train.py:3"
    (found,) = normalize([node])
    assert found is not node
    assert found.origin == "train.py:3"


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (1, 5, 1), (3, 1), (0,), (2, 0, 3)])
def test_odd_shapes_are_scheduled(shape: tuple[int, ...]) -> None:
    x = leaf(np.ones(shape))
    every = tuple(range(len(shape)))
    roots = [x + 1.0, x * x]
    if shape:
        roots.append(reduce(x + 2.0, Ops.ADD, *every) * 2.0)
        roots.append(reduce(x, Ops.MAX, 0))
    right(roots)


def test_values_without_elements_need_no_kernel() -> None:
    made = right([leaf(np.ones((0, 4))) + 1.0])
    assert made.kernels == ()


def test_a_write_of_no_elements_is_the_version_before_it() -> None:
    x = leaf(np.arange(6.0))
    doubled = assign(x, x * 2.0)
    nothing = UOp(Ops.SHRINK, x.dtype, (x,), ((1, 1),))
    again = assign(doubled, nothing, (Ops.SHRINK, ((3, 3),)))
    assert normalize([again]) == [doubled]
    made = right([again + 1.0, again])
    assert [node.op for node in made.outputs] == [Ops.ADD, Ops.ASSIGN]
    right([assign(leaf(np.arange(6.0)), nothing, (Ops.SHRINK, ((3, 3),)))])
