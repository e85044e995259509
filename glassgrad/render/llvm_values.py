"""Elementwise uop -> LLVM instructions: ops, casts and constants, one row per op.

A row is a function of a Writer, which names values and collects lines, and the uop. Instructions
work on vectors as on scalars, so no row depends on the number of lanes.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Protocol

from glassgrad.base.dtype import ConstType, DType, dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp

SCALARS = {
    dtypes.bool: "i1",
    dtypes.float16: "half",
    dtypes.float32: "float",
    dtypes.float64: "double",
} | {dtype: f"i{dtype.bits}" for dtype in dtypes.ints}

MANGLED_SCALARS = {"half": "f16", "float": "f32", "double": "f64"}


class Writer(Protocol):
    """What a row needs: names of values, and output lines."""

    def name(self, uop: UOp) -> str: ...

    def line(self, stem: str, text: str) -> str:
        """Write `%stem… = text` and give the name back."""
        ...

    def intrinsic(self, result: str, name: str, *arguments: str) -> str:
        """The text that calls @llvm.name, which is declared once."""
        ...


Row = Callable[[Writer, UOp], str]


def llvm_type(dtype: DType) -> str:
    """float.vec(8) in registers is <8 x float>; bool is one bit."""
    scalar = SCALARS[dtype.scalar]
    return scalar if dtype.count == 1 else f"<{dtype.count} x {scalar}>"


def memory_type(dtype: DType) -> str:
    """A bool is a bit in a register and a byte in memory."""
    return llvm_type(dtypes.uint8.vec(dtype.count) if dtype.kind == "bool" else dtype)


def mangled_type(text: str) -> str:
    """The name of a type in intrinsics: v8f32 for <8 x float>."""
    if not text.startswith("<"):
        return MANGLED_SCALARS.get(text, text)
    count, _, scalar = text[1:-1].split()
    return f"v{count}{MANGLED_SCALARS.get(scalar, scalar)}"


# ---------------------------------------------------------------------- constants


def constant(value: ConstType, dtype: DType) -> str:
    """A literal; for a vector, a splat."""
    one = _scalar_constant(value, dtype.scalar)
    if dtype.count == 1:
        return one
    lane = f"{SCALARS[dtype.scalar]} {one}"
    return f"<{', '.join([lane] * dtype.count)}>"


def _scalar_constant(value: ConstType, dtype: DType) -> str:
    if dtype.kind == "bool":
        return "true" if value else "false"
    if dtype.kind != "float":
        whole = int(value)
        return str(whole - (1 << 64) if whole >= 1 << 63 else whole)
    if dtype is dtypes.float16:
        return f"0xH{struct.unpack('<H', _half_bytes(float(value)))[0]:04X}"
    if dtype is dtypes.float32:
        value = ctypes.c_float(value).value  # LLVM writes floats as exactly equal doubles
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def constant_of(u: UOp) -> ConstType | None:
    """The constant that a value has in all lanes; None if it is not constant."""
    one = u.src[0] if u.op is Ops.STACK and len(set(u.src)) == 1 else u
    return one.arg if one.is_const else None


def _is_known_number(value: ConstType | None) -> bool:
    """True for a constant other than nan."""
    return value is not None and value == value


def _half_bytes(value: float) -> bytes:
    try:
        return struct.pack("<e", value)
    except OverflowError:
        return struct.pack("<e", float("inf") if value > 0 else float("-inf"))


# ---------------------------------------------------------------------- arithmetic


def _binary(floats: str, ints: str, unsigned: str = "", bools: str = "") -> Row:
    """One instruction, chosen by the dtype of the sources."""
    words = {"float": floats, "int": ints, "uint": unsigned or ints, "bool": bools or ints}

    def row(w: Writer, u: UOp) -> str:
        x, y = u.src
        word = words[x.dtype.kind]
        return w.line(_stem(u), f"{word} {llvm_type(x.dtype)} {w.name(x)}, {w.name(y)}")

    return row


def _stem(u: UOp) -> str:
    return u.op.name.lower()


def _neg(w: Writer, u: UOp) -> str:
    kind, x = llvm_type(u.dtype), w.name(u.src[0])
    if u.dtype.kind == "bool":
        return x
    if u.dtype.kind == "float":
        return w.line("neg", f"fneg {kind} {x}")
    return w.line("neg", f"sub {kind} {constant(0, u.dtype)}, {x}")


def _reciprocal(w: Writer, u: UOp) -> str:
    return w.line(
        "reciprocal",
        f"fdiv {llvm_type(u.dtype)} {constant(1.0, u.dtype)}, {w.name(u.src[0])}",
    )


def _call(name: str) -> Row:
    def row(w: Writer, u: UOp) -> str:
        if u.dtype.kind != "float":  # integers are already rounded
            return w.name(u.src[0])
        kind = llvm_type(u.dtype)
        call = w.intrinsic(kind, f"{name}.{mangled_type(kind)}", f"{kind} {w.name(u.src[0])}")
        return w.line(_stem(u), call)

    return row


def _mulacc(w: Writer, u: UOp) -> str:
    """`contract` allows fusing if the machine can; llvm.fma could call a library."""
    x, y, z = map(w.name, u.src)
    kind = llvm_type(u.dtype)
    mul, add = ("fmul contract", "fadd contract") if u.dtype.kind == "float" else ("mul", "add")
    product = w.line("product", f"{mul} {kind} {x}, {y}")
    return w.line("mulacc", f"{add} {kind} {product}, {z}")


def _dot(w: Writer, u: UOp) -> str:
    """The machine's instruction, by LLVM's name for it."""
    dot, kind = u.arg, llvm_type(u.dtype)
    *factors, total = [w.name(source) for source in u.src]
    taken = llvm_type(u.src[0].dtype)
    if dot.operand_dtype is not None:
        taken, before = kind, taken
        factors = [w.line("bytes", f"bitcast {before} {x} to {taken}") for x in factors]
    operands = [f"{taken} {x}" for x in factors]
    if dot.accumulates:
        return w.line("dot", w.intrinsic(kind, dot.name, f"{kind} {total}", *operands))
    found = w.line("dot", w.intrinsic(kind, dot.name, *operands))
    return w.line("dot", f"add {kind} {found}, {total}")


def _where(w: Writer, u: UOp) -> str:
    condition, yes, no = u.src
    kind = llvm_type(u.dtype)
    text = f"{llvm_type(condition.dtype)} {w.name(condition)}, {kind} {w.name(yes)}"
    return w.line("where", f"select {text}, {kind} {w.name(no)}")


def _min_max(ordered: str, signed: str, unsigned: str, bools: str) -> Row:
    """MAX and MIN. Floats take one machine instruction and, unless one is constant, two for nan.

    select(a > b, a, b) gives b when either is nan, as x86's maxps does, so nan in b propagates.
    Only a needs a test, and a is the new term of an accumulation, off its critical path.
    """

    def row(w: Writer, u: UOp) -> str:
        x, y = u.src
        kind, flags = llvm_type(u.dtype), llvm_type(dtypes.bool.vec(u.dtype.count))
        if u.dtype.kind == "bool":
            return w.line(_stem(u), f"{bools} {kind} {w.name(x)}, {w.name(y)}")
        if u.dtype.kind != "float":
            word = unsigned if u.dtype.kind == "uint" else signed
            test = w.line("test", f"icmp {word} {kind} {w.name(x)}, {w.name(y)}")
            return w.line(_stem(u), _select(flags, test, kind, w.name(x), w.name(y)))
        first, second = (x, y) if _is_known_number(constant_of(x)) else (y, x)
        a, b = w.name(first), w.name(second)
        test = w.line("test", f"fcmp {ordered} {kind} {a}, {b}")
        found = w.line(_stem(u), _select(flags, test, kind, a, b))
        if _is_known_number(constant_of(first)):
            return found
        isnan = w.line("isnan", f"fcmp uno {kind} {a}, {a}")
        return w.line(_stem(u), _select(flags, isnan, kind, a, found))

    return row


def _select(flags: str, test: str, kind: str, yes: str, no: str) -> str:
    return f"select {flags} {test}, {kind} {yes}, {kind} {no}"


# ---------------------------------------------------------------------- cases that trap


def _divide(signed: str, unsigned: str, by_minus_one: Callable[[Writer, str, str], str]) -> Row:
    """x / 0 is 0 and x / -1 wraps: the machine's instruction traps at both."""

    def row(w: Writer, u: UOp) -> str:
        x, y = u.src
        kind, flags = llvm_type(u.dtype), llvm_type(dtypes.bool.vec(u.dtype.count))
        is_signed = u.dtype.kind == "int"
        word = signed if is_signed else unsigned
        if constant_of(y) not in (None, 0, -1):
            return w.line(_stem(u), f"{word} {kind} {w.name(x)}, {w.name(y)}")
        zero, one = constant(0, u.dtype), constant(1, u.dtype)
        is_zero = w.line("zero", f"icmp eq {kind} {w.name(y)}, {zero}")
        safe = w.line("safe", _select(flags, is_zero, kind, one, w.name(y)))
        if is_signed:
            minus = w.line("minus", f"icmp eq {kind} {w.name(y)}, {constant(-1, u.dtype)}")
            safe = w.line("safe", _select(flags, minus, kind, one, safe))
        found = w.line(_stem(u), f"{word} {kind} {w.name(x)}, {safe}")
        if is_signed:
            found = w.line(
                _stem(u), _select(flags, minus, kind, by_minus_one(w, kind, w.name(x)), found)
            )
        return w.line(_stem(u), _select(flags, is_zero, kind, zero, found))

    return row


