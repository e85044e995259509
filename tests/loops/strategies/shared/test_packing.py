"""Packed operands: transposed in registers where their reuse is limited."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from support.compiler.narrow_products import machine, narrow_product
from support.compiler.nests import kernel_of, ops_of
from support.compiler.programs import TARGET
from support.compiler.schedules import memory

from glassgrad import Tensor
from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest
from glassgrad.ir.strides import stride, written_stride
from glassgrad.ir.uop import UOp
from glassgrad.loops import optimize
from glassgrad.loops.opts import OptOps


def shaped(tensor: Tensor) -> Nest:
    return optimize(kernel_of(tensor), TARGET)


def packed(nest: Nest) -> UOp:
    stages = [n for n in nest.body.toposort() if n.op is Ops.STAGE]
    (found,) = [n for n in stages if n.src[0].op is Ops.LOAD and not n.src[0].src[0].gate]
    return found


def along_memory(nest: Nest) -> list[int]:
    """Sizes of the registers of a packed operand that lie side by side in memory."""
    block = packed(nest)
    (index,) = [n.src[0] for n in block.src[0].toposort() if n.op is Ops.LOAD]
    loops = [r for r in block.bound if r.kind is AxisKind.UPCAST]
    return [r.size for r in loops if stride(index, r) == 1]


def test_a_transposed_matrix_is_packed_in_blocks() -> None:
    assert along_memory(shaped(memory(64, 96) @ memory(80, 96).transpose(0, 1))) == [8]


def test_a_matrix_that_is_packed_as_it_lies_needs_none() -> None:
    nest = shaped(memory(64, 96) @ memory(96, 80))
    (axis,) = [r for r in packed(nest).bound if r.kind is AxisKind.LANE]
    (index,) = [n.src[0] for n in packed(nest).src[0].toposort() if n.op is Ops.LOAD]
    assert stride(index, axis) == 1


def test_panels_that_lie_side_by_side_are_filled_together() -> None:
    block = packed(shaped(memory(512, 512) @ memory(512, 512)))
    (index,) = [n.src[0] for n in block.src[0].toposort() if n.op is Ops.LOAD]
    copied = [r for r in block.bound if r.kind.is_unrolled]
    assert sum((r.size - 1) * (stride(index, r) or 0) for r in copied) + 1 == 128, "one run"


def test_steps_that_share_a_line_of_a_panel_are_written_together() -> None:
    """Eight rows are half a line; panels are 8 KB apart, which map to few cache sets."""
    wide = replace(TARGET, vector_bytes=64, registers=32)
    kernel = kernel_of(memory(2048, 1536).transpose() @ memory(2048, 384))
    blocks = [n for n in optimize(kernel, wide).body.toposort() if n.op is Ops.STAGE]
    found: dict[int, list[int]] = {}
    for block in [b for b in blocks if b.src[0].op is Ops.LOAD]:
        written = [(written_stride(block, r), r) for r in block.bound if r.kind.is_unrolled]
        width = prod(r.size for distance, r in written if distance in (1, 8, 16, 32))
        found[block.src[0].src[0].src[0].arg.slot] = [r.size for _, r in written]
        assert width * 4 % 64 == 0, "whole lines"
    assert sorted(found[1]) == [2, 8, 8], "two steps, eight panels, eight lanes"


def test_often_read_elements_are_packed_one_by_one() -> None:
    assert along_memory(shaped(memory(1024, 96) @ memory(80, 96).transpose(0, 1))) == []


def test_window_steps_are_packed_as_one_row() -> None:
    nest = shaped(memory(1, 32, 9, 9).conv2d(memory(32, 32, 3, 3)))
    assert ops_of(nest).count(OptOps.COALESCE) == 3, (
        "pixels, and channels with both axes of a window"
    )
    assert along_memory(nest) == [8]


@pytest.mark.parametrize(("m", "n", "k"), [(5, 19, 8), (64, 80, 96), (33, 47, 77), (7, 16, 9)])
def test_values_are_right(m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(k)
    x, w = rng.standard_normal((m, k)), rng.standard_normal((n, k))
    found = Tensor(x.astype(np.float32)) @ Tensor(w.astype(np.float32)).transpose(0, 1)
    np.testing.assert_allclose(found.numpy(), x @ w.T, rtol=1e-4, atol=1e-4)


def test_steps_of_a_dot_product_are_packed_in_turn() -> None:
    nest = optimize(
        kernel_of(narrow_product(64, 64, 64, ("uint8", "int8"))[0]), machine("AVX-VNNI")
    )
    (right,) = [n for n in nest.body.toposort() if n.op is Ops.STAGE and n.arg[-1] == 4]
    lanes = [r for r in right.bound if r.kind is AxisKind.LANE]
    assert [r.size for r in lanes] == [16], "columns that lie side by side in memory"
