"""Fill undefined memory with NaN, so that reads of uninitialized memory become visible (POISON=1).

Only memory with undefined contents is filled: outputs, arenas, scratch, freed blocks. Memory
allocated with `zeroed=True` is zero in any case.
"""

from __future__ import annotations

import ctypes

from glassgrad.base.config import POISON

# Repeated, these bytes are a NaN of every float of 16 bits or more, a bool that is neither 0 nor 1,
# and no integer that a program is likely to mean (uint8 245, int32 -655371).
PATTERN = b"\xf5\xff"
CHUNK = PATTERN * (1 << 15)


def is_poisoned() -> bool:
    """True if memory is filled; almost free if POISON was never set."""
    return POISON.was_changed and bool(POISON)


def poison(address: int, nbytes: int) -> None:
    """Fill memory with the pattern."""
    for start in range(0, nbytes, len(CHUNK)):
        ctypes.memmove(address + start, CHUNK, min(len(CHUNK), nbytes - start))
