"""Tally: counts programs by mode and failures by kind, and prints them."""

from __future__ import annotations

import time
from argparse import Namespace
from collections import Counter
from typing import Any


class Tally:
    """The counts of a run."""

    def __init__(self, options: Namespace) -> None:
        self.options = options
        self.start = time.monotonic()
        self.last_print = self.start
        self.modes: Counter[str] = Counter()
        self.programs = self.gradients = self.discards = self.failures = 0
        self.cpu = 0.0
        self.kinds: Counter[tuple[Any, ...]] = Counter()

    def is_finished(self) -> bool:
        minutes = (time.monotonic() - self.start) / 60
        is_timeout = 0 < self.options.minutes <= minutes
        return (
            is_timeout
            or self.programs >= self.options.programs
            or self.failures >= self.options.max_failures
        )

    def add(self, report: Any) -> None:
        if isinstance(report, int):
            self.failures += 1
            self._print(f"### seed {report}: the process died\n")
            return
        self.modes[report.mode] += report.programs
        self.programs += report.programs
        self.gradients += report.gradients
        self.discards += report.discards
        self.cpu += report.seconds
        if report.failure:
            self.failures += 1
            self.kinds[report.signature] += 1
            if self.kinds[report.signature] == 1:
                self._print(report.text)
        if time.monotonic() - self.last_print > 10:
            self.last_print = time.monotonic()
            print(self.counts(), flush=True)

    def _print(self, text: str) -> None:
        text = f"After {time.monotonic() - self.start:.0f} s\n\n{text}"
        print(text, flush=True)
        if self.options.out:
            with self.options.out.open("a") as file:
                file.write(text + "\n")

    def counts(self) -> str:
        seconds = time.monotonic() - self.start
        modes = ", ".join(f"{count} {mode}" for mode, count in sorted(self.modes.items()))
        rate = self.programs / max(self.cpu, 1e-9)
        return f"{seconds:6.0f} s  {self.programs} programs ({modes}), {rate:.1f} per CPU second"

    def summary(self) -> str:
        captured = self.modes["captured"]
        kinds = [
            f"  {count} x {' '.join(map(str, kind))}" for kind, count in self.kinds.most_common()
        ]
        return "\n".join(
            [
                self.counts(),
                *kinds,
                f"{self.discards} discarded as ill-conditioned",
                f"{self.programs} programs, {captured} captured, {self.gradients} with gradients, "
                f"{self.failures} failures",
            ]
        )
