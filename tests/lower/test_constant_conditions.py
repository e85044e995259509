"""Unroll copies and lanes fold their conditions."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiler.nests import move, nest_of, numbers
from support.compiler.programs import all_of, count, program_of

from glassgrad import Tensor
from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp, const
from glassgrad.loops.opts import OptOps
from glassgrad.lower.constant_conditions import (
    constant_lanes,
    fold_constants,
    fold_logic,
    uniform_scalar,
    uniform_truth,
)

YES, NO = const(True, dtypes.bool), const(False, dtypes.bool)
UNKNOWN = UOp(Ops.LOAD, dtypes.bool, (UOp(Ops.SCRATCH, dtypes.bool, (), (0, 1, 0, False)),))


def stack(*values: int) -> UOp:
    sources = tuple([const(value, dtypes.int64) for value in values])
    return UOp(Ops.STACK, dtypes.int64.vec(len(values)), sources)


def test_lanes_are_known_for_constants_and_vectors_of_them() -> None:
    assert constant_lanes(const(3, dtypes.int64)) == (3,)
    assert constant_lanes(stack(1, 2)) == (1, 2)
    assert constant_lanes(UNKNOWN) is None


def test_a_uniform_truth_needs_equal_lanes() -> None:
    two = dtypes.bool.vec(2)
    assert uniform_truth(YES) is True
    assert uniform_truth(UOp(Ops.STACK, two, (NO, NO))) is False
    assert uniform_truth(UOp(Ops.STACK, two, (YES, NO))) is None
    assert uniform_truth(UNKNOWN) is None


def test_a_scalar_in_every_lane_is_one() -> None:
    two = dtypes.bool.vec(2)
    assert uniform_scalar(UOp(Ops.STACK, two, (UNKNOWN, UNKNOWN))) is UNKNOWN
    assert uniform_scalar(UNKNOWN) is UNKNOWN
    assert uniform_scalar(UOp(Ops.STACK, two, (UNKNOWN, YES))) is None


def test_one_constant_operand_may_decide() -> None:
    assert fold_logic(Ops.AND, (YES, UNKNOWN)) is UNKNOWN
    assert fold_logic(Ops.AND, (UNKNOWN, NO)) is NO
    assert fold_logic(Ops.OR, (YES, UNKNOWN)) is YES
    assert fold_logic(Ops.OR, (UNKNOWN, NO)) is UNKNOWN
    assert fold_logic(Ops.XOR, (YES, UNKNOWN)) is None
    assert fold_logic(Ops.AND, (const(3, dtypes.int64), const(5, dtypes.int64))) is None


def test_lanes_are_folded_one_by_one() -> None:
    less = fold_constants(Ops.CMPLT, dtypes.bool.vec(3), (stack(1, 2, 3), stack(2, 2, 2)), False)
    assert less is not None
    assert constant_lanes(less) == (True, False, False)
    total = fold_constants(Ops.ADD, dtypes.int64.vec(2), (stack(1, 2), stack(10, 20)), True)
    assert total is not None
    assert constant_lanes(total) == (11, 22)


def test_arithmetic_on_data_is_left_to_the_machine() -> None:
    assert fold_constants(Ops.ADD, dtypes.int64, (stack(1).src[0], stack(2).src[0]), False) is None


def padded_row() -> UOp:
    x = numbers(4, 14)
    return UOp(Ops.PAD, x.dtype, (x,), ((0, 0), (1, 1))) * 2.0


def test_only_the_ends_of_a_fully_unrolled_padded_row_have_masks() -> None:
    program = program_of(move(nest_of(padded_row()), OptOps.UPCAST, 1, 16))
    gates = [load.src[0].gate for load in all_of(program, Ops.LOAD)]
    assert len(gates) == 2
    assert all(gate is not None and constant_lanes(gate) is not None for gate in gates)
    assert count(program, Ops.CMPLT) == 0


@pytest.mark.parametrize("width", [14, 30, 46])
def test_padding_leaves_zeros_around(width: int) -> None:
    x = np.arange(5 * width, dtype=np.float32).reshape(5, width) + 1
    found = Tensor(x).pad(((1, 2), (1, 1))) * 2
    np.testing.assert_array_equal(found.numpy(), np.pad(x, ((1, 2), (1, 1))) * 2)
