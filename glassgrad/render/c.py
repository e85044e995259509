"""Program -> C for clang and gcc: vectors by their extensions, one function per kernel.

The function is `void name(void** args, char* scratch, long long begin, long long end)`: args[i] is
the pointer of PARAM i, followed by the VARIABLEs in order of name. The CORE range runs from begin
to end. Where C has no vector operator, each lane is computed by itself. The lanes of a vector of
bools are 0 and -1, as comparisons give them.
"""

from __future__ import annotations

import re
from typing import ClassVar

from glassgrad.base.dtype import ConstType, DType, dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Target
from glassgrad.ir.uop import UOp
from glassgrad.render.c_vectors import (
    OPERATORS,
    function,
    function_name,
    has_operator,
    mask_of,
    splat_of,
)
from glassgrad.render.cores import steps_per_iteration
from glassgrad.render.cstyle import CStyleRenderer
from glassgrad.render.cstyle_body import Body
from glassgrad.render.cstyle_values import VALUES

LONG = "long long"
WORD = re.compile(r"\w+")
SIGNATURE = f"void** args, char* scratch, {LONG} begin, {LONG} end"


def c_target() -> Target:
    """Any CPU, with vectors of 16 bytes, which all compilers support."""
    floats = {dtypes.float32, dtypes.float64}
    return Target(
        "CLANG", "c", vector_bytes=16, dtypes=frozenset({*dtypes.ints, dtypes.bool, *floats})
    )


