"""The C family: complete texts of kernels, from hand-written uops and from the pipeline."""

import pytest
from support.compiler.c_texts import F32, I32, number
from support.compiler.golden_kernels import add, no_moves
from support.compiler.hand_programs import Lines
from support.compiler.schedules import memory

from glassgrad import Tensor
from glassgrad.base.dtype import dtypes
from glassgrad.base.errors import DTypeError
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Choose
from glassgrad.ir.uop import UOp
from glassgrad.loops import optimize
from glassgrad.loops.strategies.heuristic import heuristic
from glassgrad.lower import lower
from glassgrad.render import ClangRenderer, CUDARenderer, MetalRenderer, OpenCLRenderer, render
from glassgrad.render.cstyle import CStyleRenderer, shortest
from glassgrad.schedule import schedule

METAL_HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
METAL_PLACE = (
    "uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]"
)
CUDA_HEAD = (
    "#define INFINITY (__int_as_float(0x7f800000))\n#define NAN (__int_as_float(0x7fffffff))\n"
)


def metal(uops: list[UOp], name: str = "example") -> str:
    return MetalRenderer().render(name, uops)


def cuda(uops: list[UOp], name: str = "example") -> str:
    return CUDARenderer("sm_50").render(name, uops)


def test_an_unused_addition_is_rendered() -> None:
    one = number(1.0)
    uops = [one, one + one]
    want = f"example({METAL_PLACE}) {{\n  float alu0 = (1.0f+1.0f);\n}}"
    assert metal(uops) == f"{METAL_HEAD}kernel void {want}"
    head = f'{CUDA_HEAD}extern "C" __global__ void __launch_bounds__(1) example() {{\n'
    assert cuda(uops) == f"{head}  float alu0 = (1.0f+1.0f);\n}}"


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_grid_coordinates_have_comments_with_their_sizes(dimensions: int) -> None:
    uops = [UOp(Ops.SPECIAL, I32, arg=(f"gidx{i}", 16)) for i in range(dimensions)]
    letters = "xyz"[:dimensions]
    lines = "".join(f"  int gidx{i} = gid.{axis}; /* 16 */\n" for i, axis in enumerate(letters))
    assert metal(uops) == f"{METAL_HEAD}kernel void example({METAL_PLACE}) {{\n{lines}}}"
    lines = lines.replace("gid.", "blockIdx.")
    head = 'extern "C" __global__ void __launch_bounds__(1) example() {\n'
    assert cuda(uops) == f"{CUDA_HEAD}{head}{lines}}}"


def test_sixteen_groups_store_one_element_each() -> None:
    lines = Lines()
    out = lines.param(0, F32, 16)
    place = lines.add(UOp(Ops.SPECIAL, I32, arg=("gidx0", 16)))
    lines.store(out.index(place), number(0.5) + number(0.5))
    want = (
        f"kernel void rendered(device float* data0, {METAL_PLACE}) {{\n"
        "  int gidx0 = gid.x; /* 16 */\n  *(data0+gidx0) = (0.5f+0.5f);\n}"
    )
    assert metal(lines.uops, "rendered") == METAL_HEAD + want


def pipeline_text(tensor: Tensor, language: CStyleRenderer, choose: Choose = heuristic) -> str:
    (kernel,) = schedule([tensor.uop], language.target).kernels
    program = lower(optimize(kernel, language.target, choose), language.target)
    return language.render(program.name, program.uops)


def test_the_sum_of_two_matrices_uses_four_threads_and_vectors_of_four() -> None:
    body = """ {
  int lidx0 = lid.x; /* 4 */
  int alu0 = (lidx0<<2);
  float4 val0 = *((device float4*)((data1+alu0)));
  float4 val1 = *((device float4*)((data2+alu0)));
  *((device float4*)((data0+alu0))) = float4(SUMS);
}""".replace("SUMS", ",".join(f"(val0.{axis}+val1.{axis})" for axis in "xyzw"))
    head = f"E_4_4(device float* data0, device float* data1, device float* data2, {METAL_PLACE})"
    assert pipeline_text(add(), MetalRenderer()) == f"{METAL_HEAD}kernel void {head}{body}"
    body = body.replace("device ", "").replace("lid.x", "threadIdx.x")
    body = body.replace("= float4(", "= make_float4(")
    head = "__launch_bounds__(4) E_4_4(float* data0, float* data1, float* data2)"
    want = f'{CUDA_HEAD}extern "C" __global__ void {head}{body}'
    assert pipeline_text(add(), CUDARenderer("sm_50")) == want


def test_without_moves_each_element_has_a_group() -> None:
    body = """ {
  int gidx0 = gid.x; /* 16 */
  float val0 = *(data1+gidx0);
  float val1 = *(data2+gidx0);
  *(data0+gidx0) = (val0+val1);
}"""
    head = f"E_16(device float* data0, device float* data1, device float* data2, {METAL_PLACE})"
    assert (
        pipeline_text(add(), MetalRenderer(), no_moves) == f"{METAL_HEAD}kernel void {head}{body}"
    )
    head = "__launch_bounds__(1) E_16(float* data0, float* data1, float* data2)"
    want = f'{CUDA_HEAD}extern "C" __global__ void {head}{body.replace("gid.", "blockIdx.")}'
    assert pipeline_text(add(), CUDARenderer("sm_50"), no_moves) == want


def test_a_sum_of_all_elements_is_shared_by_sixteen_threads() -> None:
    text = pipeline_text(memory(4096).sum(), CUDARenderer("sm_80"))
    assert "__launch_bounds__(16)" in text and "__shared__ float buf0[16];" in text
    assert text.index("buf0+lidx0) =") < text.index("__syncthreads();") < text.index("*(buf0+ridx")


def test_numbers_have_the_fewest_digits_that_round_trip() -> None:
    assert shortest(0.1, F32) == "0.1"
    assert shortest(1.0, F32) == "1.0"
    assert shortest(1 / 3, dtypes.double) == "0.3333333333333333"
    assert shortest(2.0**100, F32) == "1.2676506e+30"
    assert shortest(-0.0, F32) == "-0.0"


def test_a_dtype_that_the_language_lacks_is_refused() -> None:
    x = number(1.0, dtypes.double)
    with pytest.raises(DTypeError, match="metal has no dtype float64"):
        metal([x, x + x])


def test_a_renderer_takes_a_target_or_an_architecture() -> None:
    for made in (MetalRenderer(), OpenCLRenderer(), CUDARenderer("sm_80"), ClangRenderer()):
        (kernel,) = schedule([add().uop], made.target).kernels
        program = lower(optimize(kernel, made.target), made.target)
        by_target = render(program, made.target)
        assert by_target.text == made.render(program.name, program.uops)
        assert by_target.language == made.target.language
