"""Metal: precise functions, its own type names and address spaces."""

import pytest
from support.compiler.c_texts import F32, written
from support.compiler.golden_kernels import written as golden

from glassgrad.base.dtype import DType, dtypes
from glassgrad.ir.ops import Ops
from glassgrad.render import MetalRenderer
from glassgrad.render.metal import metal_target


def test_functions_are_the_precise_ones() -> None:
    assert written(lambda x, y: x.alu(Ops.EXP2), F32, MetalRenderer()) == "precise::exp2(val0)"
    assert written(lambda x, y: x.alu(Ops.SQRT), F32, MetalRenderer()) == "precise::sqrt(val0)"


@pytest.mark.parametrize(
    ("dtype", "name"),
    [(dtypes.bfloat16, "bfloat"), (dtypes.ulong, "ulong"), (dtypes.half.vec(4), "half4")],
)
def test_types_have_short_names(dtype: DType, name: str) -> None:
    assert MetalRenderer().type_name(dtype) == name


def test_metal_has_no_float64() -> None:
    assert dtypes.float64 not in metal_target().dtypes
    assert dtypes.half in metal_target().dtypes


def test_buffers_and_shared_memory_have_address_spaces() -> None:
    text = golden("sum_all", "metal")
    assert "kernel void r_" in text and "(device float* data0, device float* data1, uint3" in text
    assert "threadgroup float buf0[16];" in text
