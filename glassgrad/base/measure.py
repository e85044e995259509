"""Time and profile blocks of code."""

from __future__ import annotations

import cProfile
import pstats
import sys
from collections.abc import Callable
from contextlib import ContextDecorator
from time import perf_counter_ns
from types import TracebackType
from typing import Any, Self

from glassgrad.base.terminal import colored


class Timing(ContextDecorator):
    """Prints the time of a block: `with Timing("step ", lambda ns: f", {n / ns:.2f} GB/s"):`.

    `et` is the elapsed time in nanoseconds.
    """

    def __init__(
        self, prefix: str = "", on_exit: Callable[[int], str] | None = None, enabled: bool = True
    ) -> None:
        self.prefix = prefix
        self.on_exit = on_exit
        self.enabled = enabled
        self.et = 0

    def __enter__(self) -> Self:
        self._start = perf_counter_ns()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.et = perf_counter_ns() - self._start
        if self.enabled:
            note = self.on_exit(self.et) if self.on_exit is not None else ""
            sys.stdout.write(f"{self.prefix}{self.et / 1e6:6.2f} ms{note}\n")


class Profiling(ContextDecorator):
    """Prints the functions in which a block spends its time, the most expensive first.

    `sort` is a column of pstats, `frac` the share of functions to print, `fn` a file for the whole
    profile, `ts` a factor for the times.
    """

    def __init__(
        self,
        enabled: bool = True,
        sort: str = "cumtime",
        frac: float = 0.2,
        fn: str | None = None,
        ts: float = 1,
    ) -> None:
        self.enabled = enabled
        self.sort = sort
        self.frac = frac
        self.fn = fn
        self.ts = ts

    def __enter__(self) -> Self:
        self.profile = cProfile.Profile()
        if self.enabled:
            self.profile.enable()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self.enabled:
            return
        self.profile.disable()
        if self.fn:
            self.profile.dump_stats(self.fn)
        sys.stdout.write(self.report())

    def report(self) -> str:
        """One line per function: calls, own time, total time, and location."""
        statistics: Any = pstats.Stats(self.profile).strip_dirs().sort_stats(self.sort)
        shown = max(int(len(statistics.fcn_list) * self.frac), 1)
        lines = []
        for file, line, name in statistics.fcn_list[:shown]:
            _, calls, own, total, _ = statistics.stats[file, line, name]
            location = colored(f"{file}:{line}", "cyan")
            times = f"{own * 1e3 * self.ts:9.2f} ms own {total * 1e3 * self.ts:9.2f} ms total"
            lines.append(f"{calls:>10} calls {times}  {name}  {location}\n")
        return "".join(lines)
