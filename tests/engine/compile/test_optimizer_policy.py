"""Which policy chooses the loop moves."""

from __future__ import annotations

from support.compiler.nests import kernel_of
from support.compiler.schedules import TARGET, memory

from glassgrad.base.config import Context
from glassgrad.engine.compile.optimizer_policy import current_policy
from glassgrad.loops import optimize


def test_the_heuristic_is_used_unless_noopt_is_set() -> None:
    kernel = kernel_of(memory(64, 64) + 1)
    assert optimize(kernel, TARGET, current_policy()).recipe
    with Context(NOOPT=1):
        assert optimize(kernel, TARGET, current_policy()).recipe == ()


def test_policies_have_distinct_keys() -> None:
    plain = current_policy().key
    with Context(NOOPT=1):
        assert current_policy().key != plain
    assert current_policy().key == plain
