"""Cases: a seed -> a random program in a random mode, and a report of its run."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from random import Random
from typing import Any

from fuzz.generate import GeneratorOptions, generate
from fuzz.modes import Failure, check, check_threads, seeds_of
from fuzz.ops import FAMILIES
from fuzz.programs import Program
from fuzz.shrink import shrink
from fuzz.stochastic import Discard

MODES = {"plain": 25, "captured": 20, "noopt": 10, "recipes": 15, "two cores": 20, "threads": 2,
         "lifted": 10}  # fmt: skip
GRADIENT_FRACTION = 0.3  # of all programs


@dataclass(frozen=True)
class Exclusions:
    """What to exclude: modes, families, operations, "gradients", or "gradient:NAME".

    The last excludes an operation from programs with gradients.
    """

    without: frozenset[str] = frozenset()

    @property
    def modes(self) -> dict[str, int]:
        return {mode: weight for mode, weight in MODES.items() if mode not in self.without}

    def operations(self, has_gradients: bool) -> frozenset[str]:
        prefix = "gradient:"
        found = {op.name for name in self.without for op in FAMILIES.get(name, ())}
        if has_gradients:
            found |= {name.removeprefix(prefix) for name in self.without if name.startswith(prefix)}
        return self.without | found


@dataclass
class Report:
    """The outcome of a seed."""

    seed: int
    mode: str
    programs: int = 0
    gradients: int = 0
    discards: int = 0
    seconds: float = 0.0  # of CPU time, without shrinking
    failure: Failure | None = None
    text: str = ""
    signature: tuple[Any, ...] = field(default_factory=tuple)


def case(seed: int, exclusions: Exclusions = Exclusions()) -> tuple[str, GeneratorOptions, Random]:
    rng = Random(seed)
    modes = exclusions.modes
    mode = rng.choices(list(modes), list(modes.values()))[0]
    has_gradients = rng.random() < GRADIENT_FRACTION and "gradients" not in exclusions.without
    return mode, GeneratorOptions(has_gradients, exclusions.operations(has_gradients)), rng


def run_case(seed: int, exclusions: Exclusions = Exclusions(), seconds: float = 30.0) -> Report:
    """Generate, run and compare; shrink and describe a failure."""
    mode, options, rng = case(seed, exclusions)
    report = Report(seed, mode)
    start = time.process_time()
    if mode == "threads":
        options = GeneratorOptions(False, exclusions.operations(True))
        report.programs, report.failure = check_threads(rng.randrange(1 << 40), options)
    else:
        program = generate(rng.randrange(1 << 40), options)
        try:
            report.failure = check(program, mode, seed)
            report.programs, report.gradients = 1, int(bool(program.loss))
        except Discard:
            report.discards = 1
    report.seconds = time.process_time() - start
    if report.failure:
        describe(report, seconds)
    return report


def describe(report: Report, seconds: float) -> None:
    """Describe a failure: a minimal script that fails in the same way, and the message."""
    failure = report.failure
    assert failure is not None
    small, message = failure.program, failure.message
    if report.mode != "threads":
        small = smallest(failure, seconds)
        minimal = check(small, failure.mode, failure.seed)
        message = minimal.message if minimal else message
    report.signature = (failure.kind, *sorted({one.op for one in small.statements}))
    if failure.kind != "wrong":
        lines = [line for line in message.splitlines() if line[:1].strip()]
        report.signature = (failure.kind, re.sub(r"\d+", "n", lines[-1])[:110])
    script = small.script(seeds_of(failure.mode), failure.mode == "captured")
    title = f"### seed {report.seed}, {report.mode}: {failure.kind}"
    report.text = "\n".join([title, "", "```python", script, "```", "", message, ""])


def smallest(failure: Failure, seconds: float) -> Program:
    def fails(program: Program) -> bool:
        found = check(program, failure.mode, failure.seed)
        return found is not None and found.kind == failure.kind

    return shrink(failure.program, fails, seconds)
