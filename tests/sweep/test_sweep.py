"""A fixed sample of the sweep: whole models, and some programs of every family."""

from __future__ import annotations

from random import Random

import pytest

from glassgrad.base.counters import GlobalCounters
from glassgrad.ir import coverage
from sweep.models import MODELS
from sweep.programs import memory
from sweep.real_run import TooLarge, run_for_real
from sweep.runner import FAMILIES, Case, cases, run

PROGRAMS_PER_FAMILY = 4


@pytest.mark.parametrize("name", MODELS)
def test_every_kernel_of_a_model_is_proved_to_write_its_results(name: str) -> None:
    GlobalCounters.reset()
    report = run(Case(name, 0, "avx2"))
    assert report.failure is None, report.failure
    assert report.kernels > 10
    assert GlobalCounters.uncovered_count == 0


@pytest.mark.parametrize("family", FAMILIES)
def test_programs_of_a_family(family: str) -> None:
    for case in cases(0, PROGRAMS_PER_FAMILY, only=[family]):
        report = run(case)
        assert report.failure is None, f"{case}\n{report.failure}"


def test_a_refused_kernel_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Users would get a fallback and a warning."""
    original = coverage.difference
    monkeypatch.setattr(
        coverage,
        "difference",
        lambda before, after, may_alias=False: (
            original(before, after, may_alias) or (None if before is after else "planted")
        ),
    )
    report = run(next(cases(0, 1, only=["linear"])))
    assert report.failure is not None
    assert "planted" in report.failure and "kernel r_" in report.failure


@pytest.mark.parametrize("family", FAMILIES)
def test_kernels_compute_what_their_plain_loops_do(family: str) -> None:
    equal = 0
    for seed in range(40):
        try:
            failure = run_for_real(family, seed)
        except TooLarge:
            continue
        assert failure is None, f"{family}:{seed}\n{failure}"
        equal += 1
        if equal == 2:
            break
    assert equal


def test_errors_of_real_runs_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(rng: Random) -> None:
        raise ValueError("planted")

    monkeypatch.setitem(FAMILIES, "linear", fail)
    assert "planted" in (run_for_real("linear", 0) or "")
    monkeypatch.setitem(FAMILIES, "linear", lambda rng: memory(1 << 20).realize())
    with pytest.raises(TooLarge):
        run_for_real("linear", 0)
