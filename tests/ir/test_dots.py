"""Which sums are dot products, and which instruction computes them."""

from __future__ import annotations

import pytest
from support.compiler.narrow_products import machine, narrow_product
from support.compiler.nests import binders, kernel_of, move

from glassgrad import dtypes
from glassgrad.base.dtype import DType
from glassgrad.ir.dots import find_dot, find_dot_reduction
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Nest
from glassgrad.ir.uop import UOp
from glassgrad.loops.opts import OptOps

BYTE, UBYTE, SHORT = dtypes.int8, dtypes.uint8, dtypes.int16


@pytest.mark.parametrize(
    ("name", "left", "right", "found"),
    [
        ("AVX-VNNI", UBYTE, BYTE, ("x86.avx512.vpdpbusd.256", False)),
        ("AVX-VNNI", BYTE, UBYTE, ("x86.avx512.vpdpbusd.256", True)),
        ("AVX-VNNI", BYTE, BYTE, None),
        ("AVX-VNNI", SHORT, SHORT, ("x86.avx2.pmadd.wd", False)),
        ("AVX-VNNI", BYTE, None, ("x86.avx512.vpdpbusd.256", True)),
        ("NEON dotprod", BYTE, BYTE, ("aarch64.neon.sdot.v4i32.v16i8", False)),
        ("NEON dotprod", UBYTE, BYTE, None),
        ("SSE4.2", BYTE, BYTE, None),
    ],
)
def test_an_instruction_is_found_by_its_dtypes(
    name: str, left: DType, right: DType | None, found: tuple[str, bool] | None
) -> None:
    dot = find_dot(machine(name), left, right)
    assert (None if dot is None else (dot[0].name, dot[1])) == found


def test_only_as_many_steps_as_a_lane_holds_are_a_dot_product() -> None:
    kernel = kernel_of(narrow_product(4, 8, 6, ("uint8", "int8"))[0])
    nest, target = Nest(kernel.body, kernel.outer), machine("AVX-VNNI")

    def found(amount: int) -> UOp:
        return binders(move(nest, OptOps.UNROLL, 2, amount), Ops.REDUCE)[0]

    dotted = find_dot_reduction(found(4), target)
    assert dotted is not None and dotted.steps.size == 4
    assert find_dot_reduction(found(2), target) is None
    assert find_dot_reduction(found(8), target) is None
