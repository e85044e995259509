"""Fusion groups: an order in which they can run, and what prevents fusion."""

from __future__ import annotations

import gc
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from support.compiler.schedules import TARGET, assign, leaf, reduce
from support.random.graphs import random_graph

from glassgrad import Tensor
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.schedule import schedule
from glassgrad.schedule.fuse import profitability as module
from glassgrad.schedule.fuse.fusion import make_fusion_groups
from glassgrad.schedule.fuse.groups import FusionGroup, absorb, add_dependency, has_path_between
from glassgrad.schedule.fuse.run_order import (
    anti_dependences,
    deadlocked_versions,
    order_all,
    run_order,
)
from glassgrad.schedule.graph.copies_before_writes import copy_versions, resolve_write_hazards
from glassgrad.schedule.graph.normalize import normalize
from glassgrad.schedule.materialize.policy import choose_materialization
from glassgrad.schedule.materialize.statement import Statement


def statements_of(seed: int) -> dict[UOp, Statement]:
    values = resolve_write_hazards(normalize(random_graph(Random(seed), 25)))
    statements = choose_materialization(values)
    while stuck := deadlocked_versions(statements):
        values = copy_versions(values, stuck)
        statements = choose_materialization(values)
    return statements


def array(*shape: int) -> UOp:
    return leaf(np.zeros(shape))


def groups_of(*roots: UOp, **facts: int) -> list[FusionGroup]:
    return make_fusion_groups(choose_materialization(roots), replace(TARGET, **facts))


@pytest.mark.parametrize("batch", range(4))
def test_every_statement_is_in_one_group_and_runs_after_its_sources(batch: int) -> None:
    for seed in range(batch * 40, batch * 40 + 40):
        statements = statements_of(seed)
        groups = make_fusion_groups(statements, TARGET)
        ordered = [statement for group in groups for statement in group.statements]
        position = {statement: number for number, statement in enumerate(ordered)}
        assert len(ordered) == len(position) == len(statements)
        for statement in ordered:
            for value in statement.reads:
                if value in statements:
                    assert position[statements[value]] < position[statement]
        for earlier, later in anti_dependences(statements):
            assert position[earlier] < position[later], "old contents are read first"


def test_groups_that_wait_for_each_other_are_an_error() -> None:
    one, two = FusionGroup([], []), FusionGroup([], [], first=1)
    add_dependency(one, two)
    assert order_all({two: None, one: None}) == [one, two]
    add_dependency(two, one)
    with pytest.raises(AssertionError, match="cyclic dependency"):
        order_all({two: None, one: None})


@pytest.mark.parametrize("batch", range(2))
def test_shared_loops_have_one_size_and_belong_to_every_statement(batch: int) -> None:
    for seed in range(batch * 40, batch * 40 + 40):
        for group in make_fusion_groups(statements_of(seed), TARGET):
            for loop in group.outer:
                assert set(loop) == set(group.statements)
                assert len({s.axes[axis].size for s, axis in loop.items()}) == 1


def test_no_kernel_has_more_arguments_than_the_machine_takes() -> None:
    for seed in range(40):
        for group in make_fusion_groups(statements_of(seed), replace(TARGET, max_params=6)):
            if len(group.statements) > 1:
                values = {s.node for s in group.statements}
                values |= {value for s in group.statements for value in s.reads}
                assert len(values) <= 6


def test_no_kernel_has_more_statements_than_can_be_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_STATEMENTS", 3)
    sizes = [
        len(c.statements)
        for seed in range(40)
        for c in make_fusion_groups(statements_of(seed), TARGET)
    ]
    assert max(sizes) == 3


def test_a_reduction_and_its_elementwise_user_share_all_loops() -> None:
    total = reduce(array(64, 64), Ops.ADD, 1)
    (group,) = groups_of(total * 2.0)
    assert group.outer_size == 64
    assert len(group.statements) == 2


def test_unrelated_values_are_not_fused() -> None:
    assert len(groups_of(array(64, 64) + 1.0, array(32, 32) * 2.0)) == 2


def test_readers_of_one_large_value_walk_through_it_together() -> None:
    x = array(512, 512)
    assert len(groups_of(reduce(x, Ops.ADD, 1), reduce(x, Ops.MAX, 1))) == 1
    small = array(16, 16)
    assert len(groups_of(reduce(small, Ops.ADD, 1), reduce(small, Ops.MAX, 1))) == 2


