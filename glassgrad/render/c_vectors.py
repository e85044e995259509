"""Elementwise uop on vectors -> C with the vector extensions of gcc and clang.

Arithmetic has operators. A comparison gives -1 or 0 in ints as wide as its operands; bool vectors
are bytes, so it is converted. Everything else is a helper function: selection is bit arithmetic
with a mask, the rest goes lane by lane.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from glassgrad.base.dtype import DType, dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.render.cstyle_values import REPEATS_SOURCE

SIGNED = {8: dtypes.int8, 16: dtypes.int16, 32: dtypes.int32, 64: dtypes.int64}
ARGUMENTS = "xyz"


class Language(Protocol):
    """What these rows need from the renderer."""

    def type_name(self, dtype: DType) -> str: ...

    def vector_name(self, dtype: DType) -> str: ...

    def number(self, value: float, dtype: DType) -> str: ...

    def scalar(self, u: UOp, texts: list[str]) -> str:
        """An op of scalars in terms of the texts of its sources."""
        ...

    def lane(self, vector: str, dtype: DType, number: int) -> str: ...

    def vector(self, dtype: DType, parts: list[str]) -> str: ...


Row = Callable[..., str]  # (language, uop, texts of the sources)


def mask_of(dtype: DType) -> DType:
    """The dtype of a comparison: signed ints as wide as the operands."""
    return SIGNED[dtype.bits].vec(dtype.count)


def has_operator(u: UOp) -> bool:
    """True if C has an operator for this on vectors."""
    if u.op not in OPERATORS:
        return False
    if u.op is Ops.BITCAST:
        return "bool" not in (u.dtype.kind, u.src[0].dtype.kind)
    # Shifts, divisions and casts with undefined cases are computed lane by lane.
    has_undefined_cases = REPEATS_SOURCE.get(u.op)
    return has_undefined_cases is None or not has_undefined_cases(_of_scalars(u))


def _of_scalars(u: UOp) -> UOp:
    """The op on one lane; a shift by a splat is a shift by a scalar."""
    return UOp(u.op, u.dtype.scalar, tuple([splat_of(x) or _lane(x) for x in u.src]), u.arg)


def splat_of(vector: UOp) -> UOp | None:
    """The scalar that all lanes hold; None if they may differ."""
    if vector.is_const:
        return UOp(Ops.CONST, vector.dtype.scalar, (), vector.arg)
    is_splat = vector.op is Ops.STACK and all(x is vector.src[0] for x in vector.src)
    return vector.src[0] if is_splat else None


def _lane(vector: UOp) -> UOp:
    return UOp(Ops.GEP, vector.dtype.scalar, (vector,), 0)


# ---------------------------------------------------------------------- operators


def _infix(symbol: str, bools: str = "") -> Row:
    def row(lang: Language, u: UOp, x: str, y: str) -> str:
        word = bools if bools and u.dtype.kind == "bool" else symbol
        return f"({x}{word}{y})"

    return row


def _convert(lang: Language, text: str, dtype: DType) -> str:
    return f"__builtin_convertvector({text},{lang.type_name(dtype)})"


def _compare(symbol: str, bools: Callable[[str, str], str]) -> Row:
    def row(lang: Language, u: UOp, x: str, y: str) -> str:
        if u.src[0].dtype.kind == "bool":
            return bools(x, y)
        return _convert(lang, f"({x}{symbol}{y})", u.dtype)

    return row


def _neg(lang: Language, u: UOp, x: str) -> str:
    return x if u.dtype.kind == "bool" else f"(-{x})"


def _reciprocal(lang: Language, u: UOp, x: str) -> str:
    return f"({lang.number(1.0, u.dtype)}/{x})"


def _cast(lang: Language, u: UOp, x: str) -> str:
    source = u.src[0].dtype
    if u.dtype.kind == source.kind == "bool":
        return x
    if u.dtype.kind == "bool":
        return _convert(lang, f"({x}!={lang.number(0, source)})", u.dtype)
    return _convert(lang, f"(-{x})" if source.kind == "bool" else x, u.dtype)


def _bitcast(lang: Language, u: UOp, x: str) -> str:
    return f"(({lang.type_name(u.dtype)}){x})"


OPERATORS: dict[Ops, Row] = {
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
    Ops.MAX: _infix("", bools="|"),
    Ops.MIN: _infix("", bools="&"),
    Ops.SHL: _infix("<<"),
    Ops.SHR: _infix(">>"),
    Ops.AND: _infix("&"),
    Ops.OR: _infix("|"),
    Ops.XOR: _infix("^"),
    Ops.CMPLT: _compare("<", lambda x, y: f"(~{x}&{y})"),
    Ops.CMPEQ: _compare("==", lambda x, y: f"(~({x}^{y}))"),
    Ops.CMPNE: _compare("!=", lambda x, y: f"({x}^{y})"),
}


# ---------------------------------------------------------------------- functions


def function_name(lang: Language, u: UOp) -> str:
    """where_float8, cast_int8_float8"""
    kinds = [u.dtype, *([u.src[0].dtype] if u.op in (Ops.CAST, Ops.BITCAST) else [])]
    return "_".join([u.op.name.lower(), *(lang.vector_name(kind) for kind in kinds)])


def function(lang: Language, u: UOp) -> str:
    """static inline float8 sqrt_float8(float8 x) { return …; }"""
    names = ARGUMENTS[: len(u.src)]
    kinds = [lang.vector_name(source.dtype) for source in u.src]
    parameters = ", ".join(f"{kind} {name}" for kind, name in zip(kinds, names, strict=True))
    body = MASK_FUNCTIONS.get(u.op, _lane_by_lane)(lang, u)
    name = function_name(lang, u)
    return f"static inline {lang.vector_name(u.dtype)} {name}({parameters}) {{ {body} }}"


def _lane_by_lane(lang: Language, u: UOp) -> str:
    parts = []
    one = UOp(u.op, u.dtype.scalar, tuple([_lane(source) for source in u.src]), u.arg)
    for number in range(u.dtype.count):
        pairs = zip(ARGUMENTS, u.src, strict=False)
        texts = [lang.lane(name, source.dtype, number) for name, source in pairs]
        parts.append(lang.scalar(one, texts))
    return f"return {lang.vector(u.dtype, parts)};"


def _select_by_mask(lang: Language, dtype: DType, mask: str, yes: str, no: str) -> str:
    """(mask & yes) | (~mask & no), on the bits"""
    kind, bits = lang.vector_name(dtype), lang.vector_name(mask_of(dtype))
    line = f"return ({kind})((mask & ({bits}){yes}) | (~mask & ({bits}){no}));"
    return f"{bits} mask = {mask}; {line}"


def _where(lang: Language, u: UOp) -> str:
    mask = f"__builtin_convertvector(x, {lang.vector_name(mask_of(u.dtype))})"
    return _select_by_mask(lang, u.dtype, mask, "y", "z")


def _min_max(symbol: str) -> Callable[[Language, UOp], str]:
    def body(lang: Language, u: UOp) -> str:
        is_float = u.dtype.kind == "float"
        mask = f"(x != x) | (x {symbol} y)" if is_float else f"x {symbol} y"
        return _select_by_mask(lang, u.dtype, mask, "x", "y")

    return body


MASK_FUNCTIONS: dict[Ops, Callable[[Language, UOp], str]] = {
    Ops.WHERE: _where,
    Ops.MAX: _min_max(">"),
    Ops.MIN: _min_max("<"),
}
