"""RngCells: the random counters of a replay, which continue where earlier calls ended."""

from __future__ import annotations

import ctypes

from glassgrad.engine.capture.replay import Replay
from glassgrad.tensor.ops.random import GENERATOR


class RngCells:
    """The memory cells from which a replay reads its random counters and keys.

    `starts` maps base pointers to the offset of a counter within a call, or to None for a key.
    """

    def __init__(self, starts: dict[int, int | None], total: int, replayed: Replay) -> None:
        self.starts = starts
        self.total = total
        self.cells = (ctypes.c_uint64 * max(len(starts), 1))()
        for number, base in enumerate(starts):
            replayed.set_base(base, ctypes.addressof(self.cells) + 8 * number)

    def advance(self) -> None:
        """Advance the generator as if the function had run."""
        for number, start in enumerate(self.starts.values()):
            self.cells[number] = GENERATOR.seed if start is None else GENERATOR.used + start
        GENERATOR.used += self.total
