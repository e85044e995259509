"""Runner: random programs of all families, dry runs of them, and reports."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from glassgrad import Tensor
from glassgrad.base.counters import GlobalCounters
from glassgrad.base.errors import CompilerWarning
from glassgrad.base.events import Event, StageEntered, listen
from glassgrad.ir.proof import unproved_indices
from glassgrad.ir.stages import Kernel
from sweep import general, images, language  # noqa: F401 - they register families
from sweep.dry_run import TARGETS, DryDevice, dry_cpu
from sweep.models import MODELS
from sweep.programs import FAMILIES


class Case(NamedTuple):
    """A reproducible program: its family, its seed, and the target."""

    family: str
    seed: int
    target: str

    def __str__(self) -> str:
        return f"{self.family}:{self.seed}:{self.target}"


class Report(NamedTuple):
    """The outcome of a case."""

    case: Case
    kernels: int
    lines: int  # of the longest source
    seconds: float  # of the slowest kernel
    slowest: str
    failure: str | None


def cases(
    seed: int, count: int, targets: Sequence[str] = ("avx2", "avx512"), only: Sequence[str] = ()
) -> Iterator[Case]:
    """The models, and then `count` programs of the families in turn."""
    for name in MODELS if not only else ():
        yield from [Case(name, seed, target) for target in targets]
    names = [name for name in FAMILIES if not only or name in only]
    for number in range(count):
        yield Case(
            names[number % len(names)],
            seed * 1_000_003 + number,
            targets[number // len(names) % len(targets)],
        )


def run(case: Case) -> Report:
    """Run a case. A refused recipe is a failure here, although users would get a fallback."""
    failure = None
    with dry_cpu(TARGETS[case.target]) as device, warnings.catch_warnings(), listen(_check_indices):
        warnings.simplefilter("error", CompilerWarning)
        try:
            _run(case)
        except Exception:  # noqa: BLE001 - every error is reported
            failure = traceback.format_exc()
    return _report(case, device, failure)


def _run(case: Case) -> None:
    Tensor.manual_seed(1)
    before = GlobalCounters.uncovered_count
    if case.family in MODELS:
        MODELS[case.family]()
    else:
        FAMILIES[case.family](Random(f"{case.family} {case.seed}"))
    assert GlobalCounters.uncovered_count == before, (
        "a kernel is not proved to write all of its results"
    )


def _check_indices(event: Event) -> None:
    if isinstance(event, StageEntered) and event.stage == "loops":
        assert isinstance(event.value, Kernel)
        assert not unproved_indices(event.value.body), "an index may be out of bounds"


def _report(case: Case, device: DryDevice, failure: str | None) -> Report:
    lines = [source.text.count("\n") for source in device.sources]
    seconds, name = max(
        zip(device.seconds, [source.name for source in device.sources], strict=True),
        default=(0.0, ""),
    )
    return Report(case, len(lines), max(lines, default=0), seconds, name, failure)
