"""Uops -> the lines of a C-like kernel: names of values, and which lines belong to which loops.

The syntax of each language comes from its CStyleRenderer.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING

from glassgrad.base.dtype import DType, dtypes
from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.uop import UOp
from glassgrad.render.cstyle_plan import inlined_values
from glassgrad.render.cstyle_values import VALUES

if TYPE_CHECKING:
    from glassgrad.render.cstyle import CStyleRenderer

MAX_NESTING = 60  # of parentheses: compilers accept up to 256, people fewer
INT_MAX = (1 << 31) - 1
# An int literal needs no suffix if the other operand determines the type.
TYPED_BY_OTHER_OPERAND = OpGroup.BINARY - {Ops.SHL, Ops.SHR}


class Body:
    """The lines of one kernel, its names, and its helper functions."""

    def __init__(self, language: CStyleRenderer, uops: tuple[UOp, ...]) -> None:
        self.language = language
        self.uops = uops
        self.lines: list[str] = []
        self.names: dict[UOp, str] = {}
        self.depths: dict[UOp, int] = {}  # nesting of parentheses
        self.counts: defaultdict[str, int] = defaultdict(int)
        self.indent = 1
        self.params = {uop.arg.slot: uop for uop in uops if uop.op is Ops.PARAM}
        bound = sorted(uop.arg[0] for uop in uops if uop.op is Ops.VARIABLE)
        self.variables = list(dict.fromkeys(bound))
        self.specials = {uop.arg[0]: uop.arg[1] for uop in uops if uop.op is Ops.SPECIAL}
        self.functions: dict[str, str] = {}  # helper functions, by name
        self.inlined_values = inlined_values(uops, language.repeats, language.is_always_inline)
        for uop in uops:
            self.names[uop] = ROWS[uop.op](self, uop)

    @property
    def pointers(self) -> list[tuple[str, str]]:
        """(type, name) of the arguments by slot, including slots that are not read."""
        slots = range(max(self.params, default=-1) + 1)
        kinds = {slot: param.dtype for slot, param in self.params.items()}
        pointer = self.language.pointer
        return [(pointer(kinds.get(slot, dtypes.uint8)), f"data{slot}") for slot in slots]

    @property
    def threads(self) -> int:
        """The number of threads in a group."""
        return math.prod(size for name, size in self.specials.items() if name[0] == "l")

    def has(self, *ops: Ops) -> bool:
        return any(uop.op in ops for uop in self.uops)

    def dtypes(self) -> list[DType]:
        """All dtypes that occur, in order of appearance."""
        return list(dict.fromkeys(uop.dtype for uop in self.uops))

    def text(self, uop: UOp) -> str:
        found = self.names.get(uop)
        return self.expression(uop) if found is None else found

    def operand(self, user: UOp, number: int) -> str:
        """The text of a source, without a suffix where the other operand determines its type."""
        source = user.src[number]
        if source.is_const and source.dtype.kind == "int" and abs(source.arg) <= INT_MAX:
            other = user.src[1 - number] if len(user.src) == 2 else source
            is_amount = user.op in (Ops.SHL, Ops.SHR) and number == 1
            if is_amount or (user.op in TYPED_BY_OTHER_OPERAND and not other.is_const):
                return str(source.arg)
        return self.text(source)

    def is_shared(self, index: UOp) -> bool:
        """True for a pointer into memory that the threads of a group share."""
        while index.op is not Ops.SCRATCH:
            if not index.src:
                return False
            index = index.src[0]
        return bool(index.arg[3:]) and index.arg[3]

    # ------------------------------------------------------------------ writing

    def line(self, text: str) -> None:
        self.lines.append(f"{'  ' * self.indent}{text}")

    def fresh(self, stem: str) -> str:
        number = self.counts[stem]
        self.counts[stem] += 1
        return f"{stem}{number}"

    def declare(self, stem: str, kind: str, value: str) -> str:
        name = self.fresh(stem)
        self.line(f"{kind} {name} = {value};")
        return name

    def expression(self, u: UOp) -> str:
        return EXPRESSIONS.get(u.op, _elementwise)(self, u)

    def value(self, u: UOp) -> str:
        """The expression of a value, or the name that it is assigned to here."""
        text = self.expression(u)
        depth = 1 + max((self.depths.get(source, 0) for source in u.src), default=0)
        if u in self.inlined_values and depth <= MAX_NESTING:
            self.depths[u] = depth
            return text
        if u.op is Ops.INDEX:
            return self.declare("ptr", self.language.pointer(u.dtype, self.is_shared(u)), text)
        return self.declare("alu", self.language.type_name(u.dtype), text)


# ---------------------------------------------------------------------- expressions


def _elementwise(body: Body, u: UOp) -> str:
    return body.language.elementwise(body, u)


def _const(body: Body, u: UOp) -> str:
    return body.language.constant(u)


def _index(body: Body, u: UOp) -> str:
    index = u.src[1]
    step = str(index.arg) if index.is_const else body.text(index)
    return f"({body.text(u.src[0])}+{step})"


def _gep(body: Body, u: UOp) -> str:
    return body.language.lane(body.text(u.src[0]), u.src[0].dtype, u.arg)


def _shuffle(body: Body, u: UOp) -> str:
    """Element by element: compilers recognise shuffles."""
    texts, dtype = [body.text(source) for source in u.src], u.dtype
    parts = [body.language.lane(texts[i // dtype.count], dtype, i % dtype.count) for i in u.arg]
    return body.language.vector(dtype, parts)


def _stack(body: Body, u: UOp) -> str:
    return body.language.stack(body, u)


EXPRESSIONS: dict[Ops, Callable[[Body, UOp], str]] = {
    Ops.CONST: _const,
    Ops.INDEX: _index,
    Ops.GEP: _gep,
    Ops.STACK: _stack,
    Ops.SHUFFLE: _shuffle,
}


# ---------------------------------------------------------------------- lines


def _param(body: Body, u: UOp) -> str:
    return f"data{u.arg.slot}"


def _variable(body: Body, u: UOp) -> str:
    return str(u.arg[0])


def _special(body: Body, u: UOp) -> str:
    name, size = u.arg
    kind, index = body.language.type_name(u.dtype), body.language.coordinate(name)
    body.line(f"{kind} {name} = {index}; /* {size} */")
    return str(name)


def _scratch(body: Body, u: UOp) -> str:
    return body.language.scratch(body, u)


def _acc(body: Body, u: UOp) -> str:
    name = f"acc{u.arg}"
    body.line(f"{body.language.type_name(u.dtype)} {name} = {body.text(u.src[0])};")
    return name


def _assign(body: Body, u: UOp) -> str:
    body.line(f"{body.text(u.src[0])} = {body.text(u.src[1])};")
    return body.text(u.src[0])


def _after(body: Body, u: UOp) -> str:
    """Lines are already in order."""
    return body.text(u.src[0])


def _range(body: Body, u: UOp) -> str:
    name, kind = f"ridx{u.axis}", body.language.type_name(u.dtype)
    size = str(u.src[0].arg) if u.src[0].is_const else body.text(u.src[0])
    first, last = body.language.loop(body, u, size)
    body.line(f"for ({kind} {name} = {first}; {name} < {last}; {name}++) {{")
    body.indent += 1
    return name


def _if(body: Body, u: UOp) -> str:
    body.line(f"if ({body.text(u.src[0])}) {{")
    body.indent += 1
    return ""


def _close(body: Body, u: UOp) -> str:
    body.indent -= 1
    body.line("}")
    return ""


def _load(body: Body, u: UOp) -> str:
    return body.declare("val", body.language.type_name(u.dtype), body.language.load(body, u))


def _store(body: Body, u: UOp) -> str:
    body.language.store(body, u)
    return ""


def _prefetch(body: Body, u: UOp) -> str:
    """Only CPU targets prefetch, and their compilers have this builtin."""
    body.line(f"__builtin_prefetch({body.text(u.src[0])}, {int(u.arg)});")
    return ""


def _barrier(body: Body, u: UOp) -> str:
    if body.language.barrier:
        body.line(body.language.barrier)
    return ""


def _value(body: Body, u: UOp) -> str:
    return body.value(u)


ROWS: dict[Ops, Callable[[Body, UOp], str]] = {
    **dict.fromkeys(VALUES, _value),
    Ops.CONST: _const,
    Ops.INDEX: _value,
    Ops.GEP: _gep,
    Ops.STACK: _value,
    Ops.SHUFFLE: _value,
    Ops.PARAM: _param,
    Ops.VARIABLE: _variable,
    Ops.SPECIAL: _special,
    Ops.SCRATCH: _scratch,
    Ops.ACC: _acc,
    Ops.ASSIGN: _assign,
    Ops.AFTER: _after,
    Ops.RANGE: _range,
    Ops.END: _close,
    Ops.IF: _if,
    Ops.ENDIF: _close,
    Ops.LOAD: _load,
    Ops.STORE: _store,
    Ops.PREFETCH: _prefetch,
    Ops.BARRIER: _barrier,
}
