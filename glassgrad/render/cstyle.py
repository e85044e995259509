"""Program -> C-like source: what C, CUDA, Metal and OpenCL share; each language is a table.

float val0 = *(data1+gidx0);           loads are named val, values alu, pointers ptr
*(data0+gidx0) = (val0+(val0*2.0f));   a value that is used once is inlined
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from glassgrad.base.dtype import ConstType, DType, dtypes
from glassgrad.base.errors import DTypeError
from glassgrad.base.rounding import round_float
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Target
from glassgrad.ir.uop import UOp
from glassgrad.render.cstyle_body import INT_MAX, Body
from glassgrad.render.cstyle_values import VALUES, repeats_source

XYZW = "xyzw"


class CStyleRenderer:
    """One language of the C family; the defaults are what all of them share."""

    types: ClassVar[dict[DType, str]] = {
        dtypes.void: "void",
        dtypes.bool: "bool",
        dtypes.int8: "signed char",
        dtypes.uint8: "unsigned char",
        dtypes.int16: "short",
        dtypes.uint16: "unsigned short",
        dtypes.int32: "int",
        dtypes.uint32: "unsigned int",
        dtypes.int64: "long",
        dtypes.uint64: "unsigned long",
        dtypes.float32: "float",
        dtypes.float64: "double",
    }
    memory: ClassVar[str] = ""  # address space of buffers, before a pointer type
    shared: ClassVar[str] = ""  # qualifier of shared arrays
    shared_memory: ClassVar[str] = ""  # address space of shared arrays
    barrier: ClassVar[str] = ""
    long_suffix: ClassVar[str] = "l"
    functions: ClassVar[dict[Ops, str]] = {
        Ops.SQRT: "sqrt",
        Ops.EXP2: "exp2",
        Ops.LOG2: "log2",
        Ops.SIN: "sin",
        Ops.TRUNC: "trunc",
        Ops.POW: "pow",
    }
    bool_literals: ClassVar[tuple[str, str]] = ("false", "true")

    def __init__(self, target: Target) -> None:
        self.target = target

    def render(self, name: str, uops: Sequence[UOp]) -> str:
        """The source of one kernel."""
        return self.assemble(name, Body(self, tuple(uops)))

    # ------------------------------------------------------------------ overridden by languages

    def assemble(self, name: str, body: Body) -> str:
        """The prelude, the head of the kernel, and the body."""
        head = f"{self.head(name, body)}({', '.join(self.parameters(body))}) {{"
        return "\n".join([*self.prelude(body), head, *body.lines, "}"])

    def prelude(self, body: Body) -> list[str]:
        return []

    def head(self, name: str, body: Body) -> str:
        raise NotImplementedError

    def parameters(self, body: Body) -> list[str]:
        return [*(f"{kind} {name}" for kind, name in body.pointers), *self.variables(body)]

    def variables(self, body: Body) -> list[str]:
        return [f"const int {name}" for name in body.variables]

    def coordinate(self, name: str) -> str:
        """gidx0 and lidx0 in terms of the language: blockIdx.x, threadIdx.x."""
        raise NotImplementedError

    # ------------------------------------------------------------------ types and numbers

    def type_name(self, dtype: DType) -> str:
        found = self.types.get(dtype.scalar)
        if found is None:
            raise DTypeError(f"{self.target.language} has no dtype {dtype.scalar.name}")
        return found if dtype.count == 1 else self.vector_name(dtype)

    def vector_name(self, dtype: DType) -> str:
        return f"{dtype.scalar.alias}{dtype.count}"

    def element_name(self, dtype: DType) -> str:
        """The type of elements in memory."""
        return self.type_name(dtype)

    def pointer(self, dtype: DType, is_shared: bool = False) -> str:
        return f"{self.shared_memory if is_shared else self.memory}{self.element_name(dtype)}*"

    def constant(self, uop: UOp) -> str:
        return self.number(uop.arg, uop.dtype)

    def number(self, value: ConstType, dtype: DType) -> str:
        """A literal; for a vector, a splat."""
        if dtype.count > 1:
            return self.vector(dtype, [self.number(value, dtype.scalar)] * dtype.count)
        if dtype.kind == "bool":
            return self.bool_literals[bool(value)]
        if dtype.kind == "float":
            return self.float_literal(float(value), dtype)
        return self.integer(int(value), dtype)

    def integer(self, value: int, dtype: DType) -> str:
        suffix = "u" if dtype.kind == "uint" and dtype.bits >= 32 else ""
        suffix += self.long_suffix if dtype.bits == 64 else ""
        if value == dtypes.min(dtype) and value < -INT_MAX:  # its absolute value overflows
            return f"({value + 1}{suffix}-1)"
        return f"{value}{suffix}"

    def float_literal(self, value: float, dtype: DType) -> str:
        text = self.float_text(value, dtype)
        if dtype is dtypes.float32 or (dtype is dtypes.float64 and math.isfinite(value)):
            return text
        return f"(({self.type_name(dtype)})({text}))"

    def float_text(self, value: float, dtype: DType) -> str:
        if not math.isfinite(round_float(value, dtype)):
            sign = "-" if value < 0 else ""
            return "NAN" if math.isnan(value) else f"{sign}INFINITY"
        text = shortest(value, dtype)
        return text if dtype is dtypes.float64 else f"{text}f"

    # ------------------------------------------------------------------ expressions

    def function(self, op: Ops, dtype: DType) -> str:
        return self.functions[op]

    def multiply_add(self, dtype: DType, x: str, y: str, z: str) -> str:
        return f"fma({x},{y},{z})"

    def bits(self, dtype: DType, source: DType, x: str) -> str:
        raise NotImplementedError

    def vector(self, dtype: DType, parts: list[str]) -> str:
        return f"{self.type_name(dtype)}({','.join(parts)})"

    def lane(self, vector: str, dtype: DType, number: int) -> str:
        return f"{vector}.{XYZW[number]}"

    def stack(self, body: Body, u: UOp) -> str:
        return self.vector(u.dtype, [body.text(source) for source in u.src])

    def load(self, body: Body, u: UOp) -> str:
        """The loaded value, or 0 where the gate is false."""
        index = u.src[0]
        found = self.at(body, index, u.dtype)
        if index.gate is None:
            return found
        return f"({body.text(index.gate)}?{found}:{self.number(0, u.dtype)})"

    def at(self, body: Body, index: UOp, dtype: DType) -> str:
        """*(data0+alu0), or *((float4*)((data0+alu0)))"""
        pointer = body.text(index)
        if dtype.count == 1:
            return f"*{pointer}"
        return f"*(({self.pointer(dtype, body.is_shared(index))})({pointer}))"

    def store(self, body: Body, u: UOp) -> None:
        index, value = u.src
        line = f"{self.at(body, index, value.dtype)} = {body.text(value)};"
        body.line(line if index.gate is None else f"if ({body.text(index.gate)}) {{ {line} }}")

    def elementwise(self, body: Body, u: UOp) -> str:
        return VALUES[u.op](self, u, *[body.operand(u, i) for i in range(len(u.src))])

    def repeats(self, u: UOp, source: int) -> int:
        """How often the text of a uop contains that of a source."""
        # A loop evaluates its size in each iteration, a shuffle its source for each element.
        return 2 if u.op in (Ops.RANGE, Ops.SHUFFLE) or repeats_source(u) else 1

    def is_always_inline(self, u: UOp) -> bool:
        """True if the text of a value is so short that it needs no name."""
        return False

    def loop(self, body: Body, u: UOp, size: str) -> tuple[str, str]:
        """The bounds of a loop: (first, end)."""
        return "0", size

    def scratch(self, body: Body, u: UOp) -> str:
        name, size = f"buf{u.arg[0]}", u.arg[1]
        word = f"{self.shared} " if body.is_shared(u) else ""
        body.line(f"{word}{self.element_name(u.dtype)} {name}[{size}];")
        return name


def shortest(value: float, dtype: DType) -> str:
    """The shortest decimal that reads back as the same number: 0.1, 1.0, 1e-05."""
    digits, wanted = 1, round_float(value, dtype)
    while round_float(float(text := f"{wanted:.{digits}g}"), dtype) != wanted:
        digits += 1
    return text if "." in text or "e" in text else f"{text}.0"
