"""CUDA: missing types are defined, and nvcc compiles every kernel."""

import shutil
import subprocess
from pathlib import Path

import pytest
from support.compiler.c_texts import F32, body, number
from support.compiler.golden_kernels import KERNELS, programs
from support.compiler.hand_programs import Lines, integer

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.render import CUDARenderer
from glassgrad.render.cuda import cuda_target, needs_definition


def test_bfloat16_requires_a_later_architecture() -> None:
    assert dtypes.bfloat16 not in cuda_target("sm_75").dtypes
    assert dtypes.bfloat16 in cuda_target("sm_90a").dtypes
    assert cuda_target("sm_90a").arch == "sm_90a"


def test_missing_vector_types_are_structs() -> None:
    half = dtypes.half
    lines = Lines()
    out, x = lines.param(0, half), lines.param(1, half)
    four = lines.add(UOp(Ops.LOAD, half.vec(4), (x.index(integer(0)),)))
    parts = tuple(lines.add(UOp(Ops.GEP, half, (four,), i)) for i in (3, 2, 1, 0))
    lines.store(out.index(integer(0)), UOp(Ops.STACK, half.vec(4), parts))
    text = CUDARenderer("sm_80").render("f", lines.uops)
    assert "#include <cuda_fp16.h>" in text
    assert "struct __align__(8) half4 { half x, y, z, w; };" in text
    assert "*((half4*)((data0+0))) = half4{val0.w,val0.z,val0.y,val0.x};" in text


@pytest.mark.parametrize(
    ("dtype", "missing"),
    [(F32.vec(4), False), (F32.vec(8), True), (dtypes.double.vec(2), False)]
    + [(dtypes.long.vec(4), True), (dtypes.bool.vec(4), True), (dtypes.uchar.vec(4), False)],
)
def test_missing_vector_types_are_known(dtype: dtypes, missing: bool) -> None:
    assert needs_definition(dtype) is missing


def test_int64_literals_have_a_suffix() -> None:
    lines = Lines()
    out = lines.param(0, dtypes.ulong)
    lines.store(out.index(integer(0)), number(7, dtypes.ulong))
    assert body(lines.uops, CUDARenderer("sm_80")) == ["*(data0+0) = 7ull;"]


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
def test_nvcc_compiles_every_golden_kernel(tmp_path: Path) -> None:
    """One file for all kernels, as nvcc takes seconds to start."""
    target = cuda_target("sm_80")
    renderer = CUDARenderer(target)
    heads: dict[str, None] = {}
    bodies = []
    for kernel in KERNELS:
        for number_, program in enumerate(programs(kernel, target)):
            text = renderer.render(f"{kernel}_{number_}", program.uops)
            head, start, rest = text.partition('extern "C"')
            heads.update(dict.fromkeys(head.splitlines()))
            bodies.append(start + rest)
    file = tmp_path / "kernels.cu"
    file.write_text("\n".join([*heads, *bodies]))
    command = ["nvcc", "-arch=sm_80", "-ptx", "-o", str(tmp_path / "kernels.ptx"), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "kernels.ptx").read_text().count(".entry") == len(bodies)
