"""Kernel or Nest -> formulas: its stores in mathematical notation, one line per named value.

i0 < 64  loop
k1 < 64  reduce

m1 = max over k1 of data1[i0, k1]
data0[i0] = m1 * 2.0
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from glassgrad.ir.ops import AxisKind, Exclusive, Ops
from glassgrad.ir.staged import scan_op
from glassgrad.ir.uop import UOp

MAX_INLINED = 72  # characters; a longer expression gets a name
LETTERS = {AxisKind.LOOP: "i", AxisKind.REDUCE: "k", AxisKind.CORE: "c", AxisKind.UPCAST: "u"}
LETTERS |= {AxisKind.LANE: "l", AxisKind.UNROLL: "n", AxisKind.GLOBAL: "g", AxisKind.LOCAL: "t"}
INFIX = {  # (symbol, precedence)
    Ops.POW: ("**", 8),
    Ops.MUL: ("*", 6), Ops.FDIV: ("/", 6), Ops.FLOORDIV: ("//", 6), Ops.FLOORMOD: ("%", 6),
    Ops.CDIV: ("//", 6), Ops.CMOD: ("%", 6), Ops.ADD: ("+", 5), Ops.SUB: ("-", 5),
    Ops.SHL: ("<<", 4), Ops.SHR: (">>", 4),
    Ops.CMPLT: ("<", 3), Ops.CMPEQ: ("==", 3), Ops.CMPNE: ("!=", 3),
    Ops.AND: ("and", 2), Ops.XOR: ("xor", 1), Ops.OR: ("or", 1),
}  # fmt: skip
TOTALS = {Ops.ADD: "sum", Ops.MUL: "product", Ops.MAX: "max", Ops.MIN: "min"}
UNNAMED = frozenset((Ops.CONST, Ops.RANGE, Ops.PARAM, Ops.INDEX, Ops.LOAD, Ops.VARIABLE))


def formulas(body: UOp) -> str:
    """The axes of a kernel, and its values in order of computation."""
    writer = Writer(body)
    return "\n".join([*writer.axes(), "", *writer.lines]).strip("\n")


class Writer:
    """Formulas of one kernel."""

    def __init__(self, body: UOp) -> None:
        self.nodes = body.toposort()
        self.uses = Counter(source for node in self.nodes for source in node.src)
        self.texts: dict[UOp, str] = {}
        self.names: set[str] = set()
        self.lines: list[str] = []
        for node in self.nodes:
            self._write(node)

    def axes(self) -> Iterator[str]:
        ranges = [node for node in self.nodes if node.op is Ops.RANGE]
        for node in sorted(ranges, key=lambda r: int(r.axis)):
            yield (
                f"{self.texts[node]} < {self.texts[node.src[0]]}".ljust(14) + node.kind.name.lower()
            )

    def _write(self, node: UOp) -> None:
        text = self._text(node)
        if node.op is Ops.SINK:
            return
        is_value = node.op not in UNNAMED and node.dtype.kind not in ("index", "void")
        is_long = len(text) > MAX_INLINED or node.op in (Ops.REDUCE, Ops.SCAN)
        if node.op in (Ops.STORE, Ops.STAGE):
            target, value = text.split(" = ", 1)
            self.lines.append(f"{target} = {value}")
            self.texts[node] = target.split("[", 1)[0]
        elif is_value and (is_long or self.uses[node] > 1):
            name = f"{_stem(node)}{len(self.lines)}"
            self.lines.append(f"{name} = {text}")
            self.texts[node] = name
            self.names.add(name)
        else:
            self.texts[node] = text

    def _text(self, node: UOp) -> str:
        texts = [self.texts[source] for source in node.src if source in self.texts]
        if node.op in FORMATS:
            return FORMATS[node.op](node, texts)
        if node.op is Ops.INDEX:
            return self._element(node)
        if node.op is Ops.STAGE:
            indices = ", ".join(texts[1 : 1 + len(node.arg)])
            return f"scratch{len(self.lines)}[{indices}] = {texts[0]}"
        if node.op is Ops.NEG:
            return f"-{self._inner(node.src[0], 7)}"
        if node.op in INFIX and len(texts) == 2:
            sign, level = INFIX[node.op]
            left, right = node.src
            return f"{self._inner(left, level)} {sign} {self._inner(right, level + 1)}"
        return f"{node.op.name.lower()}({', '.join(texts)})"

    def _inner(self, node: UOp, level: int) -> str:
        """An operand, in parentheses if its precedence is lower."""
        text = self.texts[node]
        if text in self.names or node.op not in INFIX or INFIX[node.op][1] >= level:
            return text
        return f"({text})"

    def _element(self, node: UOp) -> str:
        """An element of a buffer, with its gate."""
        gates = [source for source in node.src[1:] if source.dtype.kind == "bool"]
        indices = [self.texts[source] for source in node.src[1:] if source not in gates]
        text = f"{self.texts[node.src[0]]}[{', '.join(indices)}]"
        return f"({text} if {self.texts[gates[0]]} else 0)" if gates else text


def _stem(node: UOp) -> str:
    """The first letter of a name, by the kind of value."""
    if node.op in (Ops.REDUCE, Ops.SCAN):
        return {Ops.MAX: "m", Ops.MIN: "m", Ops.MUL: "p"}.get(_named_by(node), "s")
    return "x"


def _number(value: Any) -> str:
    return f"{value:.7g}" if isinstance(value, float) else str(value)


def _total(node: UOp, texts: list[str]) -> str:
    terms, loops = texts[: len(texts) - len(node.bound)], texts[len(texts) - len(node.bound) :]
    kind = TOTALS[_named_by(node)]
    over = f" over {', '.join(loops)}" if loops else ""
    running = "running " if node.op is Ops.SCAN else ""
    suffix = " until then" if isinstance(node.arg, Exclusive) else ""
    scaled = f", times {terms[1]} at each step" if len(terms) > 1 else ""
    return f"{running}{kind}{over} of {terms[0]}{suffix}{scaled}"


def _named_by(node: UOp) -> Ops:
    """The op of a REDUCE or SCAN; a scan with a factor is a sum."""
    op = scan_op(node)
    return Ops.ADD if op is Ops.MULACC else op


def _cast(node: UOp, texts: list[str]) -> str:
    return texts[0] if node.dtype.kind == "index" else f"{node.dtype.name}({texts[0]})"


FORMATS: dict[Ops, Callable[[UOp, list[str]], str]] = {  # (node, texts of its sources) -> text
    Ops.SINK: lambda node, texts: "",
    Ops.CONST: lambda node, texts: _number(node.arg),
    Ops.RANGE: lambda node, texts: f"{LETTERS.get(node.kind, 'g')}{node.axis}",
    Ops.VARIABLE: lambda node, texts: str(node.arg[0]),
    Ops.PARAM: lambda node, texts: f"data{node.arg.slot}",
    Ops.LOAD: lambda node, texts: texts[0],
    Ops.STORE: lambda node, texts: f"{texts[0]} = {texts[1]}",
    Ops.REDUCE: _total,
    Ops.SCAN: _total,
    Ops.WHERE: lambda node, texts: f"({texts[1]} if {texts[0]} else {texts[2]})",
    Ops.CAST: _cast,
    Ops.BITCAST: _cast,
}
