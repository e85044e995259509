"""Each move: its effect, what it preserves, and when it is refused."""

from __future__ import annotations

import pytest
from support.compiler.nests import (
    GPU,
    added,
    binders,
    kinds,
    loops,
    move,
    nest_of,
    numbers,
    product,
    refused,
    row_sums,
    same,
)
from support.compiler.schedules import TARGET, assign, reduce

from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest
from glassgrad.ir.uop import UOp
from glassgrad.loops import assign_grid_axes
from glassgrad.loops.moves.table import MOVES, apply_moves, apply_opt, upcast_all
from glassgrad.loops.nest import change_kind, find_axis
from glassgrad.loops.opts import IllegalMove, Opt, OptOps

LOOP, REDUCE, UPCAST, UNROLL = AxisKind.LOOP, AxisKind.REDUCE, AxisKind.UPCAST, AxisKind.UNROLL
CORE, GLOBAL, LOCAL, GROUP = AxisKind.CORE, AxisKind.GLOBAL, AxisKind.LOCAL, AxisKind.GROUP


def on_gpu(nest: Nest) -> Nest:
    return assign_grid_axes(nest, GPU)


def rewriting(n: int) -> Nest:
    """x[i] = x[i] + 1: no element may be written twice."""
    x = numbers(n)
    return nest_of(assign(x, x + 1.0))


def test_every_move_has_a_picture() -> None:
    assert set(MOVES) == set(OptOps)
    for function in MOVES.values():
        assert "->" in (function.__doc__ or ""), function


def test_the_error_for_an_unknown_axis_lists_the_axes() -> None:
    assert refused(added(4, 6), OptOps.TILE, 7, 2) == "there is no axis 7; there are 0, 1"


def test_moves_are_remembered_in_order() -> None:
    recipe = (Opt(OptOps.TILE, 0, 2), Opt(OptOps.UPCAST, 1, 3))
    assert apply_moves(added(4, 6), recipe, TARGET).recipe == recipe


def test_axes_that_are_unrolled_together_are_unrolled_as_one_by_one() -> None:
    recipe = tuple([Opt(OptOps.UPCAST, axis, size) for axis, size in ((2, 4), (0, 2), (1, 3))])
    nest = one_by_one = added(2, 3, 4)
    for opt in recipe:
        one_by_one = apply_opt(one_by_one, opt, TARGET)
    assert apply_moves(nest, recipe, TARGET) == one_by_one
    assert upcast_all(nest, recipe) == one_by_one


def test_equal_parts_of_axes_are_unrolled_together_as_one_by_one() -> None:
    recipe = tuple([Opt(OptOps.UPCAST, axis, size) for axis, size in ((2, 4), (0, 2), (1, 3))])
    nest = one_by_one = added(8, 9, 4)
    for opt in recipe:
        one_by_one = apply_opt(one_by_one, opt, TARGET)
    assert upcast_all(nest, recipe) == one_by_one
    assert apply_moves(nest, recipe, TARGET) == one_by_one


def test_a_remainder_is_left_to_another_move() -> None:
    recipe = Opt(OptOps.UPCAST, 0, 2), Opt(OptOps.UPCAST, 1, 4), Opt(OptOps.UPCAST, 2, 2)
    nest = one_by_one = added(8, 9, 4)
    for opt in recipe:
        one_by_one = apply_opt(one_by_one, opt, TARGET)
    assert apply_moves(nest, recipe, TARGET) == one_by_one


def test_moves_around_a_group_of_unrolls_are_applied_in_order() -> None:
    whole = Opt(OptOps.UPCAST, 0, 2), Opt(OptOps.UPCAST, 1, 3)
    recipe = (Opt(OptOps.TILE, 2, 2), *whole, Opt(OptOps.UPCAST, 2, 2))
    nest = one_by_one = added(2, 3, 4)
    for opt in recipe:
        one_by_one = apply_opt(one_by_one, opt, TARGET)
    assert apply_moves(nest, recipe, TARGET) == one_by_one


def test_unrolling_together_is_refused_where_one_of_them_is() -> None:
    recipe = Opt(OptOps.UPCAST, 0, 4), Opt(OptOps.UPCAST, 1, 6)
    with pytest.raises(IllegalMove, match="UPCAST needs an output axis"):
        apply_moves(row_sums(4, 6), recipe, TARGET)


# ---------------------------------------------------------------------- splitting


