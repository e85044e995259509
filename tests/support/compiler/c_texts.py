"""Hand-written uops as the C family writes them."""

from __future__ import annotations

from collections.abc import Callable

from glassgrad.base.dtype import DType, dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.render.cstyle import CStyleRenderer
from glassgrad.render.opencl import OpenCLRenderer
from support.compiler.hand_programs import Lines, integer

F32, I32 = dtypes.float, dtypes.int


def number(value: float, dtype: DType = F32) -> UOp:
    return UOp(Ops.CONST, dtype, arg=value)


def body(uops: list[UOp], language: CStyleRenderer | None = None) -> list[str]:
    """The lines between the braces."""
    text = (language or OpenCLRenderer()).render("f", uops)
    return [line.strip() for line in text.partition(") {\n")[2].splitlines()[:-1]]


def written(load_text: Callable[[UOp, UOp], UOp], dtype: DType, lang: CStyleRenderer) -> str:
    """How an op of two loaded values is written."""
    lines = Lines()
    x, y = lines.param(1, dtype), lines.param(2, dtype)
    values = [lines.add(UOp(Ops.LOAD, dtype, (p.index(integer(0)),))) for p in (x, y)]
    result = load_text(*values)
    lines.store(lines.param(0, result.dtype).index(integer(0)), result)
    return body(lines.uops, lang)[-1].partition(" = ")[2].rstrip(";")
