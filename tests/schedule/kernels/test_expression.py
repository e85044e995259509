"""Scalar expressions: loads are gated, and padding is zero."""

from __future__ import annotations

from random import Random

import numpy as np
from support.compiler.schedules import leaf, right
from support.random.graphs import STEPS, random_graph
from support.random.movement import step_gather, step_pad, step_shrink, step_window_adjoint

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp, make_range
from glassgrad.schedule.kernels.expression import Expressions
from glassgrad.schedule.movement import Indices


def expression(node: UOp) -> UOp:
    """The value of a node at its own ranges; buffers are read as PARAMs would be."""

    def read(found: UOp, indices: Indices, gate: UOp | None) -> UOp:
        return found.index(*indices, gate=gate).load()

    axes = tuple(make_range(axis, n) for axis, n in enumerate(node.shape))
    return Expressions(lambda found: found.op is Ops.BUFFER, read, lambda _: (0, 0)).build(
        node, axes
    )


def pad(x: UOp, *pairs: tuple[int, int]) -> UOp:
    return UOp(Ops.PAD, x.dtype, (x,), pairs)


def gates(value: UOp) -> list[UOp | None]:
    return [node.gate for node in value.toposort() if node.op is Ops.INDEX]


def count(value: UOp, op: Ops) -> int:
    return sum(node.op is op for node in value.toposort())


def test_a_padded_load_is_gated_and_needs_no_choice() -> None:
    value = expression(pad(leaf(np.ones((4, 5))), (1, 0), (0, 0)))
    assert value.op is Ops.LOAD
    (gate,) = gates(value)
    assert gate is not None
    assert count(value, Ops.WHERE) == 0


def test_padding_a_computed_value_chooses_zero_outside() -> None:
    """exp2(0) is 1, but outside of what is padded stands 0."""
    value = expression(pad(leaf(np.ones(4)).alu(Ops.EXP2), (1, 1)))
    assert value.op is Ops.WHERE
    assert value.src[2].arg == 0
    assert all(gate is not None for gate in gates(value))


def test_unpadded_axes_are_read_without_a_gate() -> None:
    image, scale = leaf(np.ones((3, 4))), leaf(np.ones((3, 1)))
    value = expression(pad(image * scale, (0, 0), (1, 1)))
    found = {node.src[0]: node.gate for node in value.toposort() if node.op is Ops.INDEX}
    assert found[image] is not None and found[scale] is None
    assert expression(pad(image * scale, (1, 1), (0, 0))).op is Ops.WHERE
    moved = expression(pad(image * scale, (1, 1), (0, 0)))
    assert all(gate is not None for gate in gates(moved)), "both have no row before the first"
    right([pad(image * scale, (0, 0), (1, 1))])


def test_padding_a_constant_loads_nothing() -> None:
    ones = UOp(Ops.RESHAPE, dtypes.float32, (UOp(Ops.CONST, dtypes.float32, (), 1.0),), (1,))
    x = UOp(Ops.EXPAND, dtypes.float32, (ones,), (4,))
    value = expression(pad(x, (2, 1)))
    assert value.op is Ops.WHERE
    assert count(value, Ops.LOAD) == 0


def test_reads_entirely_in_the_padding_are_zero() -> None:
    x = pad(leaf(np.ones(4)).alu(Ops.EXP2), (3, 0))
    outside = UOp(Ops.SHRINK, x.dtype, (x,), ((0, 2),))
    value = expression(outside)
    assert count(value, Ops.LOAD) == count(value, Ops.EXP2) == 0


def test_an_inner_gate_holds_for_everything_outside_of_it() -> None:
    """A sum of two padded values: each load has its own gate and that of the whole."""
    x, y = leaf(np.ones(4)), leaf(np.ones(2))
    value = expression(pad(x + pad(y, (1, 1)), (2, 2)))
    conditions = [gate for gate in gates(value) if gate is not None]
    assert len(conditions) == 2
    assert len(set(conditions)) == 2


def test_positions_are_the_index_itself() -> None:
    value = expression(UOp(Ops.IOTA, dtypes.int32, (), 9))
    assert value.op is Ops.CAST
    assert value.src[0].op is Ops.RANGE


def test_a_gather_reads_its_index_before_its_source() -> None:
    x, index = leaf(np.arange(5.0)), leaf([3, 9, -1, 0], "int32")
    value = expression(UOp(Ops.GATHER, x.dtype, (x, index), 0))
    assert value.op is Ops.LOAD
    assert value.src[0].gate is not None
    assert count(value, Ops.LOAD) == 2


def test_gathers_of_gathers_read_the_right_elements() -> None:
    x, index = leaf(np.arange(1.0, 6.0)), leaf([3, 9, -1, 0, 2], "int32")
    once = UOp(Ops.GATHER, x.dtype, (x, index), 0)
    moved = UOp(Ops.GATHER, index.dtype, (index, leaf([4, 4, 1, 0], "int32")), 0)
    right([UOp(Ops.GATHER, x.dtype, (once, moved), 0), pad(once, (1, 2)).alu(Ops.EXP2)])


def test_a_value_that_is_used_twice_is_built_once() -> None:
    powers = leaf(np.ones(4)).alu(Ops.EXP2)
    value = expression(powers * powers)
    assert value.src[0] is value.src[1]


def test_a_deep_chain_is_built_without_recursion() -> None:
    x = leaf(np.ones(4))
    for _ in range(5_000):
        x = x + 1.0
    assert count(expression(x), Ops.ADD) == 5_000


def test_no_load_leaves_its_buffer_in_graphs_full_of_guards() -> None:
    """The reference that runs the kernels refuses an index outside whose gate is open."""
    steps = dict(STEPS) | {step_pad: 20, step_window_adjoint: 10, step_gather: 15, step_shrink: 10}
    for seed in range(60):
        right(random_graph(Random(seed), 14, steps=steps))
