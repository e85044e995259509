"""Addresses advance loop by loop; loads are shared; scratch is filled in its outer loops."""

from __future__ import annotations

from dataclasses import replace

from support.compiler.nests import added, move, nest_of, numbers, product
from support.compiler.programs import all_of, count, depths, loads_by_depth, program_of
from support.compiler.schedules import TARGET, memory, planned, reduce

from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Nest
from glassgrad.ir.uop import UOp
from glassgrad.loops.opts import OptOps


def test_each_loop_adds_its_term_of_an_address() -> None:
    program = program_of(added(4, 6))
    assert sorted(depths(program, Ops.INDEX)) == [1, 1, 2, 2]


def test_padto_gates_the_store() -> None:
    program = program_of(move(added(4, 5), OptOps.PADTO, 1, 8))
    (store,) = all_of(program, Ops.STORE)
    assert store.src[0].gate is not None


def test_a_stage_is_filled_once_per_iteration_of_the_loop_around_it() -> None:
    once = program_of(move(product(6, 8, 10), OptOps.PACK, 0, 2))
    per_row = program_of(move(product(6, 8, 10), OptOps.PACK, 0, 1))
    assert min(depths(once, Ops.STORE)) == 2, "its own two loops and none around them"
    assert sorted(depths(per_row, Ops.STORE)) == [2, 2], "a row's own loop, in the loop over rows"
    assert loads_by_depth(per_row)[2] == 1, "the row is read from memory in one loop"


def test_scratch_is_read_after_its_fill() -> None:
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


def test_a_stage_that_depends_on_lanes_keeps_them_adjacent() -> None:
    nest = move(nest_of(reduce(numbers(12, 16), Ops.ADD, 0)), OptOps.GROUP, 1, 4)
    program = program_of(move(nest, OptOps.UPCAST, 0, 8))
    (scratch,) = all_of(program, Ops.SCRATCH)
    assert scratch.arg[1] == 4 * 8
    assert {u.dtype.count for u in all_of(program, Ops.LOAD)} == {8}


def test_a_softmax_row_is_exponentiated_once() -> None:
    (kernel,) = planned(memory(512, 1024).softmax()).kernels
    native = replace(TARGET, native=frozenset((Ops.EXP2,)))
    program = program_of(Nest(kernel.body, kernel.outer, kernel.may_alias), native)
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


def test_results_read_by_the_same_kernel_are_read_from_their_buffers() -> None:
    x = numbers(8, 16)
    total = UOp(Ops.RESHAPE, x.dtype, (reduce(x, Ops.ADD, 1),), (8, 1))
    program = program_of(nest_of(x * total, total + 1.0))
    assert count(program, Ops.STORE) == 2
    assert count(program, Ops.ACC) == 1


def test_unroll_copies_are_offsets_of_one_pointer() -> None:
    nest = move(added(5, 30), OptOps.UPCAST, 1, 8)  # four vectors, the last one overlaps
    program = program_of(move(nest, OptOps.UPCAST, 1, 4))
    first, *others = [store.src[0] for store in all_of(program, Ops.STORE)]
    assert sorted(at.src[1].arg for at in others) == [8, 16, 22]
    assert {at.src[0] for at in others} <= {first, first.src[0]}
