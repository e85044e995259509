"""Lowering is a table of passes, all of which are announced."""

from __future__ import annotations

from itertools import pairwise

import pytest
from support.compiler.nests import added, move, row_sums
from support.compiler.schedules import TARGET

from glassgrad.base.events import Event, PassDone, listen
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Nest
from glassgrad.ir.uop import UOp
from glassgrad.loops.opts import OptOps
from glassgrad.lower import PASSES, lower
from glassgrad.lower.pass_functions import Lowering


def passes_of(nest: Nest) -> list[PassDone]:
    seen: list[Event] = []
    with listen(seen.append):
        lower(nest, TARGET)
    return [event for event in seen if isinstance(event, PassDone)]


def test_every_pass_is_announced_in_the_order_of_the_table() -> None:
    done = passes_of(added(4, 8))
    assert [event.name for event in done] == [step.name for step in PASSES]


def test_passes_show_expressions_and_after_emission_instructions() -> None:
    done = passes_of(row_sums(4, 8))
    names = [event.name for event in done]
    emitted = names.index("emit instructions")
    assert all(isinstance(event.after, UOp) for event in done[:emitted])
    for event in done[emitted:]:
        assert Ops.STORE in [line.op for line in event.after]


def test_each_pass_gets_the_result_of_the_one_before() -> None:
    done = passes_of(move(added(4, 16), OptOps.UPCAST, 1, 8))
    for one, following in pairwise(done):
        assert following.before == one.after


def test_a_state_has_no_instructions_before_they_are_emitted() -> None:
    with pytest.raises(AssertionError, match="no instructions"):
        _ = Lowering(added(4, 8).body).emitted
