"""Who chooses the moves."""

from __future__ import annotations

from support.compiler.nests import kernel_of
from support.compiler.schedules import TARGET, memory

from glassgrad.base.config import Context
from glassgrad.engine.compile.optimizer_policy import chooser
from glassgrad.loops import optimize


def test_the_heuristic_chooses_unless_nobody_may() -> None:
    kernel = kernel_of(memory(64, 64) + 1)
    assert optimize(kernel, TARGET, chooser()).recipe
    with Context(NOOPT=1):
        assert optimize(kernel, TARGET, chooser()).recipe == ()


def test_choosers_are_told_apart_in_caches() -> None:
    plain = chooser().key
    with Context(NOOPT=1):
        assert chooser().key != plain
    assert chooser().key == plain
