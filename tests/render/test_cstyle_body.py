"""Arguments, memory, shared scratch and barriers in each language."""

import pytest
from support.compiler.c_texts import F32, I32, body, number
from support.compiler.hand_programs import Lines, integer

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.render import CUDARenderer, MetalRenderer, OpenCLRenderer
from glassgrad.render.cstyle import CStyleRenderer


def test_an_unused_slot_is_still_a_parameter() -> None:
    lines = Lines()
    out, x = lines.param(0, F32), lines.param(2, F32)
    lines.store(out.index(integer(0)), UOp(Ops.LOAD, F32, (x.index(integer(0)),)))
    text = CUDARenderer("sm_80").render("f", lines.uops)
    assert "f(float* data0, unsigned char* data1, float* data2)" in text


def test_a_gate_selects_zero_or_guards_a_store() -> None:
    lines = Lines()
    out, x = lines.param(0, F32), lines.param(1, F32)
    place = lines.add(UOp(Ops.SPECIAL, I32, arg=("gidx0", 16)))
    gate = lines.add(place < 5)
    value = lines.add(UOp(Ops.LOAD, F32, (x.index(place, gate=gate),)))
    lines.store(out.index(place, gate=gate), value)
    assert body(lines.uops, CUDARenderer("sm_80"))[1:] == [
        "bool alu0 = (gidx0<5);",
        "float val0 = (alu0?*(data1+gidx0):0.0f);",
        "if (alu0) { *(data0+gidx0) = val0; }",
    ]


@pytest.mark.parametrize(
    ("language", "shared", "barrier", "pointer"),
    [
        (CUDARenderer("sm_80"), "__shared__", "__syncthreads();", "float4*"),
        (
            MetalRenderer(),
            "threadgroup",
            "threadgroup_barrier(mem_flags::mem_threadgroup);",
            "threadgroup float4*",
        ),
        (OpenCLRenderer(), "__local", "barrier(CLK_LOCAL_MEM_FENCE);", "__local float4*"),
    ],
    ids=["cuda", "metal", "opencl"],
)
def test_threads_share_memory_after_a_barrier(
    language: CStyleRenderer, shared: str, barrier: str, pointer: str
) -> None:
    lines = Lines()
    out = lines.param(0, F32)
    room = lines.add(UOp(Ops.SCRATCH, F32, (), (0, 16, 0, True)))
    own = lines.add(UOp(Ops.SCRATCH, F32, (), (1, 4, 64, False)))
    thread = lines.add(UOp(Ops.SPECIAL, I32, arg=("lidx0", 16)))
    stored = lines.store(room.index(thread), number(1.0))
    lines.store(own.index(number(0, I32)), number(2.0))
    done = lines.add(UOp(Ops.BARRIER, dtypes.void, (stored,)))
    seen = lines.after(room, done)
    four = lines.add(UOp(Ops.LOAD, F32.vec(4), (seen.index(number(4, I32)),)))
    lines.store(out.index(thread), UOp(Ops.GEP, F32, (four,), 2))
    found = body(lines.uops, language)
    assert found[0] == f"{shared} float buf0[16];"
    assert found[1] == "float buf1[4];"
    assert found[-3] == barrier
    assert found[-2] == f"float4 val0 = *(({pointer})((buf0+4)));"
    assert found[-1].endswith("= val0.z;")


def test_variables_are_arguments() -> None:
    lines = Lines()
    out = lines.param(0, F32)
    size = lines.add(UOp(Ops.VARIABLE, I32, (), ("n", 1, 8)))
    loop = lines.add(UOp(Ops.RANGE, I32, (size,), (0, lines.loop(9, 1).kind)))
    lines.store(out.index(loop), number(1.0))
    lines.uops = [u for u in lines.uops if u.op is not Ops.RANGE or u is loop]
    lines.end(loop)
    assert "f(float* data0, const int n)" in CUDARenderer("sm_80").render("f", lines.uops)
    assert "constant int& n" in MetalRenderer().render("f", lines.uops)
    assert "ridx0 < n;" in OpenCLRenderer().render("f", lines.uops)
