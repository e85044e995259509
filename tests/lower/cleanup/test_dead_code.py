"""Instructions whose results are unused are removed."""

from __future__ import annotations

from support.compiler.nests import nest_of, numbers
from support.compiler.programs import all_of, count, program_of
from support.compiler.schedules import TARGET

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Nest
from glassgrad.ir.uop import UOp, const
from glassgrad.loops.moves.table import apply_moves
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.lower.cleanup.dead_code import eliminate_dead_code


def sorting_network() -> Nest:
    """y[0] = min(x[0], x[1]), y[1] = max(x[0], x[1]) of 32 pairs of vectors."""
    x = numbers(32, 2, 8)
    other = UOp(Ops.FLIP, x.dtype, (x,), (1,))
    line = UOp(Ops.RESHAPE, dtypes.int32, (UOp(Ops.IOTA, dtypes.int32, (), 2),), (1, 2, 1))
    is_low = line.eq(UOp(Ops.CONST, dtypes.int32, (), 0))
    return nest_of(is_low.where(x.alu(Ops.MIN, other), x.alu(Ops.MAX, other)))


def test_a_condition_on_an_unrolled_axis_leaves_one_branch_per_unroll_copy() -> None:
    plain = program_of(sorting_network())
    assert count(plain, Ops.WHERE) == count(plain, Ops.MIN) == count(plain, Ops.MAX) == 1
    both = apply_moves(sorting_network(), (Opt(OptOps.UPCAST, 1, 2),), TARGET)
    program = program_of(both)
    assert count(program, Ops.WHERE) == count(program, Ops.CMPEQ) == 0
    assert [count(program, op) for op in (Ops.LOAD, Ops.MIN, Ops.MAX, Ops.STORE)] == [2, 1, 1, 2]


def test_used_instructions_keep_their_order() -> None:
    lines = list(program_of(sorting_network()).uops)
    assert eliminate_dead_code(lines) == lines


def test_an_unused_instruction_is_removed_with_its_operands() -> None:
    lines = list(program_of(sorting_network()).uops)
    number = const(77, dtypes.int32)
    twice = number + number
    (store,) = all_of(program_of(sorting_network()), Ops.STORE)
    place = lines.index(store)
    assert eliminate_dead_code([*lines[:place], number, twice, *lines[place:]]) == lines
