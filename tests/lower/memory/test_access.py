"""Addresses grow loop by loop; loads are shared; scratch is filled where its outer loops are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from support.compiler.nests import added, move, nest_of, numbers, product
from support.compiler.programs import all_of, count, depths, loads_by_depth, program_of
from support.compiler.schedules import TARGET, leaf, memory, planned, reduce

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest
from glassgrad.ir.uop import UOp
from glassgrad.loops.nest import axes
from glassgrad.loops.opts import OptOps


def test_each_loop_adds_its_share_of_an_address() -> None:
    program = program_of(added(4, 6))
    assert sorted(depths(program, Ops.INDEX)) == [1, 1, 2, 2]


def test_equal_loads_are_made_once() -> None:
    x = numbers(64)
    program = program_of(nest_of(x * x + x))
    assert count(program, Ops.LOAD) == 1


def test_a_padded_load_carries_its_gate() -> None:
    x = numbers(4, 6)
    padded = UOp(Ops.PAD, x.dtype, (x,), ((0, 0), (1, 2)))
    program = program_of(nest_of(padded * 2.0))
    (load,) = all_of(program, Ops.LOAD)
    assert load.src[0].gate is not None
    (store,) = all_of(program, Ops.STORE)
    assert store.src[0].gate is None


def test_padto_gates_the_store() -> None:
    program = program_of(move(added(4, 5), OptOps.PADTO, 1, 8))
    (store,) = all_of(program, Ops.STORE)
    assert store.src[0].gate is not None


def test_lanes_with_a_stride_are_loaded_one_by_one() -> None:
    nest = move(added(4, 8), OptOps.UPCAST, 1, 8)  # written along rows, read down columns
    program = program_of(nest)
    assert [u.dtype.count for u in all_of(program, Ops.LOAD)] == [1] * 8
    assert [u.src[1].dtype.count for u in all_of(program, Ops.STORE)] == [8]


def test_a_gather_in_lanes_is_loaded_one_by_one() -> None:
    x, index = numbers(20), leaf(np.zeros(16), "int32")
    nest = move(nest_of(UOp(Ops.GATHER, x.dtype, (x, index), 0)), OptOps.UPCAST, 0, 8)
    program = program_of(nest)
    assert (
        sum(u.dtype.count == 1 and u.dtype.kind == "float" for u in all_of(program, Ops.LOAD)) == 8
    )


def test_a_stage_is_filled_once_per_iteration_of_the_loop_around_it() -> None:
    once = program_of(move(product(6, 8, 10), OptOps.PACK, 0, 2))
    per_row = program_of(move(product(6, 8, 10), OptOps.PACK, 0, 1))
    assert min(depths(once, Ops.STORE)) == 2, "its own two loops and none around them"
    assert sorted(depths(per_row, Ops.STORE)) == [2, 2], "a row's own loop, in the loop over rows"
    assert loads_by_depth(per_row)[2] == 1, "the row is read from memory in one loop"


def test_scratch_is_read_behind_its_fill() -> None:
    program = program_of(move(product(6, 8, 10), OptOps.PACK, 0, 2))
    (scratch,) = all_of(program, Ops.SCRATCH)
    (behind,) = [u for u in all_of(program, Ops.AFTER) if u.src[0] is scratch]
    readers = [u for u in all_of(program, Ops.INDEX) if u.src[0] is behind]
    assert readers
    assert program.uops.index(behind.src[1]) < program.uops.index(readers[0])


def test_scratches_do_not_overlap() -> None:
    nest = move(move(product(6, 8, 10), OptOps.PACK, 0, 2), OptOps.PACK, 1, 1)
    program = program_of(nest)
    spans = sorted((u.arg[2], u.arg[2] + u.arg[1] * 4) for u in all_of(program, Ops.SCRATCH))
    assert len(spans) == 2
    assert spans[0][1] <= spans[1][0]
    assert spans[1][1] <= program.scratch_bytes
    assert all(start % 64 == 0 for start, _ in spans)


def test_a_stage_that_depends_on_lanes_keeps_them_next_to_each_other() -> None:
    nest = move(nest_of(reduce(numbers(12, 16), Ops.ADD, 0)), OptOps.GROUP, 1, 4)
    program = program_of(move(nest, OptOps.UPCAST, 0, 8))
    (scratch,) = all_of(program, Ops.SCRATCH)
    assert scratch.arg[1] == 4 * 8
    assert {u.dtype.count for u in all_of(program, Ops.LOAD)} == {8}


def test_a_softmax_row_is_exponentiated_once() -> None:
    (kernel,) = planned(memory(512, 1024).softmax()).kernels
    native = replace(TARGET, native=frozenset((Ops.EXP2,)))
    program = program_of(Nest(kernel.body, kernel.outer, kernel.rewrites), native)
    assert count(program, Ops.EXP2) == 1
    assert count(program, Ops.SCRATCH) == 1


def test_a_register_stage_needs_no_scratch() -> None:
    x = numbers(4, 6)
    total = UOp(Ops.RESHAPE, x.dtype, (reduce(x, Ops.ADD, 1),), (4, 1))
    assert count(program_of(nest_of(x * total)), Ops.SCRATCH) == 0


def test_an_address_without_any_index_is_a_pointer_to_the_first_element() -> None:
    program = program_of(nest_of(reduce(numbers(6), Ops.ADD, 0)))
    (store,) = all_of(program, Ops.STORE)
    assert store.src[0].op is Ops.INDEX
    assert store.src[0].src[1].arg == 0


def test_results_of_one_kernel_that_others_read_are_read_where_they_were_stored() -> None:
    x = numbers(8, 16)
    total = UOp(Ops.RESHAPE, x.dtype, (reduce(x, Ops.ADD, 1),), (8, 1))
    program = program_of(nest_of(x * total, total + 1.0))
    assert count(program, Ops.STORE) == 2
    assert count(program, Ops.ACC) == 1


def test_a_vector_that_is_read_backwards_is_one_load() -> None:
    x = UOp(Ops.FLIP, dtypes.float32, (numbers(64),), (0,))
    program = program_of(move(nest_of(x + 1.0), OptOps.UPCAST, 0, 8))
    (load,) = all_of(program, Ops.LOAD)
    assert load.dtype.count == 8
    (turned,) = all_of(program, Ops.SHUFFLE)
    assert turned.src == (load, load) and turned.arg == (7, 6, 5, 4, 3, 2, 1, 0)


def test_every_other_element_is_taken_from_two_vectors() -> None:
    x = numbers(4, 32)
    every_other = UOp(Ops.WINDOW, x.dtype, (x,), (1, 1, 2, 1))
    program = program_of(move(nest_of(every_other * 2.0), OptOps.UPCAST, 1, 8))
    loads = all_of(program, Ops.LOAD)
    assert [load.dtype.count for load in loads] == [8, 8]
    first, second = (load.src[0] for load in loads)
    assert second.src[0] is first
    assert second.src[1].arg == 7  # the last lane ends the second one


def test_every_other_element_of_an_odd_number_of_lanes() -> None:
    x = numbers(4, 32)
    every_other = UOp(Ops.WINDOW, x.dtype, (x,), (1, 1, 2, 1))
    nest = move(nest_of(every_other * 2.0), OptOps.UPCAST, 1, 5)
    (number,) = [axis.axis for axis in axes(nest) if axis.kind is AxisKind.UPCAST]
    program = program_of(move(nest, OptOps.LANES, number, 5))
    (taken,) = all_of(program, Ops.SHUFFLE)
    assert taken.arg == (0, 2, 4, 5 + 2, 5 + 4), "the second vector begins with the fifth element"


def test_places_that_registers_decide_are_offsets_of_one_pointer() -> None:
    nest = move(added(5, 30), OptOps.UPCAST, 1, 8)  # four vectors, the last moved inwards
    program = program_of(move(nest, OptOps.UPCAST, 1, 4))
    first, *others = [store.src[0] for store in all_of(program, Ops.STORE)]
    assert sorted(at.src[1].arg for at in others) == [8, 16, 22]
    assert {at.src[0] for at in others} <= {first, first.src[0]}
