"""OpenCL: extensions are enabled, bools are bytes in memory."""

from support.compiler.c_texts import F32, body, written
from support.compiler.golden_kernels import written as golden
from support.compiler.hand_programs import Lines, integer

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.render import OpenCLRenderer


def test_float64_requires_an_extension() -> None:
    lines = Lines()
    out, x = lines.param(0, dtypes.double), lines.param(1, dtypes.double)
    value = lines.add(UOp(Ops.LOAD, dtypes.double, (x.index(integer(0)),)))
    lines.store(out.index(integer(0)), value * 0.1)
    text = OpenCLRenderer().render("f", lines.uops)
    assert text.startswith("#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n__kernel void f(")
    assert "(val0*0.1);" in text


def test_bools_are_bytes_in_memory() -> None:
    lines = Lines()
    out, x = lines.param(0, dtypes.bool), lines.param(1, dtypes.bool)
    four = lines.add(UOp(Ops.LOAD, dtypes.bool.vec(4), (x.index(integer(0)),)))
    one = lines.add(UOp(Ops.LOAD, dtypes.bool, (x.index(integer(4)),)))
    lines.store(out.index(integer(0)), UOp(Ops.GEP, dtypes.bool, (four,), 1) & one)
    assert "f(__global uchar* data0, __global uchar* data1)" in OpenCLRenderer().render(
        "f", lines.uops
    )
    assert body(lines.uops) == [
        "uchar4 val0 = *((__global uchar4*)((data1+0)));",
        "bool val1 = *(data1+4);",
        "*(data0+0) = (val0.y&val1);",
    ]


def test_long_vectors_have_numbered_elements() -> None:
    assert OpenCLRenderer().lane("val0", F32.vec(16), 10) == "val0.sa"
    assert OpenCLRenderer().lane("val0", F32.vec(4), 3) == "val0.w"


def test_vectors_are_made_by_a_cast() -> None:
    assert "= (float4)((val0.x+val1.x)," in golden("add", "opencl")


def test_functions_have_their_plain_names() -> None:
    assert written(lambda x, y: x.alu(Ops.LOG2), F32, OpenCLRenderer()) == "log2(val0)"


def test_float16_is_stored_as_ints() -> None:
    assert "__global ushort* data1" in golden("cast_half", "opencl")
