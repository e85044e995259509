"""Reports -> counts by mode, failures by kind, and the line at the end."""

from __future__ import annotations

import time
from argparse import Namespace
from collections import Counter
from typing import Any


class Tally:
    """What was run so far, and what went wrong."""

    def __init__(self, options: Namespace) -> None:
        self.options = options
        self.begun = time.monotonic()
        self.shown = self.begun
        self.modes: Counter[str] = Counter()
        self.programs = self.gradients = self.discards = self.failures = 0
        self.cpu = 0.0
        self.kinds: Counter[tuple[Any, ...]] = Counter()

    def is_over(self) -> bool:
        minutes = (time.monotonic() - self.begun) / 60
        is_late = 0 < self.options.minutes <= minutes
        return (
            is_late or self.programs >= self.options.programs or self.failures >= self.options.most
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
        if time.monotonic() - self.shown > 10:
            self.shown = time.monotonic()
            print(self.counts(), flush=True)

    def _print(self, text: str) -> None:
        text = f"After {time.monotonic() - self.begun:.0f} s\n\n{text}"
        print(text, flush=True)
        if self.options.out:
            with self.options.out.open("a") as file:
                file.write(text + "\n")

    def counts(self) -> str:
        seconds = time.monotonic() - self.begun
        modes = ", ".join(f"{count} {mode}" for mode, count in sorted(self.modes.items()))
        rate = self.programs / max(self.cpu, 1e-9)
        return f"{seconds:6.0f} s  {self.programs} programs ({modes}), {rate:.1f} a second and core"

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
