"""Passes run in order and announce what they change."""

from __future__ import annotations

from glassgrad.base.events import Event, PassDone, listen
from glassgrad.ir.pass_runner import Pass, run_passes

PASSES = (
    Pass[int, int]("add", lambda value, amount: value + amount),
    Pass[int, int]("double", lambda value, _: 2 * value),
)


def test_passes_run_in_order():
    assert run_passes(PASSES, 1, 10) == 22


def test_every_pass_is_announced_with_its_input_and_output():
    seen: list[Event] = []
    with listen(seen.append):
        run_passes(PASSES, 1, 10, shown=str)
    found = [(e.name, e.before, e.after) for e in seen if isinstance(e, PassDone)]
    assert found == [("add", "1", "11"), ("double", "11", "22")]
