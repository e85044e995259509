"""C for CPUs: arguments, cores, scratch, and vectors."""

from collections.abc import Callable

import pytest
from support.compiler.c_texts import F32, body, number
from support.compiler.golden_kernels import written
from support.compiler.hand_programs import I64, Lines, elementwise, integer

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Target
from glassgrad.ir.uop import UOp
from glassgrad.render import ClangRenderer

FUSED = Target("CLANG", "c", features="+avx,+fma")


def text_of(function: Callable[..., UOp], width: int = 4, target: Target | None = None) -> str:
    program = elementwise(function, [F32, F32], F32, 16, width)
    return ClangRenderer(target).render(program.name, program.uops)


def test_arguments_are_taken_from_an_array_of_pointers() -> None:
    text = text_of(lambda x, y: x + y)
    head = "void elementwise(void** args, char* scratch, long long begin, long long end) {\n"
    assert f"{head}  float* data0 = args[0];\n  float* data1 = args[1];\n" in text


def test_variables_follow_the_pointers() -> None:
    lines = Lines()
    out = lines.param(0, F32)
    size = lines.add(UOp(Ops.VARIABLE, I64, (), ("n", 1, 8)))
    loop = lines.loop(0, size)
    lines.store(out.index(loop), number(1.0))
    lines.end(loop)
    assert "long long n = ((long long*)args)[1];" in body(lines.uops, ClangRenderer())


def test_the_loop_over_cores_runs_from_begin_to_end() -> None:
    lines = Lines()
    out = lines.param(0, F32)
    loop = lines.loop(0, 8, AxisKind.CORE)
    lines.store(out.index(loop), number(1.0))
    lines.end(loop)
    found = body(lines.uops, ClangRenderer())
    assert found[1] == "for (long long ridx0 = begin; ridx0 < end; ridx0++) {"


def test_scratch_is_at_the_offset_of_the_program() -> None:
    lines = Lines()
    room = lines.add(UOp(Ops.SCRATCH, F32, (), (3, 8, 64)))
    lines.store(room.index(integer(0)), number(1.0))
    found = body(lines.uops, ClangRenderer())
    assert found == ["float* buf3 = (float*)(scratch+64);", "*(buf3+0) = 1.0f;"]


def test_only_the_vector_types_that_occur_are_defined() -> None:
    text = text_of(lambda x, y: x + y)
    assert "typedef float float4u __attribute__((vector_size(16),aligned(4)));" in text
    assert "float4_of" not in text and "int4" not in text
    assert "(val0+val1);" in text


def test_splats_and_vector_functions_precede_the_kernel() -> None:
    double = lambda x, y: (x < y).where(x, UOp(Ops.CONST, F32.vec(4), (), 2.0))  # noqa: E731
    text = text_of(double)
    assert "static inline float4 float4_of(float x) { return (float4){x,x,x,x}; }" in text
    assert "where_float4(__builtin_convertvector((val0<val1),bool4),val0,float4_of(2.0f))" in text
    assert text.index("static inline float4 where_float4(bool4 x") < text.index("void elementwise")


@pytest.mark.parametrize(
    ("target", "width", "want"),
    [
        (None, 1, "(val0*val1+val0)"),
        (FUSED, 1, "__builtin_fmaf(val0,val1,val0)"),
        (FUSED, 4, "mulacc_float4(val0,val1,val0)"),
    ],
)
def test_fma_is_used_where_the_machine_has_it(target: Target | None, width: int, want: str) -> None:
    assert f"= {want};" in text_of(lambda x, y: x.alu(Ops.MULACC, y, x), width, target)


def test_bits_are_read_through_a_union() -> None:
    text = text_of(lambda x, y: x.bitcast(dtypes.int).bitcast(F32), width=1)
    assert "(((union { float from; int to; }){val0}).to)" in text


def test_infinity_needs_no_header() -> None:
    assert "-__builtin_inff()" in text_of(lambda x, y: x + float("-inf"), width=1)
    assert "#include" not in written("softmax", "c")
