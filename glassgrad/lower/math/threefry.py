"""THREEFRY(counter, key) -> arithmetic: Threefry-2x32 with 20 rounds, on two words of 32 bits."""

from __future__ import annotations

from glassgrad.base.dtype import dtypes
from glassgrad.ir.fold import PARITY, ROTATIONS
from glassgrad.ir.uop import UOp


def threefry(counter: UOp, key: UOp) -> UOp:
    """64 random bits; the low and high half of each number are the two words."""
    first, second = _halves(key)
    keys = first, second, first ^ second ^ PARITY
    low, high = _halves(counter)
    low, high = low + keys[0], high + keys[1]
    for group in range(5):
        for amount in ROTATIONS[group % 2]:
            low = low + high
            high = _rotate(high, amount) ^ low
        low = low + keys[(group + 1) % 3]
        high = high + keys[(group + 2) % 3] + (group + 1)
    return low.cast(counter.dtype) | (high.cast(counter.dtype) << 32)


def _halves(word: UOp) -> tuple[UOp, UOp]:
    half = dtypes.uint32.vec(word.dtype.count)
    return word.cast(half), (word >> 32).cast(half)


def _rotate(word: UOp, amount: int) -> UOp:
    return (word << amount) | (word >> (32 - amount))