def _negated(w: Writer, kind: str, x: str) -> str:
    return w.line(
        "neg", f"sub {kind} zeroinitializer, {x}" if "x" in kind else f"sub {kind} 0, {x}"
    )


def _no_op(w: Writer, kind: str, x: str) -> str:
    return "zeroinitializer" if "x" in kind else "0"


def _shift(signed: str, unsigned: str) -> Row:
    """Shifting out all bits gives 0, or the sign bits for a signed right shift."""

    def row(w: Writer, u: UOp) -> str:
        x, y = u.src
        bits, kind = u.dtype.bits, llvm_type(u.dtype)
        word = signed if u.dtype.kind == "int" else unsigned
        if (amount := constant_of(y)) is not None and 0 <= amount < bits:
            return w.line(_stem(u), f"{word} {kind} {w.name(x)}, {w.name(y)}")
        flags = llvm_type(dtypes.bool.vec(u.dtype.count))
        fits = w.line("fits", f"icmp ult {kind} {w.name(y)}, {constant(bits, u.dtype)}")
        if word == "ashr":
            largest = constant(bits - 1, u.dtype)
            amount_in_range = w.line("places", _select(flags, fits, kind, w.name(y), largest))
            return w.line(_stem(u), f"ashr {kind} {w.name(x)}, {amount_in_range}")
        found = w.line(_stem(u), f"{word} {kind} {w.name(x)}, {w.name(y)}")
        return w.line(_stem(u), _select(flags, fits, kind, found, constant(0, u.dtype)))

    return row


