"""address, nbytes -> memory full of NaN: what is read before it is written shows (POISON=1).

Only memory whose contents nobody promises is filled: outputs, arenas, scratch, freed blocks. What
is allocated with `zeroed=True` reads as zeros, poison or not.
"""

from __future__ import annotations

import ctypes

from glassgrad.base.config import POISON

# Repeated, these bytes are a NaN of every float of 16 bits or more, a bool that is neither 0 nor 1,
# and no integer that a program is likely to mean (uint8 245, int32 -655371).
PATTERN = b"\xf5\xff"
CHUNK = PATTERN * (1 << 15)


def is_poisoned() -> bool:
    """Whether memory is filled; almost free while nobody has ever asked for it."""
    return POISON.was_changed and bool(POISON)


def poison(address: int, nbytes: int) -> None:
    """Fill memory with the pattern."""
    for start in range(0, nbytes, len(CHUNK)):
        ctypes.memmove(address + start, CHUNK, min(len(CHUNK), nbytes - start))
