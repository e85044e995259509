"""Recipes one change away from another."""

from __future__ import annotations

from support.compiler.narrow_products import machine, narrow_product
from support.compiler.nests import GPU, added, kernel_of, product, row_sums, same
from support.compiler.schedules import TARGET

from glassgrad.ir.stages import Nest
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.search.candidates import MAX_COPIES, max_unroll_copies, neighbours, try_recipe
from glassgrad.loops.strategies.heuristic import heuristic

UPCAST = Opt(OptOps.UPCAST, 0, 4)


def test_a_neighbour_has_a_move_more_or_less_or_one_of_another_size() -> None:
    recipe = (UPCAST, Opt(OptOps.CORE, 1))
    start = added(32, 32)
    found = [nest.recipe for nest in neighbours(start, recipe, TARGET)]
    assert (Opt(OptOps.UPCAST, 0, 8), Opt(OptOps.CORE, 1)) in found
    assert (UPCAST,) in found
    assert (Opt(OptOps.CORE, 1),) in found
    assert (UPCAST, Opt(OptOps.TILE, 0, 8), Opt(OptOps.CORE, 1)) in found
    assert {len(recipe) for recipe in found} == {1, 2, 3}


def test_another_loop_may_be_divided_among_cores() -> None:
    recipe = (Opt(OptOps.CORE, 0),)
    found = [nest.recipe for nest in neighbours(added(32, 32), recipe, TARGET)]
    assert (Opt(OptOps.CORE, 1),) in found


def test_two_loops_may_become_one() -> None:
    found = [nest.recipe for nest in neighbours(added(32, 32), (), TARGET)]
    assert (Opt(OptOps.COALESCE, 0, 1),) in found


def test_every_neighbour_computes_the_same() -> None:
    start = product(6, 8, 4)
    count = 0
    for recipe in (heuristic(start, TARGET).recipe, ()):
        for nest in neighbours(start, recipe, TARGET):
            same(start, nest)
            count += 1
    assert count > 30


def test_no_statement_has_too_many_unrolled_copies() -> None:
    start = added(512, 512)
    recipe = (Opt(OptOps.UPCAST, 0, 16), Opt(OptOps.UPCAST, 1, 16))
    found = list(neighbours(start, recipe, TARGET))
    assert found
    assert all(max_unroll_copies(nest) <= MAX_COPIES for nest in found)
    assert max_unroll_copies(try_recipe(start, recipe, TARGET) or start) == 256


def test_a_recipe_with_an_illegal_move_makes_no_nest() -> None:
    assert try_recipe(added(8), (Opt(OptOps.UNROLL, 0, 2),), TARGET) is None


def test_on_machines_with_threads_groups_are_candidates() -> None:
    ops = {nest.recipe[0].op for nest in neighbours(row_sums(64, 256), (), GPU)}
    assert OptOps.GROUPTOP in ops
    assert not ops & {OptOps.CORE, OptOps.PACK}


def test_sums_of_bytes_may_become_dot_products() -> None:
    kernel = kernel_of(narrow_product(8, 8, 8, ("int8", "int8"))[0])
    start, target = Nest(kernel.body, kernel.outer), machine("AVX2")
    found = [nest.recipe for nest in neighbours(start, (), target)]
    assert (Opt(OptOps.DOT, 2, 2),) in found
    assert all(recipe[0].op is not OptOps.DOT for recipe in found if recipe[0].axis < 2)
