"""In-place writes: every reader of a buffer sees the version that the graph specifies."""

from __future__ import annotations

import numpy as np
from support.compiler.schedules import assign, leaf, reduce, right

from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp

NUMBERS = np.arange(12.0).reshape(3, 4)


def flipped(x: UOp, *axes: int) -> UOp:
    return UOp(Ops.FLIP, x.dtype, (x,), axes)


def shrunk(x: UOp, *box: tuple[int, int]) -> UOp:
    return UOp(Ops.SHRINK, x.dtype, (x,), box)


def test_an_update_in_place_is_one_kernel_that_reads_and_writes_one_buffer() -> None:
    x = leaf(NUMBERS)
    made = right([assign(x, x * 2.0 + 1.0)])
    assert len(made.kernels) == 1
    assert made.buffers == ((x,),)
    assert made.kernels[0].may_alias


def test_a_write_of_something_else_does_not_rewrite() -> None:
    x, y = leaf(NUMBERS), leaf(NUMBERS)
    assert not right([assign(x, y + 1.0)]).kernels[0].may_alias


def test_a_read_before_the_write_sees_the_old_contents() -> None:
    x = leaf(NUMBERS)
    right([assign(x, x + 1.0), x * 3.0])
    right([reduce(x, Ops.ADD, 0, 1), assign(x, x + 1.0)])


def test_a_read_after_the_write_sees_the_new_contents() -> None:
    x = leaf(NUMBERS)
    written = assign(x, x + 1.0)
    right([written, written * 3.0, reduce(written, Ops.MAX, 0)])


def test_old_and_new_contents_in_one_expression() -> None:
    x = leaf(NUMBERS)
    written = assign(x, x * 2.0)
    right([written, written - x])
    right([written, flipped(written, 0) - x])
    right([written, written - flipped(x, 1)])


def test_an_assignment_that_overlaps_itself_goes_through_memory_of_its_own() -> None:
    x = leaf(NUMBERS)
    made = right([assign(x, flipped(x, 0))])
    assert len(made.kernels) == 2
    shifted = UOp(Ops.PAD, x.dtype, (shrunk(x, (0, 3), (0, 3)),), ((0, 0), (1, 0)))
    right([assign(x, shifted)])


def test_a_part_is_moved_within_its_own_buffer() -> None:
    x = leaf(NUMBERS)
    to_the_right = (Ops.SHRINK, ((0, 3), (1, 4)))
    made = right([assign(x, shrunk(x, (0, 3), (0, 3)), to_the_right)])
    assert len(made.kernels) == 2


def test_a_part_is_changed_where_it_is_without_a_copy() -> None:
    x = leaf(NUMBERS)
    part = (Ops.SHRINK, ((1, 2), (0, 4)))
    made = right([assign(x, shrunk(x, (1, 2), (0, 4)) * 5.0, part)])
    assert len(made.kernels) == 1


def test_two_buffers_are_swapped() -> None:
    x, y = leaf(NUMBERS), leaf(-NUMBERS)
    right([assign(x, y), assign(y, x)])
    right([assign(x, flipped(y, 0, 1)), assign(y, flipped(x, 0))])


def test_three_buffers_are_rotated() -> None:
    x, y, z = leaf(NUMBERS), leaf(-NUMBERS), leaf(NUMBERS * 7)
    right([assign(x, y), assign(y, z), assign(z, x)])


def test_writes_to_one_buffer_happen_in_order() -> None:
    x = leaf(NUMBERS)
    first = assign(x, x + 1.0)
    second = assign(first, first * first)
    third = assign(second, leaf([9.0] * 3), (Ops.SHRINK, ((0, 3), (2, 3))), (Ops.RESHAPE, (3,)))
    right([third, first + second, x * 1.0])


def test_a_sum_of_old_contents_is_subtracted_in_place() -> None:
    x = leaf(NUMBERS)
    total = UOp(Ops.RESHAPE, x.dtype, (reduce(x, Ops.ADD, 1),), (3, 1))
    right([assign(x, x - total)])
    across = UOp(Ops.RESHAPE, x.dtype, (reduce(x, Ops.ADD, 0),), (1, 4))
    right([assign(x, x - across)])


def test_a_write_through_flips_and_permutes_lands_where_it_should() -> None:
    x = leaf(NUMBERS)
    value = leaf(np.arange(6.0).reshape(2, 3) * 10)
    chain = ((Ops.SHRINK, ((0, 3), (1, 3))), (Ops.FLIP, (0,)), (Ops.PERMUTE, (1, 0)))
    right([assign(x, value, *chain)])


def test_momentum_and_parameter_are_updated_together() -> None:
    weight, momentum, gradient = leaf(NUMBERS), leaf(NUMBERS * 0.5), leaf(-NUMBERS)
    moved = assign(momentum, momentum * 0.5 + gradient)
    made = right([moved, assign(weight, weight - moved * 0.25)])
    assert len(made.kernels) == 1