def test_upcast_makes_a_register_per_element() -> None:
    before = added(4, 6)
    after = move(before, OptOps.UPCAST, 1, 3)
    assert kinds(after) == {LOOP: [4, 2], UPCAST: [3]}
    assert loops(after.outer) == [0, 1, 2]
    same(before, after)


def test_upcast_of_a_whole_axis_leaves_no_loop() -> None:
    after = move(added(4, 6), OptOps.UPCAST, 1, 6)
    assert kinds(after) == {LOOP: [4], UPCAST: [6]}
    same(added(4, 6), after)
    assert kinds(move(added(4, 6), OptOps.UPCAST, 1)) == {LOOP: [4], UPCAST: [6]}


def test_a_tail_moves_inwards_and_is_stored_twice() -> None:
    before = added(4, 7)
    after = move(before, OptOps.UPCAST, 1, 4)
    assert kinds(after) == {LOOP: [4, 2], UPCAST: [4]}
    assert binders(after, Ops.MIN), "the last block starts at 7 - 4"
    same(before, after)


def test_where_a_buffer_is_read_and_written_no_tail_moves_inwards() -> None:
    assert "overwritten" in refused(rewriting(7), OptOps.UPCAST, 0, 4)
    same(rewriting(8), move(rewriting(8), OptOps.UPCAST, 0, 4))


def test_no_two_groups_of_threads_store_what_one_of_them_reads_again() -> None:
    x = numbers(3, 16)
    copy = UOp(Ops.CONTIGUOUS, x.dtype, (x,))
    nest = nest_of(reduce(copy * 2.0, Ops.ADD, 1))
    assert [n for n in binders(nest, Ops.INDEX) if n.src[0].op is Ops.STORE]
    same(nest, move(nest, OptOps.UPCAST, 0, 2))
    assert "two thread groups" in refused(on_gpu(nest), OptOps.UPCAST, 0, 2, GPU)


def test_upcast_is_for_results_and_unroll_for_reductions() -> None:
    assert "UNROLL" in refused(row_sums(4, 6), OptOps.UPCAST, 1, 2)
    assert "UPCAST" in refused(row_sums(4, 6), OptOps.UNROLL, 0, 2)


def test_nothing_is_unrolled_twice() -> None:
    assert "already" in refused(move(added(4, 6), OptOps.UPCAST, 1, 3), OptOps.UPCAST, 2, 3)
    assert "already" in refused(move(row_sums(4, 6), OptOps.UNROLL, 1, 3), OptOps.UNROLL, 2, 3)


@pytest.mark.parametrize("amount", [1, 7, 100])
def test_an_amount_fits_its_axis(amount: int) -> None:
    assert refused(added(4, 6), OptOps.UPCAST, 1, amount) == f"{amount} does not fit an axis of 6"


def test_unroll_makes_several_steps_of_a_reduction_at_once() -> None:
    before = row_sums(4, 6)
    after = move(before, OptOps.UNROLL, 1, 3)
    assert kinds(after) == {LOOP: [4], REDUCE: [2], UNROLL: [3]}
    same(before, after)


def test_the_tail_of_a_reduction_is_peeled() -> None:
    before = row_sums(4, 7)
    after = move(before, OptOps.UNROLL, 1, 3)
    assert len(binders(after, Ops.REDUCE)) == 2
    assert kinds(after) == {LOOP: [4], REDUCE: [2, 1], UNROLL: [3]}
    same(before, after)


def test_tile_makes_blocks_of_an_axis() -> None:
    before = product(6, 8, 10)
    for axis, amount, sizes in ((0, 3, [2, 8, 3]), (1, 4, [6, 2, 4])):
        after = move(before, OptOps.TILE, axis, amount)
        assert kinds(after)[LOOP] == sizes
        same(before, after)
    after = move(before, OptOps.TILE, 2, 5)
    assert kinds(after)[REDUCE] == [2, 5]
    same(before, after)


def test_only_plain_loops_are_tiled() -> None:
    assert "plain" in refused(move(added(4, 6), OptOps.UPCAST, 1, 6), OptOps.TILE, 2, 3)


# ---------------------------------------------------------------------- order and place


def test_swap_changes_the_order_of_two_loops_and_nothing_else() -> None:
    before = added(4, 6)
    after = move(before, OptOps.SWAP, 0, 1)
    assert loops(after.outer) == [1, 0]
    assert kinds(after) == kinds(before)
    same(before, after)
    assert move(after, OptOps.SWAP, 0, 1).body is before.body