def test_two_contractions_in_a_row_are_two_kernels() -> None:
    x, w, v = array(128, 64), array(96, 64), array(32, 96)

    def product(a: UOp, b: UOp) -> UOp:
        rows = UOp(Ops.RESHAPE, a.dtype, (a,), (a.shape[0], 1, a.shape[1]))
        return reduce(rows * b, Ops.ADD, 2)

    assert len(groups_of(product(product(x, w), v))) == 2


def waiting_groups(choice: Random) -> list[FusionGroup]:
    """Groups in an order in which they can run, some of which wait for some before them."""
    made = [FusionGroup([], [], first=position, last=position) for position in range(24)]
    for position, later in enumerate(made):
        for earlier in choice.sample(made[:position], min(position, choice.randrange(4))):
            add_dependency(earlier, later)
    return made


def reachable(start: FusionGroup) -> set[FusionGroup]:
    found: set[FusionGroup] = set()
    stack = [start]
    while stack:
        new = [later for later in stack.pop().after if later not in found]
        found.update(new)
        stack += new
    return found


def test_an_absorbed_group_keeps_its_dependencies() -> None:
    """early -> two, one -> two, one -> a -> b -> late; early and late become one group."""
    early, one, two, a, b, late = [
        FusionGroup([], [], first=position, last=position) for position in range(6)
    ]
    pairs = [(early, two), (early, late), (one, two), (one, a), (a, b), (b, late)]
    for before, after in pairs:
        add_dependency(before, after)
    assert not has_path_between(one, two)
    absorb(early, late)
    assert has_path_between(one, two), "a and b have to run before the group that two waits for"


@pytest.mark.parametrize("batch", range(4))
def test_paths_between_groups_are_found_however_they_have_grown(batch: int) -> None:
    for seed in range(batch * 50, batch * 50 + 50):
        choice = Random(seed)
        groups = waiting_groups(choice)
        for _ in range(80):
            edges = [(one, two) for one in groups for two in one.after]
            if not edges:
                break
            one, two = choice.choice(edges)
            between = [c for c in one.after if c is not two and two in reachable(c)]
            assert has_path_between(one, two) == bool(between), seed
            if not between:
                absorb(one, two)
                groups.remove(two)
                assert len(run_order(dict.fromkeys(groups))) == len(groups)


def test_swapped_buffers_are_stuck_until_one_is_copied() -> None:
    x, y = array(4, 4), array(4, 4)
    roots = [assign(x, y), assign(y, x)]
    stuck = deadlocked_versions(choose_materialization(roots))
    assert stuck and stuck <= {x, y}
    assert deadlocked_versions(choose_materialization(copy_versions(roots, stuck))) == set()


def test_a_plain_update_is_not_stuck() -> None:
    x = array(4, 4)
    assert deadlocked_versions(choose_materialization([assign(x, x + 1.0)])) == set()


def test_scheduling_leaves_no_reference_cycles() -> None:
    x, y = leaf(np.ones((8, 8))), leaf(np.ones(8))
    total = reduce(x * 2, Ops.ADD, 1)
    roots = [assign(x, x + total), assign(y, y + total)]
    gc.collect()
    gc.disable()
    try:
        before = groups_and_held_statements()  # what an error of another test still holds
        schedule(roots, TARGET)
        left = groups_and_held_statements()
    finally:
        gc.enable()
    assert len(left) == len(before)


def groups_and_held_statements() -> list[object]:
    return [found for found in gc.get_objects() if type(found) in (FusionGroup, Statement)]


def test_a_value_of_old_contents_that_waits_for_another_write_can_run() -> None:
    a = Tensor(np.ones((1, 7), np.float32)).realize()
    b = Tensor(np.ones((1, 4), np.float32)).realize()

    def program() -> Tensor:
        old = a / (a.abs() + 1)  # no tensor holds it afterwards
        a[:, ::2] *= b
        b.add_(b, alpha=2)
        return old + b.sum()

    np.testing.assert_array_equal(program().numpy(), np.full((1, 7), 12.5))
    np.testing.assert_array_equal(a.numpy(), np.ones((1, 7)))