# ---------------------------------------------------------------------- casts


def _cast(w: Writer, u: UOp) -> str:
    """Floats are truncated to ints; nan becomes 0, overflow the nearest bound."""
    source = u.src[0]
    before, after = source.dtype.kind, u.dtype.kind
    if after == "bool":
        return _not_zero(w, source)
    if before == "float" and after in ("int", "uint"):
        return _to_int(w, source, u.dtype)
    word = _conversion(source.dtype, u.dtype)
    if not word:
        return w.name(source)
    return _convert(w, word, source, u.dtype)


def _convert(w: Writer, word: str, source: UOp, dtype: DType) -> str:
    kind = llvm_type(source.dtype)
    return w.line("cast", f"{word} {kind} {w.name(source)} to {llvm_type(dtype)}")


def _conversion(before: DType, after: DType) -> str:
    """The LLVM instruction between two dtypes; empty if registers are the same."""
    wider = after.bits > before.bits
    if before.kind == "float":
        same = before.scalar is after.scalar
        return "" if same else "fpext" if wider else "fptrunc"
    if after.kind == "float":
        return "sitofp" if before.kind == "int" else "uitofp"
    if before.kind == "bool":
        return "zext"
    if after.bits == before.bits:
        return ""
    return ("sext" if before.kind == "int" else "zext") if wider else "trunc"


