"""op, dtype, Python numbers -> number: the reference semantics of every elementwise op.

Constant folding, the python device and all tests follow it. Results are representable in the dtype:
ints wrap, floats are rounded after every op. Where machines differ:

- x // 0 and x % 0 of ints are 0; the smallest int divided by -1 is itself
- shifts by the width or more give 0, or -1 for negative numbers shifted right
- MAX and MIN give nan if either is nan
- arithmetic on bools: ADD is or, MUL is and
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from glassgrad.base.dtype import ConstType, DType, wrap
from glassgrad.base.rounding import convert, from_bits, round_float, to_bits
from glassgrad.ir.ops import Ops

WORD = 0xFFFF_FFFF
# Constants of the Threefish cipher.
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD1_1BDA


def fold(
    op: Ops, dtype: DType, args: tuple[ConstType, ...], source: DType | None = None
) -> ConstType:
    """The value of an elementwise op of constants.

    `dtype` is the dtype of the result; `source` that of the sources if it differs (CAST, BITCAST,
    comparisons).

    >>> from glassgrad.base.dtype import dtypes
    >>> fold(Ops.ADD, dtypes.uchar, (200, 100)), fold(Ops.FLOORDIV, dtypes.int, (-7, 2))
    (44, -4)
    """
    given = dtype if source is None else source
    if given.kind == "float":
        args = tuple([round_float(arg, given) if type(arg) is float else arg for arg in args])
    if op is CAST:
        return convert(args[0], dtype)
    if op is BITCAST:
        return from_bits(to_bits(args[0], given), dtype)
    if op in SHIFTS:
        return wrap(SHIFTS[op](args[0], args[1], given.scalar.bits), dtype)
    result = (ON_FLOATS if given.kind == "float" else ON_INTS)[op](*args)
    if dtype.kind == "float":
        return round_float(float(result), dtype)
    return wrap(result, dtype)


CAST, BITCAST = Ops.CAST, Ops.BITCAST


# ---------------------------------------------------------------------- floats


def _fdiv(x: float, y: float) -> float:
    if y != 0:
        return x / y
    if x == 0 or math.isnan(x):
        return math.nan
    return math.copysign(math.inf, x) * math.copysign(1.0, y)


def _maximum(x: float, y: float) -> float:
    return x if x != x or x > y else y


def _minimum(x: float, y: float) -> float:
    return x if x != x or x < y else y


def _sqrt(x: float) -> float:
    return math.nan if x < 0 else math.sqrt(x)


def _exp2(x: float) -> float:
    try:
        return math.exp2(x)
    except OverflowError:
        return math.inf


def _log2(x: float) -> float:
    if x == 0:
        return -math.inf
    return math.nan if x < 0 else math.log2(x)


def _sin(x: float) -> float:
    return math.nan if math.isinf(x) else math.sin(x)


def _trunc(x: float) -> float:
    return math.copysign(math.trunc(x), x) if math.isfinite(x) else x


def _pow(x: float, y: float) -> float:
    try:
        return math.pow(x, y)
    except OverflowError:
        return math.copysign(math.inf, x) if y % 2 == 1 else math.inf
    except ValueError:  # a negative number to a fraction, or zero to a negative number
        if x != 0:
            return math.nan
        return math.copysign(math.inf, x) if y % 2 == 1 else math.inf


def _where(condition: ConstType, yes: ConstType, no: ConstType) -> ConstType:
    return yes if condition else no


ON_BOTH: dict[Ops, Callable[..., Any]] = {
    Ops.NEG: lambda x: -x,
    Ops.ADD: lambda x, y: x + y,
    Ops.SUB: lambda x, y: x - y,
    Ops.MUL: lambda x, y: x * y,
    Ops.MAX: _maximum,
    Ops.MIN: _minimum,
    Ops.CMPLT: lambda x, y: x < y,
    Ops.CMPEQ: lambda x, y: x == y,
    Ops.CMPNE: lambda x, y: x != y,
    Ops.WHERE: _where,
    Ops.MULACC: lambda x, y, z: x * y + z,
}

ON_FLOATS: dict[Ops, Callable[..., Any]] = ON_BOTH | {
    Ops.RECIPROCAL: lambda x: _fdiv(1.0, x),
    Ops.SQRT: _sqrt,
    Ops.EXP2: _exp2,
    Ops.LOG2: _log2,
    Ops.SIN: _sin,
    Ops.TRUNC: _trunc,
    Ops.FDIV: _fdiv,
    Ops.POW: _pow,
}


# ---------------------------------------------------------------------- ints and bools


def _floordiv(x: int, y: int) -> int:
    return x // y if y else 0


def _floormod(x: int, y: int) -> int:
    return x % y if y else 0


def _cdiv(x: int, y: int) -> int:
    if y == 0:
        return 0
    size = abs(x) // abs(y)
    return size if (x < 0) == (y < 0) else -size


def _cmod(x: int, y: int) -> int:
    return x - _cdiv(x, y) * y if y else 0


def _shl(x: int, y: int, bits: int) -> int:
    return x << y if 0 <= y < bits else 0


def _shr(x: int, y: int, bits: int) -> int:
    return x >> (y if 0 <= y < bits else bits)


def threefry(counter: int, key: int) -> int:
    """Threefry-2x32 with 20 rounds: low and high words of uint64s are its two words."""
    first, second = key & WORD, key >> 32 & WORD
    keys = (first, second, first ^ second ^ PARITY)
    low, high = (counter + keys[0]) & WORD, ((counter >> 32) + keys[1]) & WORD
    for group in range(5):
        for rotation in ROTATIONS[group % 2]:
            low = (low + high) & WORD
            high = (high << rotation | high >> (32 - rotation)) & WORD ^ low
        low = (low + keys[(group + 1) % 3]) & WORD
        high = (high + keys[(group + 2) % 3] + group + 1) & WORD
    return low | high << 32


ON_INTS: dict[Ops, Callable[..., Any]] = ON_BOTH | {
    Ops.TRUNC: lambda x: x,
    Ops.FLOORDIV: _floordiv,
    Ops.FLOORMOD: _floormod,
    Ops.CDIV: _cdiv,
    Ops.CMOD: _cmod,
    Ops.AND: lambda x, y: x & y,
    Ops.OR: lambda x, y: x | y,
    Ops.XOR: lambda x, y: x ^ y,
    Ops.THREEFRY: threefry,
}

SHIFTS: dict[Ops, Callable[[Any, Any, int], int]] = {Ops.SHL: _shl, Ops.SHR: _shr}