def test_swap_of_reduced_loops() -> None:
    before = nest_of(reduce(numbers(3, 4, 5), Ops.ADD, 0, 2))
    (block,) = binders(before, Ops.REDUCE)
    first, second = loops(block.bound)
    after = move(before, OptOps.SWAP, first, second)
    assert loops(binders(after, Ops.REDUCE)[0].bound) == [second, first]
    same(before, after)


def test_loops_of_different_nests_are_not_interchanged() -> None:
    assert "same loop nest" in refused(row_sums(4, 6), OptOps.SWAP, 0, 1)
    assert "two different axes" in refused(added(4, 6), OptOps.SWAP, 0, 0)
    divided = move(added(4, 6), OptOps.CORE, 0)
    assert "outermost" in refused(divided, OptOps.SWAP, 0, 1)


def test_core_puts_its_loop_outermost() -> None:
    before = added(4, 6)
    after = move(before, OptOps.CORE, 1)
    assert loops(after.outer) == [1, 0]
    assert kinds(after) == {LOOP: [4], CORE: [6]}
    same(before, after)


def test_plain_outer_loops_are_divided_among_cores() -> None:
    both = move(move(added(4, 6, 5), OptOps.CORE, 1), OptOps.CORE, 0)
    assert [(r.axis, r.kind) for r in both.outer] == [(1, CORE), (0, CORE), (2, LOOP)]
    assert "already" in refused(both, OptOps.CORE, 2)
    assert "share" in refused(row_sums(4, 6), OptOps.CORE, 1)
    assert "plain" in refused(move(added(4, 6), OptOps.UPCAST, 1, 6), OptOps.CORE, 2)
    assert "threads" in refused(on_gpu(added(4, 6)), OptOps.CORE, 0, None, GPU)


def test_an_axis_is_unrolled_before_it_is_divided() -> None:
    assert "before" in refused(move(added(4, 6), OptOps.CORE, 1), OptOps.UPCAST, 1, 2)


def test_local_gives_elements_to_the_threads_of_a_group() -> None:
    before = on_gpu(added(4, 6))
    after = move(before, OptOps.LOCAL, 1, 3, GPU)
    assert kinds(after) == {GLOBAL: [4, 2], LOCAL: [3]}
    same(before, after)


def test_local_needs_threads_that_divide_a_global_axis_and_fit_a_group() -> None:
    assert "cores" in refused(added(4, 6), OptOps.LOCAL, 0, 2)
    nest = on_gpu(added(4, 100, 100))
    assert "do not evenly divide" in refused(nest, OptOps.LOCAL, 1, 3, GPU)
    assert "too many" in refused(nest, OptOps.LOCAL, 1, 100, GPU)
    half = move(nest, OptOps.LOCAL, 1, 50, GPU)
    assert "too many" in refused(half, OptOps.LOCAL, 2, 2, GPU)
    assert "grid axis" in refused(on_gpu(row_sums(4, 6)), OptOps.LOCAL, 1, 2, GPU)


# ---------------------------------------------------------------------- shared reductions


@pytest.mark.parametrize("op", [OptOps.GROUP, OptOps.GROUPTOP])
def test_threads_share_a_reduction_through_scratch(op: OptOps) -> None:
    before = on_gpu(row_sums(4, 12))
    after = move(before, op, 1, 3, GPU)
    assert kinds(after) == {GLOBAL: [4], REDUCE: [4, 3], GROUP: [3]}
    (stage,) = binders(after, Ops.STAGE)
    assert stage.arg == (3,)
    assert len(binders(after, Ops.REDUCE)) == 2
    same(before, after)


@pytest.mark.parametrize("op", [OptOps.GROUP, OptOps.GROUPTOP])
def test_without_threads_partial_sums_are_in_scratch(op: OptOps) -> None:
    before = row_sums(4, 12)
    after = move(before, op, 1, 12)
    assert kinds(after) == {LOOP: [4, 12], REDUCE: [12]}
    same(before, after)
    same(before, move(before, op, 1, 4))


