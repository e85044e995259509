"""Beam search, with made-up costs."""

from __future__ import annotations

from math import inf

from support.compiler.nests import added
from support.compiler.schedules import TARGET

from glassgrad.ir.stages import Nest
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.search.beam import beam

START = added(64, 64)


def loops(nest: Nest, _limit: float = inf) -> float:
    """A machine on which every step of a loop costs a second."""
    total = 1.0
    for axis in nest.outer:
        total *= 1 if axis.kind.is_unrolled else axis.size
    return total


def test_moves_that_pay_only_together_are_found() -> None:
    found = beam(START, TARGET, 2, loops, ((),))
    assert len(found) >= 2
    assert {opt.op for opt in found} == {OptOps.UPCAST}


def test_the_search_never_returns_a_slower_recipe() -> None:
    good = (Opt(OptOps.UPCAST, 0, 16), Opt(OptOps.UPCAST, 1, 16))

    def cost(nest: Nest, limit: float) -> float:
        return 1.0 if nest.recipe == good else 2.0

    assert beam(START, TARGET, 1, cost, (good, ())) == good


def test_no_nest_is_measured_twice() -> None:
    seen: list[object] = []

    def cost(nest: Nest, limit: float) -> float:
        seen.append((nest.body, nest.outer))
        return loops(nest)

    beam(START, TARGET, 3, cost, ((),))
    assert len(seen) > 20
    assert len(seen) == len(set(seen))


def test_measurements_get_the_best_time_so_far() -> None:
    limits: list[float] = []

    def cost(nest: Nest, limit: float) -> float:
        limits.append(limit)
        return loops(nest)

    beam(START, TARGET, 1, cost, ((),))
    assert limits[0] == inf
    assert limits[-1] < loops(START)


def test_candidates_that_fail_do_not_win() -> None:
    def cost(nest: Nest, limit: float) -> float:
        return inf if nest.recipe else 1.0

    assert beam(START, TARGET, 2, cost, ((Opt(OptOps.UPCAST, 0, 4),), ())) == ()


def test_the_first_recipe_is_taken_where_nothing_works() -> None:
    first = (Opt(OptOps.UPCAST, 0, 4),)
    assert beam(START, TARGET, 2, lambda nest, limit: inf, (first, ())) == first


def test_a_search_ends_when_its_time_is_over() -> None:
    counted = 0

    def cost(nest: Nest, limit: float) -> float:
        nonlocal counted
        counted += 1
        return loops(nest)

    beam(START, TARGET, 4, cost, ((),), is_over=lambda: counted >= 5)
    assert counted == 5
