"""Each node is computed once per register, in the outermost loop that can hold it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from support.compiler.nests import GPU, added, move, nest_of, numbers, row_sums
from support.compiler.programs import all_of, count, depths, program_of
from support.compiler.schedules import TARGET, leaf, reduce

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.uop import UOp, const, make_range
from glassgrad.loops import assign_grid_axes
from glassgrad.loops.opts import OptOps
from glassgrad.lower.emit import Emitter

NATIVE = replace(TARGET, native=frozenset((Ops.SIN, Ops.EXP2)))


def test_loop_invariant_values_are_emitted_outside_of_the_loop() -> None:
    column = numbers(4, 1).alu(Ops.SIN)
    program = program_of(nest_of(numbers(4, 6) + column), NATIVE)
    assert depths(program, Ops.SIN) == [1]
    assert sorted(depths(program, Ops.LOAD)) == [1, 2]


def test_constants_come_before_all_loops() -> None:
    scalar = leaf(2.0).alu(Ops.SIN)
    program = program_of(nest_of(numbers(4, 6) * scalar), NATIVE)
    assert depths(program, Ops.SIN) == [0]


def test_a_row_sum_is_computed_once_per_row() -> None:
    x = numbers(4, 6)
    total = UOp(Ops.RESHAPE, x.dtype, (reduce(x, Ops.ADD, 1),), (4, 1))
    program = program_of(nest_of(x * total))
    assert depths(program, Ops.ACC) == [1]
    assert depths(program, Ops.ASSIGN) == [2]
    assert count(program, Ops.RANGE) == 3, "rows, the sum, and the columns"


def test_a_value_that_is_used_twice_is_computed_once() -> None:
    powers = numbers(64).alu(Ops.EXP2)
    program = program_of(nest_of(powers * powers + powers), NATIVE)
    assert count(program, Ops.EXP2) == 1
    assert count(program, Ops.LOAD) == 1


def test_an_upcast_axis_is_a_copy_of_the_code_per_element() -> None:
    nest = move(added(16, 4), OptOps.UPCAST, 0, 4)  # strided: no lanes
    program = program_of(nest)
    assert count(program, Ops.STORE) == 4
    assert count(program, Ops.ADD) == 4


def test_values_without_the_upcast_axis_are_shared_by_unroll_copies() -> None:
    x = nest_of(UOp(Ops.PERMUTE, dtypes.float32, (numbers(6, 8),), (1, 0)) + numbers(6))
    program = program_of(move(x, OptOps.UPCAST, 0, 4))
    assert count(program, Ops.STORE) == 4
    assert count(program, Ops.LOAD) == 4 + 1, "four of the matrix, one of the vector"


def test_lanes_are_vectors_on_a_cpu() -> None:
    program = program_of(move(nest_of(numbers(64) + 1.0), OptOps.UPCAST, 0, 8))
    (add,) = [u for u in all_of(program, Ops.ADD) if u.dtype.kind == "float"]
    assert add.dtype is dtypes.float32.vec(8)


def test_without_vector_arithmetic_only_loads_and_stores_are_vectors() -> None:
    machine = replace(TARGET, has_vector_alu=False, vector_bytes=16)
    program = program_of(move(nest_of(numbers(64) + 1.0), OptOps.UPCAST, 0, 4), machine)
    assert [u.dtype.count for u in all_of(program, Ops.LOAD)] == [4]
    assert {u.dtype.count for u in all_of(program, Ops.ADD)} == {1}
    assert count(program, Ops.GEP) == 4
    (store,) = all_of(program, Ops.STORE)
    assert store.src[1].op is Ops.STACK


def test_a_scalar_is_splat_where_it_meets_vectors() -> None:
    nest = nest_of(numbers(4, 64) * numbers(4, 1))
    program = program_of(move(nest, OptOps.UPCAST, 1, 8))
    assert sorted(u.dtype.count for u in all_of(program, Ops.LOAD)) == [1, 8]
    assert any(len(set(u.src)) == 1 for u in all_of(program, Ops.STACK))


def test_indices_of_lanes_are_a_constant_vector() -> None:
    line = UOp(Ops.IOTA, dtypes.int32, (), 64)
    program = program_of(move(nest_of(line * 3), OptOps.UPCAST, 0, 8))
    assert count(program, Ops.LOAD) == 0
    assert any(len(set(u.src)) == 8 for u in all_of(program, Ops.STACK))


def test_unroll_copies_are_all_values_of_unrolled_ranges() -> None:
    emitter = Emitter(TARGET, UOp(Ops.SINK, dtypes.void, ()))
    a, b = make_range(0, 2, AxisKind.UPCAST), make_range(1, 3, AxisKind.UNROLL)
    lane, loop = make_range(2, 8, AxisKind.LANE), make_range(3, 9)
    assert len(emitter.copies((a, b, lane, loop))) == 6
    assert emitter.copies((loop, lane)) == [{}]
    assert emitter.copies((a,), {b: 1}) == [{b: 1, a: 0}, {b: 1, a: 1}]
    expression = a + lane
    assert emitter.lanes(expression, {a: 0}) == 8
    assert emitter.lanes(expression, {a: 0, lane: 3}) == 1


def test_index_arithmetic_has_the_index_dtype_of_the_target() -> None:
    program = program_of(added(4, 6), replace(TARGET, index_dtype=dtypes.int32))
    assert {u.dtype for u in all_of(program, Ops.RANGE)} == {dtypes.int32}
    assert not any(u.dtype is dtypes.int64 or u.dtype.kind == "index" for u in program.uops)


def test_a_constant_result_loads_nothing() -> None:
    ones = UOp(Ops.RESHAPE, dtypes.float32, (const(1.0, dtypes.float32),), (1,))
    nest = nest_of(UOp(Ops.EXPAND, dtypes.float32, (ones,), (64,)))
    program = program_of(nest)
    assert count(program, Ops.LOAD) == 0
    assert depths(program, Ops.STORE) == [1]


def test_a_grid_coordinate_is_emitted_once() -> None:
    program = program_of(assign_grid_axes(row_sums(4, 6), GPU), GPU)
    assert count(program, Ops.SPECIAL) == 1
    assert np.prod(program.groups) == 4
