"""A sample of `python -m fuzz.captures`: captured functions that read changing state."""

from __future__ import annotations

import pytest

from fuzz.captures import check
from glassgrad import Context
from glassgrad.tensor.jit.guards import Guards

SEEDS = range(5000, 5060)


@pytest.mark.parametrize("first", SEEDS[::10])
def test_captured_programs_equal_eager_ones_bit_for_bit(first: int) -> None:
    outcomes = [check(seed) for seed in range(first, first + 10)]
    assert [message for outcome, message in outcomes if outcome == "WRONG"] == []
    assert sum(outcome == "equal" for outcome, _ in outcomes) >= 8


def test_the_fuzzer_finds_stale_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Guards, "are_valid", lambda self: True)
    with Context(JIT_CHECK=0):
        assert any(check(seed)[0] == "WRONG" for seed in SEEDS)
    assert any(check(seed)[0] == "refused" for seed in SEEDS)
