"""elementwise uop on vectors -> C with the vector extensions of gcc and clang.

A comparison gives -1 or 0 in ints as wide as what is compared; choosing between two values is
bit arithmetic with such a mask. Bools are kept in bytes, so masks are converted on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from glassgrad.base.dtype import DType, dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.render.cstyle_values import REPEATING

SIGNED = {8: dtypes.int8, 16: dtypes.int16, 32: dtypes.int32, 64: dtypes.int64}


class Types(Protocol):
    """What a row asks of the language."""

    def type_name(self, dtype: DType) -> str: ...

    def number(self, value: float, dtype: DType) -> str: ...


Row = Callable[..., str]


def holds_lanes(u: UOp) -> bool:
    """Is this said lane by lane, because there is no operator for it?"""
    if u.op not in VECTORS:
        return True
    if u.op is Ops.BITCAST:
        return "bool" in (u.dtype.kind, u.src[0].dtype.kind)
    # What C leaves open about shifts, divisions and casts is settled one by one.
    is_open = u.op in REPEATING and REPEATING[u.op](_with_scalars(u))
    return is_open and u.op not in (Ops.MAX, Ops.MIN)


def _with_scalars(u: UOp) -> UOp:
    """The same op of scalars: a shift by eight equal numbers is a shift by one number."""
    sources = tuple([_splat(source) for source in u.src])
    return UOp(u.op, u.dtype.scalar, sources, u.arg)


def _splat(source: UOp) -> UOp:
    """What stands in every lane, if that is one number."""
    if source.op is Ops.STACK and all(one is source.src[0] for one in source.src):
        return source.src[0]
    if source.is_const:
        return UOp(Ops.CONST, source.dtype.scalar, (), source.arg)
    return UOp(Ops.GEP, source.dtype.scalar, (source,), 0)


def mask_of(dtype: DType) -> DType:
    return SIGNED[dtype.bits].vec(dtype.count)


def converted(lang: Types, text: str, dtype: DType) -> str:
    return f"__builtin_convertvector({text},{lang.type_name(dtype)})"


def _infix(symbol: str, bools: str = "") -> Row:
    def row(lang: Types, u: UOp, x: str, y: str) -> str:
        word = bools if bools and u.dtype.kind == "bool" else symbol
        return f"({x}{word}{y})"

    return row


def _compare(symbol: str, bools: Callable[[str, str], str]) -> Row:
    def row(lang: Types, u: UOp, x: str, y: str) -> str:
        if u.src[0].dtype.kind == "bool":
            return bools(x, y)
        return converted(lang, f"({x}{symbol}{y})", u.dtype)

    return row


def _neg(lang: Types, u: UOp, x: str) -> str:
    return x if u.dtype.kind == "bool" else f"(-{x})"


def _reciprocal(lang: Types, u: UOp, x: str) -> str:
    return f"({lang.number(1.0, u.dtype)}/{x})"


def _select(lang: Types, dtype: DType, mask: str, yes: str, no: str) -> str:
    """(mask & yes) | (~mask & no), on the bits"""
    kind, bits = lang.type_name(dtype), lang.type_name(mask_of(dtype))
    return f"(({kind})(({mask}&({bits}){yes})|(~{mask}&({bits}){no})))"


def _where(lang: Types, u: UOp, condition: str, yes: str, no: str) -> str:
    if u.dtype.bits == 8:
        return _select(lang, u.dtype, f"({lang.type_name(mask_of(u.dtype))}){condition}", yes, no)
    return _select(lang, u.dtype, converted(lang, condition, mask_of(u.dtype)), yes, no)


def _extreme(symbol: str, bools: str) -> Row:
    def row(lang: Types, u: UOp, x: str, y: str) -> str:
        if u.dtype.kind == "bool":
            return f"({x}{bools}{y})"
        test = f"({x}{symbol}{y})"
        if u.dtype.kind == "float":
            test = f"(({x}!={x})|{test})"
        return _select(lang, u.dtype, test, x, y)

    return row


def _cast(lang: Types, u: UOp, x: str) -> str:
    source = u.src[0].dtype
    if u.dtype.kind == "bool":
        if source.kind == "bool":
            return x
        return converted(lang, f"({x}!={lang.number(0, source)})", u.dtype)
    if source.kind == "bool":
        x = f"(-{x})"
    return converted(lang, x, u.dtype)


def _bitcast(lang: Types, u: UOp, x: str) -> str:
    return f"(({lang.type_name(u.dtype)}){x})"


VECTORS: dict[Ops, Row] = {
    Ops.CAST: _cast,
    Ops.BITCAST: _bitcast,
    Ops.NEG: _neg,
    Ops.RECIPROCAL: _reciprocal,
    Ops.ADD: _infix("+", bools="|"),
    Ops.SUB: _infix("-", bools="^"),
    Ops.MUL: _infix("*", bools="&"),
    Ops.FDIV: _infix("/"),
    Ops.CDIV: _infix("/"),
    Ops.CMOD: _infix("%"),
    Ops.MAX: _extreme(">", "|"),
    Ops.MIN: _extreme("<", "&"),
    Ops.SHL: _infix("<<"),
    Ops.SHR: _infix(">>"),
    Ops.AND: _infix("&"),
    Ops.OR: _infix("|"),
    Ops.XOR: _infix("^"),
    Ops.CMPLT: _compare("<", lambda x, y: f"(~{x}&{y})"),
    Ops.CMPEQ: _compare("==", lambda x, y: f"(~({x}^{y}))"),
    Ops.CMPNE: _compare("!=", lambda x, y: f"({x}^{y})"),
    Ops.WHERE: _where,
}