class ClangRenderer(CStyleRenderer):
    """Writes programs in C."""

    types: ClassVar[dict[DType, str]] = {
        **CStyleRenderer.types,
        dtypes.bool: "_Bool",
        dtypes.int64: LONG,
        dtypes.uint64: f"unsigned {LONG}",
    }
    functions: ClassVar[dict[Ops, str]] = {
        op: f"__builtin_{name}" for op, name in CStyleRenderer.functions.items()
    }
    long_suffix = "ll"
    bool_literals = ("0", "1")

    def __init__(self, target: Target | None = None) -> None:
        super().__init__(target or c_target())
        features = self.target.features.split(",")
        self.has_fma = "+fma" in features or "+neon" in features

    # ------------------------------------------------------------------ the function

    def assemble(self, name: str, body: Body) -> str:
        head = f"void {name}({SIGNATURE}) {{"
        return "\n".join([*self.prelude(body), head, *self.arguments(body), *body.lines, "}"])

    def arguments(self, body: Body) -> list[str]:
        pointers = [
            f"  {self.pointer(param.dtype)} data{slot} = args[{slot}];"
            for slot, param in sorted(body.params.items())
        ]
        first = len(body.pointers)
        return pointers + [
            f"  {LONG} {name} = (({LONG}*)args)[{first + number}];"
            for number, name in enumerate(body.variables)
        ]

    def prelude(self, body: Body) -> list[str]:
        """Helper functions, after the definitions of all vector types that occur."""
        functions = list(body.functions.values())
        used = set(WORD.findall("\n".join([*functions, *body.lines])))
        named = [pair for dtype in vector_dtypes(body) for pair in self.definitions(dtype).items()]
        # A function that splats a vector needs its type, even if the type's name does not occur.
        used |= {name.removesuffix("_of") for name in used}
        return [*(line for name, line in named if name in used), *functions]

    def definitions(self, dtype: DType) -> dict[str, str]:
        """The type of a vector, its unaligned version for memory, and the splat function."""
        scalar, name = self.lane_type(dtype), self.vector_name(dtype)
        size, align = f"vector_size({dtype.itemsize})", f"aligned({dtype.scalar.itemsize})"
        lanes = ",".join(["-x" if dtype.kind == "bool" else "x"] * dtype.count)
        splat = f"static inline {name} {name}_of({scalar} x) {{ return ({name}){{{lanes}}}; }}"
        return {
            name: f"typedef {scalar} {name} __attribute__(({size}));",
            f"{name}u": f"typedef {scalar} {name}u __attribute__(({size},{align}));",
            f"{name}_of": splat,
        }

    def lane_type(self, dtype: DType) -> str:
        return "signed char" if dtype.kind == "bool" else self.type_name(dtype.scalar)

    def element_name(self, dtype: DType) -> str:
        """Vectors in memory may be unaligned."""
        name = self.type_name(dtype)
        return name if dtype.count == 1 else f"{name}u"

    def scratch(self, body: Body, u: UOp) -> str:
        number, _, offset = u.arg[:3]
        pointer = self.pointer(u.dtype)
        body.line(f"{pointer} buf{number} = ({pointer})(scratch+{offset});")
        return f"buf{number}"

    def loop(self, body: Body, u: UOp, size: str) -> tuple[str, str]:
        """The bounds of a loop over cores: `begin` and `end`, relative to the outer loops."""
        cores = steps_per_iteration(body.uops)
        if u not in cores:
            return super().loop(body, u, size)
        loops, inside = list(cores), cores[u]
        outer = loops[: loops.index(u)]
        before = "".join(f"-{body.text(loop)}*{cores[loop]}" for loop in outer)
        begin, end = f"begin{before}", f"end{before}"
        if outer:
            begin = f"({begin}>0?{begin}:0)"
        if inside > 1:
            begin, end = f"({begin})/{inside}", f"({end}+{inside - 1})/{inside}"
        return begin, f"({end}<{size}?{end}:{size})" if outer else end

    # ------------------------------------------------------------------ values

    def float_text(self, value: float, dtype: DType) -> str:
        text = super().float_text(value, dtype)
        words = {"NAN": '__builtin_nanf("")', "INFINITY": "__builtin_inff()"}
        for word, meaning in words.items():
            text = text.replace(word, meaning)
        return text

    def function(self, op: Ops, dtype: DType) -> str:
        name = self.functions[op]
        return name if dtype.scalar is dtypes.float64 else f"{name}f"

    def multiply_add(self, dtype: DType, x: str, y: str, z: str) -> str:
        """Without the machine's instruction the builtin would be a slow call."""
        if not self.has_fma:
            return f"({x}*{y}+{z})"
        name = "__builtin_fma" if dtype.scalar is dtypes.float64 else "__builtin_fmaf"
        return f"{name}({x},{y},{z})"

    def bits(self, dtype: DType, source: DType, x: str) -> str:
        union = f"union {{ {self.type_name(source)} from; {self.type_name(dtype)} to; }}"
        return f"((({union}){{{x}}}).to)"

    # ------------------------------------------------------------------ vectors

    def vector(self, dtype: DType, parts: list[str]) -> str:
        if dtype.kind == "bool":
            parts = [f"-({part})" for part in parts]
        return f"({self.vector_name(dtype)}){{{','.join(parts)}}}"

    def number(self, value: ConstType, dtype: DType) -> str:
        if dtype.count == 1:
            return super().number(value, dtype)
        return f"{self.vector_name(dtype)}_of({self.number(value, dtype.scalar)})"

    def stack(self, body: Body, u: UOp) -> str:
        splat = splat_of(u)
        if splat is None:
            return super().stack(body, u)
        return f"{self.vector_name(u.dtype)}_of({body.text(splat)})"

    def lane(self, vector: str, dtype: DType, number: int) -> str:
        element = f"{vector}[{number}]"
        return f"({element}!=0)" if dtype.kind == "bool" else element

    def scalar(self, u: UOp, texts: list[str]) -> str:
        return VALUES[u.op](self, u, *texts)

    def elementwise(self, body: Body, u: UOp) -> str:
        if u.dtype.count == 1:
            return super().elementwise(body, u)
        texts = [body.text(source) for source in u.src]
        if has_operator(u):
            return OPERATORS[u.op](self, u, *texts)
        name = function_name(self, u)
        body.functions[name] = function(self, u)
        return f"{name}({','.join(texts)})"

    def is_always_inline(self, u: UOp) -> bool:
        return u.op is Ops.STACK and splat_of(u) is not None

    def repeats(self, u: UOp, source: int) -> int:
        gate = u.gate if u.op is Ops.INDEX else None
        if gate is not None and gate.dtype.count > 1:
            return 2
        is_vector = u.dtype.count > 1 and u.op is not Ops.SHUFFLE
        return 1 if is_vector else super().repeats(u, source)

    def load(self, body: Body, u: UOp) -> str:
        gate = u.src[0].gate
        if gate is not None and gate.dtype.count > 1:
            return self.vector(u.dtype, [self.one(body, u, i) for i in range(u.dtype.count)])
        if u.dtype.kind != "bool" or u.dtype.count == 1:
            return super().load(body, u)
        found = f"({self.at(body, u.src[0], u.dtype)}!=0)"
        return found if gate is None else f"({body.text(gate)}?{found}:{self.number(0, u.dtype)})"

    def one(self, body: Body, u: UOp, number: int) -> str:
        """One lane of a load with a gate per lane."""
        gate, pointer = body.text(u.src[0].src[-1]), body.text(u.src[0])
        return f"({gate}[{number}]?{pointer}[{number}]:{self.number(0, u.dtype.scalar)})"

    def store(self, body: Body, u: UOp) -> None:
        index, value = u.src
        gate = index.gate
        if gate is not None and gate.dtype.count > 1:
            pointer, mask, text = body.text(index), body.text(gate), body.text(value)
            for i in range(value.dtype.count):
                one = self.lane(text, value.dtype, i)
                body.line(f"if ({mask}[{i}]) {{ {pointer}[{i}] = {one}; }}")
        elif value.dtype.kind == "bool" and value.dtype.count > 1:
            line = f"{self.at(body, index, value.dtype)} = ({body.text(value)}&1);"
            body.line(line if gate is None else f"if ({body.text(gate)}) {{ {line} }}")
        else:
            super().store(body, u)


def vector_dtypes(body: Body) -> list[DType]:
    """The vector dtypes of a kernel, and the int vectors that masks for them need."""
    found: dict[DType, None] = {}
    for dtype in body.dtypes():
        if dtype.count > 1:
            found[dtype] = None
            found[mask_of(dtype)] = None
    return list(found)