def _not_zero(w: Writer, source: UOp) -> str:
    if source.dtype.kind == "bool":
        return w.name(source)
    word = "fcmp une" if source.dtype.kind == "float" else "icmp ne"
    kind, zero = llvm_type(source.dtype), constant(0, source.dtype)
    return w.line("cast", f"{word} {kind} {w.name(source)}, {zero}")


def _to_int(w: Writer, source: UOp, dtype: DType) -> str:
    """llvm.fptosi.sat splits vectors on x86; a conversion and three selects do not."""
    x, kind = w.name(source), llvm_type(source.dtype)
    flags, result = llvm_type(dtypes.bool.vec(dtype.count)), llvm_type(dtype)
    found = _convert(w, "fptosi" if dtype.kind == "int" else "fptoui", source, dtype)
    low, high = int(dtypes.min(dtype)), int(dtypes.max(dtype))
    for word, bound, value in (("olt", low, low), ("oge", high + 1, high), ("uno", 0, 0)):
        test = w.line("test", f"fcmp {word} {kind} {x}, {constant(float(bound), source.dtype)}")
        found = w.line("cast", _select(flags, test, result, constant(value, dtype), found))
    return found


def _bitcast(w: Writer, u: UOp) -> str:
    source = u.src[0]
    if u.dtype.kind == "bool":
        return _not_zero(w, source)
    if source.dtype.kind == "bool":
        return _convert(w, "zext", source, u.dtype)
    if llvm_type(source.dtype) == llvm_type(u.dtype):
        return w.name(source)
    return _convert(w, "bitcast", source, u.dtype)


# ---------------------------------------------------------------------- the table

VALUES: dict[Ops, Row] = {
    Ops.CAST: _cast,
    Ops.BITCAST: _bitcast,
    Ops.NEG: _neg,
    Ops.RECIPROCAL: _reciprocal,
    Ops.SQRT: _call("sqrt"),
    Ops.TRUNC: _call("trunc"),
    Ops.ADD: _binary("fadd", "add", bools="or"),
    Ops.SUB: _binary("fsub", "sub", bools="xor"),
    Ops.MUL: _binary("fmul", "mul", bools="and"),
    Ops.FDIV: _binary("fdiv", "sdiv", "udiv"),
    Ops.CDIV: _divide("sdiv", "udiv", _negated),
    Ops.CMOD: _divide("srem", "urem", _no_op),
    Ops.MAX: _min_max("ogt", "sgt", "ugt", "or"),
    Ops.MIN: _min_max("olt", "slt", "ult", "and"),
    Ops.SHL: _shift("shl", "shl"),
    Ops.SHR: _shift("ashr", "lshr"),
    Ops.AND: _binary("and", "and"),
    Ops.OR: _binary("or", "or"),
    Ops.XOR: _binary("xor", "xor"),
    Ops.CMPLT: _binary("fcmp olt", "icmp slt", "icmp ult", "icmp ult"),
    Ops.CMPEQ: _binary("fcmp oeq", "icmp eq"),
    Ops.CMPNE: _binary("fcmp une", "icmp ne"),
    Ops.WHERE: _where,
    Ops.MULACC: _mulacc,
    Ops.DOT: _dot,
}
