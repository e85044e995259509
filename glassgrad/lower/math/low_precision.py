"""float16, bfloat16, fp8 -> float32 arithmetic, with casts made of integer operations if needed.

Arithmetic runs in float32 and each result is rounded back, which equals arithmetic in the dtype
itself. A dtype that the target cannot load, store and cast (not in Target.dtypes) is stored as an
unsigned integer of its size. While rules run, such a value is written BITCAST(bits) to its dtype;
after the pass no such BITCAST is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from glassgrad.base.dtype import FLOAT_LAYOUT, DType, dtypes
from glassgrad.base.rounding import round_float, to_bits
from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.stages import Target
from glassgrad.ir.uop import UOp

LOW_PRECISION = frozenset((dtypes.float16, dtypes.bfloat16, *dtypes.fp8s))
UNSIGNED = {8: dtypes.uint8, 16: dtypes.uint16}
NOT_ARITHMETIC = frozenset((Ops.CAST, Ops.BITCAST, Ops.WHERE, Ops.CMPLT, Ops.CMPEQ, Ops.CMPNE))
ARITHMETIC = OpGroup.ELEMENTWISE - NOT_ARITHMETIC


def emulate(node: UOp, target: Target) -> UOp | None:
    """A low-precision node in terms of float32 and integers; None for other nodes."""
    rule = LOW_PRECISION_RULES.get(node.op)
    return None if rule is None else rule(node, target)


def is_low_precision(dtype: DType) -> bool:
    return dtype.scalar in LOW_PRECISION


def storage_dtype(dtype: DType) -> DType:
    """The unsigned integer dtype of the same size."""
    return UNSIGNED[dtype.scalar.bits].vec(dtype.count)


def is_stored_as_bits(dtype: DType, target: Target) -> bool:
    return dtype.scalar in LOW_PRECISION and dtype.scalar not in target.dtypes


# ---------------------------------------------------------------------- memory


def _buffer(node: UOp, target: Target) -> UOp | None:
    """PARAM bfloat16, INDEX bfloat16  ->  the same of ushort"""
    if not is_stored_as_bits(node.dtype, target):
        return None
    return node.replace(dtype=storage_dtype(node.dtype))


def _load(node: UOp, target: Target) -> UOp | None:
    """LOAD bfloat16  ->  BITCAST(LOAD ushort)"""
    if not is_stored_as_bits(node.dtype, target):
        return None
    return node.replace(dtype=storage_dtype(node.dtype)).bitcast(node.dtype)


def _store(node: UOp, target: Target) -> UOp | None:
    """STORE(index, x)  ->  STORE(index, bits of x)"""
    index, value, *ranges = node.src
    if not is_stored_as_bits(value.dtype, target):
        return None
    assert node.arg in (None, Ops.ASSIGN), f"values are combined in memory of {value.dtype.name}"
    return node.replace(src=(index, storage_bits(value), *ranges))


def _stage(node: UOp, target: Target) -> UOp | None:
    """STAGE bfloat16(x)  ->  STAGE ushort(bits of x); a register is read as BITCAST(STAGE ushort)

    Scratch is read through LOAD(INDEX(STAGE)), whose rule adds the BITCAST.
    """
    if not is_stored_as_bits(node.dtype, target):
        return None
    value, *ranges = node.src
    stage = node.replace(dtype=storage_dtype(node.dtype), src=(storage_bits(value), *ranges))
    return stage if node.arg else stage.bitcast(node.dtype)


def _sink(node: UOp, target: Target) -> UOp | None:
    """SINK(BITCAST(STAGE ushort)) -> SINK(STAGE ushort)"""
    src = [line.src[0] if line.op is Ops.BITCAST else line for line in node.src]
    return None if tuple(src) == node.src else node.replace(src=tuple(src))


def storage_bits(x: UOp) -> UOp:
    """The bits of a low-precision value as an unsigned integer."""
    if x.op is Ops.CONST:
        return UOp(Ops.CONST, storage_dtype(x.dtype), (), to_bits(x.arg, x.dtype))
    return (x.src[0] if x.op is Ops.BITCAST else x).bitcast(storage_dtype(x.dtype))


# ---------------------------------------------------------------------- arithmetic


def _arithmetic(node: UOp, target: Target) -> UOp | None:
    """x + y  ->  narrow(float(x) + float(y))"""
    if not is_low_precision(node.dtype):
        return None
    wide = [
        to_float(source, target) if is_low_precision(source.dtype) else source
        for source in node.src
    ]
    return from_float(UOp(node.op, _wide(node.dtype), tuple(wide), node.arg), node.dtype, target)


def _compare(node: UOp, target: Target) -> UOp | None:
    """x < y  ->  float(x) < float(y)"""
    if not is_low_precision(node.src[0].dtype):
        return None
    return node.replace(src=tuple([to_float(source, target) for source in node.src]))


def _where(node: UOp, target: Target) -> UOp | None:
    """WHERE(c, x, y)  ->  BITCAST(WHERE(c, bits of x, bits of y))"""
    if not is_stored_as_bits(node.dtype, target):
        return None
    condition, yes, no = node.src
    return condition.where(storage_bits(yes), storage_bits(no)).bitcast(node.dtype)


def _wide(dtype: DType) -> DType:
    return dtypes.float32.vec(dtype.count)


# ---------------------------------------------------------------------- casts


def _cast(node: UOp, target: Target) -> UOp | None:
    """Casts from and to low precision go through float32."""
    source = node.src[0]
    if is_low_precision(source.dtype):
        if is_low_precision(node.dtype):
            return from_float(to_float(source, target), node.dtype, target)
        if node.dtype.scalar is dtypes.float32 and not is_stored_as_bits(source.dtype, target):
            return None
        return to_float(source, target).cast(node.dtype)
    if not is_low_precision(node.dtype):
        return None
    if source.dtype.scalar is dtypes.float32 and not is_stored_as_bits(node.dtype, target):
        return None
    return from_float(_to_float_for_rounding(source, node.dtype), node.dtype, target)


def _bitcast(node: UOp, target: Target) -> UOp | None:
    """BITCAST of a value that is stored as bits: of those bits"""
    source = node.src[0]
    if not is_stored_as_bits(source.dtype, target):
        return None
    return storage_bits(source).bitcast(node.dtype)


def to_float(x: UOp, target: Target) -> UOp:
    """A low-precision value in float32, which is exact."""
    if x.op is Ops.CONST:
        return UOp(Ops.CONST, _wide(x.dtype), (), round_float(x.arg, x.dtype))
    if not is_stored_as_bits(x.dtype, target):
        return x.cast(_wide(x.dtype))
    return decode(storage_bits(x), x.dtype.scalar)


def from_float(x: UOp, dtype: DType, target: Target) -> UOp:
    """A float32 value rounded to low precision."""
    if not is_stored_as_bits(dtype, target):
        return x.cast(dtype)
    return encode(x, dtype.scalar).bitcast(dtype)


def _to_float_for_rounding(x: UOp, dtype: DType) -> UOp:
    """A number in float32 such that rounding it again equals rounding x once.

    Ints up to 24 bits are exact. Larger ones overflow every low-precision dtype but bfloat16.
    """
    wide = _wide(x.dtype)
    if x.dtype.scalar is dtypes.float64:
        return round_to_odd(x)
    if x.dtype.scalar is dtypes.float32:
        return x
    if x.dtype.kind == "bool" or x.dtype.bits < 32 or dtype.scalar is not dtypes.bfloat16:
        return x.cast(wide)
    return round_to_odd(_int_to_double(x) if x.dtype.bits == 64 else x.cast(_double(x.dtype)))


def _double(dtype: DType) -> DType:
    return dtypes.float64.vec(dtype.count)


def _int_to_double(x: UOp) -> UOp:
    """A 64-bit int in float64; for large ones the last bit is sticky for all bits below it."""
    is_exact = x < 1 << 52
    if x.dtype.kind == "int":
        is_exact = is_exact & (x.const_like(-(1 << 52)) < x)
    sticky = (x >> 12) | (x & 0xFFF).ne(0).cast(x.dtype)
    return is_exact.where(x, sticky).cast(_double(x.dtype)) * is_exact.where(
        UOp(Ops.CONST, _double(x.dtype), (), 1.0), UOp(Ops.CONST, _double(x.dtype), (), 4096.0)
    )


def round_to_odd(x: UOp) -> UOp:
    """A float64 rounded to float32: exact, or the neighbour whose last bit is 1.

    The odd neighbour keeps on which side of every lower-precision tie x is.
    """
    rounded = x.cast(_wide(x.dtype))
    bits = rounded.bitcast(dtypes.int32.vec(x.dtype.count))
    back = rounded.cast(x.dtype)
    is_short = _magnitude(back) < _magnitude(x)
    step = is_short.where(bits.const_like(1), bits.const_like(-1))
    must_move = back.ne(x) & (bits & 1).eq(0) & (_magnitude(x) < math.inf)  # neither inf nor nan
    return must_move.where(bits + step, bits).bitcast(rounded.dtype)


def _magnitude(x: UOp) -> UOp:
    bits = x.bitcast(dtypes.int64.vec(x.dtype.count))
    return (bits & dtypes.max(dtypes.int64)).bitcast(x.dtype)


# ---------------------------------------------------------------------- bits <-> float32


def decode(bits: UOp, dtype: DType) -> UOp:
    """The float32 with the given bits: shift the fields, rescale the exponent by a product."""
    exponent_bits, mantissa_bits = FLOAT_LAYOUT[dtype]
    wide = bits.cast(dtypes.uint32.vec(bits.dtype.count))
    result = _wide(bits.dtype)
    if exponent_bits == 8:
        return (wide << 16).bitcast(result)
    sign = (wide >> (dtype.bits - 1)) << 31
    magnitude = wide & ((1 << (dtype.bits - 1)) - 1)
    aligned = magnitude << (23 - mantissa_bits)
    bias = (1 << (exponent_bits - 1)) - 1
    finite = aligned.bitcast(result) * 2.0 ** (127 - bias)
    special = aligned | 0x7F800000
    first_special = 0x7F if dtype is dtypes.fp8e4m3 else ((1 << exponent_bits) - 1) << mantissa_bits
    found = (magnitude < first_special).where(finite.bitcast(wide.dtype), special)
    return (found | sign).bitcast(result)


def encode(x: UOp, dtype: DType) -> UOp:
    """The low-precision bits of a float32, rounded to nearest even."""
    exponent_bits, mantissa_bits = FLOAT_LAYOUT[dtype]
    drop = 23 - mantissa_bits
    bits = x.bitcast(dtypes.uint32.vec(x.dtype.count))
    magnitude = bits & 0x7FFFFFFF
    bias = (1 << (exponent_bits - 1)) - 1
    tie = ((magnitude >> drop) & 1) + ((1 << (drop - 1)) - 1)
    rounded = (magnitude - ((127 - bias) << 23) + tie) >> drop
    if bias < 127:  # adding a power of two rounds to the last place of that power
        shifter = 2.0 ** (24 - bias - mantissa_bits)
        shifted = (magnitude.bitcast(x.dtype) + shifter).bitcast(bits.dtype)
        denormal = shifted - to_bits(shifter, dtypes.float32)
        rounded = (magnitude < ((128 - bias) << 23)).where(denormal, rounded)
    overflow, quiet = _special_codes(dtype)
    rounded = (rounded < overflow).where(rounded, rounded.const_like(overflow))
    is_nan = magnitude.const_like(0x7F800000) < magnitude
    found = is_nan.where(rounded.const_like(quiet), rounded)
    sign = (bits >> 31) << (dtype.bits - 1)
    return (found | sign).cast(storage_dtype(dtype.vec(x.dtype.count)))


def _special_codes(dtype: DType) -> tuple[int, int]:
    """(the code of overflow, the code of nan)"""
    exponent_bits, mantissa_bits = FLOAT_LAYOUT[dtype]
    if dtype is dtypes.fp8e4m3:  # it has no infinity
        return 0x7F, 0x7F
    infinity = ((1 << exponent_bits) - 1) << mantissa_bits
    return infinity, infinity | 1 << (mantissa_bits - 1)


# ---------------------------------------------------------------------- rules by op

Rule = Callable[[UOp, Target], UOp | None]


def _table(rule: Rule, ops: Iterable[Ops]) -> dict[Ops, Rule]:
    return dict.fromkeys(ops, rule)


LOW_PRECISION_RULES: dict[Ops, Rule] = {
    **_table(_arithmetic, (*ARITHMETIC, Ops.REDUCE, Ops.SCAN)),
    **_table(_compare, OpGroup.COMPARISON),
    **_table(_buffer, (Ops.PARAM, Ops.INDEX)),
    Ops.LOAD: _load,
    Ops.STORE: _store,
    Ops.STAGE: _stage,
    Ops.SINK: _sink,
    Ops.WHERE: _where,
    Ops.CAST: _cast,
    Ops.BITCAST: _bitcast,
}
