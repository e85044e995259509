"""The stage as a whole: recipes that are printed, read back and replayed."""

from __future__ import annotations

from random import Random

import pytest
from support.compiler.nests import kernel_of, kinds
from support.compiler.schedules import TARGET, memory
from support.random.graphs import random_graph
from support.random.recipes import RandomChooser

from glassgrad.ir.ops import AxisKind
from glassgrad.loops import optimize
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.schedule import schedule


def nothing(nest: object, target: object) -> tuple[()]:
    return ()


@pytest.mark.parametrize("batch", range(3))
def test_a_recipe_that_is_printed_and_read_back_gives_the_same_nest(batch: int) -> None:
    moves = 0
    for seed in range(batch * 30, batch * 30 + 30):
        for kernel in schedule(random_graph(Random(seed), 10), TARGET).kernels:
            made = optimize(kernel, TARGET, RandomChooser(seed))
            read = eval(repr(made.recipe), {"Opt": Opt, "OptOps": OptOps})
            assert read == made.recipe
            again = optimize(kernel, TARGET, lambda nest, target, read=read: read)
            assert again == made
            assert again.body is made.body
            moves += len(read)
    assert moves > 30


def test_the_heuristic_makes_the_same_choice_again() -> None:
    kernel = kernel_of(memory(512, 1024).softmax())
    assert optimize(kernel, TARGET) == optimize(kernel, TARGET)


def test_no_moves_leave_plain_loops() -> None:
    nest = optimize(kernel_of(memory(512, 1024).softmax()), TARGET, nothing)
    assert nest.recipe == ()
    assert set(kinds(nest)) == {AxisKind.LOOP, AxisKind.REDUCE}
