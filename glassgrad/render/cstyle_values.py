"""Elementwise uop -> C expression: one row per op, given the texts of its sources.

Cases that C leaves undefined are spelled out, so that every language computes what ir/fold.py does:
division by zero, shifts beyond the width, overflowing casts, nan. Rows that need a source more than
once are in `repeats_source`; such sources get a name first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from glassgrad.base.dtype import DType, dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp


class Language(Protocol):
    """What a row needs from its language."""

    def type_name(self, dtype: DType) -> str: ...

    def constant(self, uop: UOp) -> str: ...

    def number(self, value: float, dtype: DType) -> str: ...

    def function(self, op: Ops, dtype: DType) -> str:
        """The name of SQRT, EXP2, … for a dtype."""
        ...

    def multiply_add(self, dtype: DType, x: str, y: str, z: str) -> str: ...

    def bits(self, dtype: DType, source: DType, x: str) -> str:
        """The bits of x as another dtype of the same size."""
        ...


Row = Callable[..., str]  # (language, uop, texts of the sources)


def repeats_source(u: UOp) -> bool:
    """True if the text of this uop contains the text of a source more than once."""
    check = REPEATS_SOURCE.get(u.op)
    return check is not None and check(u)


def _is_known_number(u: UOp) -> bool:
    return u.dtype.kind != "bool"


def _needs_division_checks(u: UOp) -> bool:
    return not u.src[1].is_const or u.src[1].arg in (0, -1)


def _needs_shift_checks(u: UOp) -> bool:
    return not u.src[1].is_const or not 0 <= u.src[1].arg < u.dtype.bits


def _needs_cast_bounds(u: UOp) -> bool:
    return u.src[0].dtype.kind == "float" and u.dtype.kind in ("int", "uint")


REPEATS_SOURCE: dict[Ops, Callable[[UOp], bool]] = {
    Ops.MAX: _is_known_number,
    Ops.MIN: _is_known_number,
    Ops.CDIV: _needs_division_checks,
    Ops.CMOD: _needs_division_checks,
    Ops.SHL: _needs_shift_checks,
    Ops.SHR: _needs_shift_checks,
    Ops.CAST: _needs_cast_bounds,
}


def truncate(lang: Language, dtype: DType, text: str) -> str:
    """C computes small ints as int: cast the result back."""
    is_small = dtype.kind in ("int", "uint") and dtype.bits < 32
    return f"({lang.type_name(dtype)}){text}" if is_small else text


def _inside(u: UOp, text: str) -> str:
    """((a+b)+c) is (a+b+c): C adds and multiplies from the left."""
    is_same = u.src[0].op is u.op and text.startswith("(") and u.dtype.bits >= 32
    return text[1:-1] if is_same else text


def avoid_double_minus(text: str) -> str:
    """Parenthesize a negative number after an operator: --x is a decrement."""
    return f"({text})" if text.startswith("-") else text


# ---------------------------------------------------------------------- arithmetic


def _infix(symbol: str, bools: str = "") -> Row:
    def row(lang: Language, u: UOp, x: str, y: str) -> str:
        word = bools if bools and u.dtype.kind == "bool" else symbol
        left = _inside(u, x) if word in "+*" else x
        return truncate(
            lang, u.dtype, f"({left}{word}{avoid_double_minus(y) if word == '-' else y})"
        )

    return row


def _compare(symbol: str) -> Row:
    return lambda lang, u, x, y: f"({x}{symbol}{y})"


def _neg(lang: Language, u: UOp, x: str) -> str:
    return x if u.dtype.kind == "bool" else truncate(lang, u.dtype, f"(-{avoid_double_minus(x)})")


def _reciprocal(lang: Language, u: UOp, x: str) -> str:
    return f"({lang.number(1.0, u.dtype)}/{x})"


def _call(lang: Language, u: UOp, *texts: str) -> str:
    if u.dtype.kind != "float":  # integers are already rounded
        return texts[0]
    return f"{lang.function(u.op, u.dtype)}({','.join(texts)})"


def _min_max(symbol: str, bools: str) -> Row:
    """nan if one is nan, else the larger or smaller one. A constant other than nan needs no
    test.
    """

    def row(lang: Language, u: UOp, x: str, y: str) -> str:
        if u.dtype.kind == "bool":
            return f"({x}{bools}{y})"
        if u.dtype.kind != "float":
            return f"({x}{symbol}{y}?{x}:{y})"
        if u.src[1].is_const and u.src[1].arg == u.src[1].arg:
            return f"({y}{symbol}{x}?{y}:{x})"
        return f"({x}!={x}||{x}{symbol}{y}?{x}:{y})"

    return row


def _where(lang: Language, u: UOp, condition: str, yes: str, no: str) -> str:
    return f"({condition}?{yes}:{no})"


def _mulacc(lang: Language, u: UOp, x: str, y: str, z: str) -> str:
    if u.dtype.kind == "float":
        return lang.multiply_add(u.dtype, x, y, z)
    return truncate(lang, u.dtype, f"({x}*{y}+{z})")


# ---------------------------------------------------------------------- undefined cases


def _divide(symbol: str, by_minus_one: Callable[[str], str]) -> Row:
    """x / 0 is 0; the smallest int divided by -1 wraps instead of trapping."""

    def row(lang: Language, u: UOp, x: str, y: str) -> str:
        plain = truncate(lang, u.dtype, f"({x}{symbol}{y})")
        if not _needs_division_checks(u):
            return plain
        if u.dtype.kind != "int":
            return f"({y}==0?0:{plain})"
        special = truncate(lang, u.dtype, by_minus_one(x))
        return f"({y}==0?0:{y}==-1?{special}:{plain})"

    return row


def _shift_left(lang: Language, u: UOp, x: str, y: str) -> str:
    plain = truncate(lang, u.dtype, f"({x}<<{y})")
    return f"({_is_below(u, y)}?{plain}:0)" if _needs_shift_checks(u) else plain


def _shift_right(lang: Language, u: UOp, x: str, y: str) -> str:
    if not _needs_shift_checks(u):
        return truncate(lang, u.dtype, f"({x}>>{y})")
    rest = f"({x}>>{u.dtype.bits - 1})" if u.dtype.kind == "int" else "0"
    return truncate(lang, u.dtype, f"({_is_below(u, y)}?({x}>>{y}):{rest})")


def _is_below(u: UOp, y: str) -> str:
    return f"({y}>=0&&{y}<{u.dtype.bits})" if u.dtype.kind == "int" else f"{y}<{u.dtype.bits}"


# ---------------------------------------------------------------------- casts


def _cast(lang: Language, u: UOp, x: str) -> str:
    """Floats are truncated to ints; nan becomes 0, overflow the nearest bound."""
    before, after = u.src[0].dtype, u.dtype
    plain = f"(({lang.type_name(after)}){avoid_double_minus(x)})"
    if not _needs_cast_bounds(u):
        return plain
    least, most = int(dtypes.min(after)), int(dtypes.max(after))
    low, high = lang.number(least, after), lang.number(most, after)
    below, above = lang.number(float(least), before), lang.number(float(most + 1), before)
    return f"({x}<={below}?{low}:{x}>={above}?{high}:{x}=={x}?{plain}:0)"


def _bitcast(lang: Language, u: UOp, x: str) -> str:
    if u.dtype.kind == "bool" or u.src[0].dtype.kind == "bool":
        return f"(({lang.type_name(u.dtype)}){avoid_double_minus(x)})"
    return lang.bits(u.dtype, u.src[0].dtype, x)


VALUES: dict[Ops, Row] = {
    Ops.CAST: _cast,
    Ops.BITCAST: _bitcast,
    Ops.NEG: _neg,
    Ops.RECIPROCAL: _reciprocal,
    Ops.SQRT: _call,
    Ops.EXP2: _call,
    Ops.LOG2: _call,
    Ops.SIN: _call,
    Ops.TRUNC: _call,
    Ops.POW: _call,
    Ops.ADD: _infix("+", bools="|"),
    Ops.SUB: _infix("-", bools="^"),
    Ops.MUL: _infix("*", bools="&"),
    Ops.FDIV: _infix("/"),
    Ops.CDIV: _divide("/", lambda x: f"(-{x})"),
    Ops.CMOD: _divide("%", lambda x: "0"),
    Ops.MAX: _min_max(">", "|"),
    Ops.MIN: _min_max("<", "&"),
    Ops.SHL: _shift_left,
    Ops.SHR: _shift_right,
    Ops.AND: _infix("&"),
    Ops.OR: _infix("|"),
    Ops.XOR: _infix("^"),
    Ops.CMPLT: _compare("<"),
    Ops.CMPEQ: _compare("=="),
    Ops.CMPNE: _compare("!="),
    Ops.WHERE: _where,
    Ops.MULACC: _mulacc,
}
