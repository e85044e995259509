"""Iterable -> the same iterable with a progress bar."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from time import perf_counter
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from glassgrad.base.terminal import ansilen, ansistrip, clock, si

T = TypeVar("T")
EIGHTHS = " ▏▎▍▌▋▊▉"
MIN_BAR_COLUMNS = 5  # a narrower bar is left out


class tqdm(Generic[T]):
    """A progress bar on standard error, drawn at most `rate` times a second.

    Works as an iterator, as a context manager, or by hand with `update`.
    """

    def __init__(
        self,
        iterable: Iterable[T] | None = None,
        desc: str = "",
        disable: bool | None = False,
        unit: str = "it",
        unit_scale: bool | float = False,
        total: int | None = None,
        rate: int = 100,
    ) -> None:
        self.iterable = iterable
        self.desc = f"{desc}: " if desc else ""
        self.disable = bool(disable)
        self.unit = unit
        self.unit_scale = unit_scale
        self.total = len(iterable) if total is None and _has_len(iterable) else total  # type: ignore[arg-type]
        self.n = 0
        self.start = perf_counter()
        self._pause = 1 / rate
        self._drawn = -1.0
        self._is_closed = False

    def __iter__(self) -> Iterator[T]:
        if self.iterable is None:
            raise TypeError("this progress bar has no iterable; call update() instead")
        try:
            for item in self.iterable:
                yield item
                self.update(1)
        finally:
            self.update(close=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.update(close=True)

    def set_description(self, desc: str) -> None:
        self.desc = f"{desc}: " if desc else ""

    def update(self, n: int = 0, close: bool = False) -> None:
        """Add `n` to the count; `close` draws the bar a last time and ends its line."""
        self.n += n
        if self.disable or (self._is_closed and n == 0):
            return
        now = perf_counter()
        if close or now - self._drawn >= self._pause:
            self._drawn = now
            self._is_closed = close
            ending = "\n" if close else ""
            sys.stderr.write(f"\r{self.line(now - self.start)}\x1b[K{ending}")
            sys.stderr.flush()

    def line(self, elapsed: float) -> str:
        """The text of the bar after this many seconds."""
        speed = self.n / elapsed if elapsed > 0 else 0.0
        rate = f"{si(speed) if self.unit_scale else f'{speed:5.2f}'}{self.unit}/s"
        from shutil import get_terminal_size  # imports all compression modules

        columns = get_terminal_size().columns - 1
        if not self.total:
            count = f"{self.desc}{self._count(self.n)}{self.unit}"
            return _cut(f"{count} [{clock(elapsed)}, {rate}]", columns)
        done = min(self.n / self.total, 1.0)
        left = clock((self.total - self.n) / speed) if speed > 0 else "?"
        head = f"{self.desc}{done:4.0%}"
        tail = f"{self._count(self.n)}/{self._count(self.total)} [{clock(elapsed)}<{left}, {rate}]"
        width = columns - ansilen(head) - ansilen(tail) - 3
        if width < MIN_BAR_COLUMNS:
            return _cut(f"{head} {tail}", columns)
        return f"{head}|{_bar(done, width)}| {tail}"

    def _count(self, number: int) -> str:
        if not self.unit_scale:
            return str(number)
        scale = 1 if self.unit_scale is True else self.unit_scale
        return si(number * scale)

    @classmethod
    def write(cls, text: str) -> None:
        """Print a line above the bar."""
        sys.stderr.write(f"\r\x1b[K{text}\n")

    SI = staticmethod(si)
    HMS = staticmethod(clock)


class trange(tqdm[int]):
    """`tqdm(range(n))`."""

    def __init__(self, n: int, **options: Any) -> None:
        super().__init__(range(n), total=n, **options)


def _has_len(iterable: object) -> bool:
    return hasattr(iterable, "__len__")


def _cut(line: str, columns: int) -> str:
    """Lines that are too long would wrap at each redraw."""
    return line if ansilen(line) <= columns else ansistrip(line)[:columns]


def _bar(done: float, width: int) -> str:
    if not _can_show("█"):
        return ("#" * int(done * width)).ljust(width)
    eighths = int(done * width * 8)
    full = "█" * (eighths // 8)
    part = EIGHTHS[eighths % 8] if eighths % 8 else ""
    return f"{full}{part}".ljust(width)


def _can_show(text: str) -> bool:
    try:
        text.encode(getattr(sys.stderr, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