def test_group_takes_turns_and_grouptop_takes_runs() -> None:
    nest = on_gpu(row_sums(4, 12))
    steps = {}
    for op in (OptOps.GROUP, OptOps.GROUPTOP):
        after = move(nest, op, 1, 3, GPU)
        (load,) = [n for n in binders(after, Ops.LOAD) if n.src[0].src[0].op is Ops.PARAM]
        steps[op] = {(n.src[0].axis, n.src[1].arg) for n in load.toposort() if n.op is Ops.MUL}
    assert steps == {OptOps.GROUP: {(1, 3)}, OptOps.GROUPTOP: {(2, 4)}}


@pytest.mark.parametrize("op", [OptOps.GROUP, OptOps.GROUPTOP])
def test_a_reduction_is_shared_once_by_threads_that_divide_it(op: OptOps) -> None:
    nest = on_gpu(row_sums(4, 12))
    assert "does not evenly divide" in refused(nest, op, 1, 5, GPU)
    assert "does not evenly divide" in refused(nest, op, 1, 1, GPU)
    assert "exactly one reduction" in refused(nest, op, 0, 2, GPU)
    assert "too many" in refused(on_gpu(row_sums(4, 128)), op, 1, 128, GPU)
    once = move(nest, op, 1, 3, GPU)
    assert "already" in refused(once, op, 1, 2, GPU)
    unrolled = move(row_sums(4, 12), OptOps.UPCAST, 0, 2)
    assert "before unrolling" in refused(unrolled, op, 1, 3)


# ---------------------------------------------------------------------- padding


def test_padto_extends_an_axis_and_masks_the_new_elements() -> None:
    before = added(4, 5)
    after = move(before, OptOps.PADTO, 1, 8)
    assert kinds(after) == {LOOP: [4, 8]}
    assert all(index.gate is not None for index in binders(after, Ops.INDEX))
    same(before, after)


@pytest.mark.parametrize("op", [Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN])
def test_padto_of_a_reduction_adds_nothing(op: Ops) -> None:
    before = nest_of(reduce(numbers(4, 5) + 1.0, op, 1))
    after = move(before, OptOps.PADTO, 1, 4)
    assert kinds(after) == {LOOP: [4], REDUCE: [8]}
    same(before, after)


def test_padto_is_refused_where_it_would_do_nothing_or_come_too_late() -> None:
    assert "no padding" in refused(added(4, 6), OptOps.PADTO, 1, 3)
    assert "before other splits" in refused(
        move(added(4, 5), OptOps.UPCAST, 1, 5), OptOps.PADTO, 2, 4
    )


def test_a_padded_axis_is_split_without_a_tail() -> None:
    before = added(4, 5)
    after = move(move(before, OptOps.PADTO, 1, 4), OptOps.UPCAST, 1, 4)
    assert kinds(after) == {LOOP: [4, 2], UPCAST: [4]}
    assert not binders(after, Ops.MIN)
    same(before, after)


def test_kinds_change_without_changing_anything_else() -> None:
    before = added(4, 6)
    after = change_kind(before, find_axis(before, 1), CORE)
    assert kinds(after) == {LOOP: [4], CORE: [6]}
    assert loops(after.outer) == [0, 1]


def test_a_scan_that_was_cut_is_not_padded_in_the_middle() -> None:
    x = numbers(2, 40)
    nest = nest_of(UOp(Ops.SCAN, x.dtype, (x,), (Ops.MUL, 1)))
    cut = move(nest, OptOps.TILE, 1, 4)
    assert refused(cut, OptOps.PADTO, 2, 3) == "only the outermost axis of a scan can be padded"
    move(cut, OptOps.PADTO, 1, 3)


def test_rows_whose_values_are_needed_early_are_not_unrolled() -> None:
    written = assign(numbers(4, 17), numbers(4, 17))
    total = reduce(written, Ops.ADD, 1)
    nest = nest_of(written, UOp(Ops.RESHAPE, total.dtype, (total,), (4, 1)))
    assert any(statement.op is Ops.STAGE for statement in nest.body.src)
    assert "row by row" in refused(nest, OptOps.ROW_BLOCK, 0, 2)


def test_rows_that_are_read_before_they_are_overwritten_are_not_unrolled() -> None:
    x = numbers(4, 3)
    written = assign(x, x * x)
    nest = nest_of(written, written.alu(Ops.EXP2))
    reads = [n for store in nest.body.src for n in store.src[1].toposort() if n.op is Ops.LOAD]
    assert nest.may_alias and len(nest.body.src) > 1 and reads
    assert "row by row" in refused(nest, OptOps.ROW_BLOCK, nest.outer[-1].axis, 3)
