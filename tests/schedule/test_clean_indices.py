"""Movement is free: one kernel, with indices as a person would write them."""

from __future__ import annotations

import numpy as np
from support.compiler.schedules import memory, planned

from glassgrad import Tensor
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp

SIGNS = {Ops.ADD: "+", Ops.MUL: "*", Ops.FLOORDIV: "//", Ops.FLOORMOD: "%", Ops.CMPLT: "<"}
SIGNS |= {Ops.AND: "&", Ops.CMPEQ: "==", Ops.SUB: "-"}


def text(node: UOp) -> str:
    """An index expression as one would write it; ranges are i0, i1, … by number."""
    if node.is_const:
        return str(node.arg)
    if node.op is Ops.RANGE:
        return f"i{node.axis}"
    left, right = node.src
    return f"({text(left)} {SIGNS[node.op]} {text(right)})"


def loads(*tensors: Tensor) -> list[str]:
    """How the only kernel reads its arguments."""
    (kernel,) = planned(*tensors).kernels
    found = [node.src[0] for node in kernel.body.toposort() if node.op is Ops.LOAD]
    gates = [f" if {text(index.gate)}" if index.gate is not None else "" for index in found]
    return [
        ", ".join(map(text, index.indices)) + gate for index, gate in zip(found, gates, strict=True)
    ]


def test_a_transpose_reads_the_other_way_round() -> None:
    assert loads(memory(64, 32).transpose() * 2) == ["i1, i0"]


def test_a_reshape_that_splits_an_axis_multiplies() -> None:
    assert loads(memory(512, 8).reshape(16, 32, 8) * 2) == ["((i0 * 32) + i1), i2"]


def test_a_reshape_that_joins_axes_divides_once() -> None:
    assert loads(memory(16, 32).reshape(512) * 2) == ["(i0 // 32), (i0 % 32)"]


def test_a_reshape_there_and_back_is_gone() -> None:
    x = memory(16, 32, 8).reshape(512, 8).reshape(64, 64).reshape(16, 32, 8)
    assert loads(x * 2) == ["i0, i1, i2"]


def test_a_permute_between_reshapes_is_undone_by_its_inverse() -> None:
    x = memory(64, 48).reshape(8, 8, 48).permute(2, 0, 1).permute(1, 2, 0).reshape(64, 48)
    assert loads(x * 2) == ["i0, i1"]


def test_pad_shrink_and_flip_leave_one_sum_and_one_gate_per_side() -> None:
    x = memory(512).pad(((2, 3),)).flip(0)
    (found,) = loads(x * 2)
    assert found == "((i0 * -1) + 514) if ((i0 < 515) & ((i0 * -1) < -2))"


def test_padding_that_is_cropped_again_has_no_gate() -> None:
    x = memory(512, 64).pad(((2, 3), (1, 1))).shrink(((2, 514), (1, 65)))
    assert loads(x * 2) == ["i0, i1"]


def test_a_chain_of_all_moves_is_one_kernel_with_a_linear_index() -> None:
    x = memory(512, 512).reshape(16, 32, 512).permute(2, 0, 1)
    x = x.pad(((1, 2), (0, 0), (3, 0))).shrink(((0, 500), (2, 16), (1, 33))).flip(0, 2)
    (found,) = loads(x * 2)
    place, gate = found.split(" if ")
    assert place == "(((i1 * 32) + (i2 * -1)) + 93), ((i0 * -1) + 498)"
    assert gate == "((i0 < 499) & (i2 < 30))"


def test_movement_alone_reads_one_buffer_and_writes_one() -> None:
    x = memory(64, 64)
    made = planned(x.reshape(8, 8, 64).permute(2, 1, 0).flip(1).contiguous())
    assert len(made.kernels) == 1
    assert len(made.buffers[0]) == 2


def test_repeat_reads_with_a_remainder() -> None:
    assert loads(memory(16).repeat(4) * 2) == ["(i0 % 16)"]


def test_windows_of_a_convolution_are_sums_of_two_ranges() -> None:
    found = loads(memory(1, 1, 10, 10).conv2d(memory(1, 1, 3, 3)))
    assert "0, 0, (i0 + i2), (i1 + i3)" in found


def test_a_strided_slice_multiplies() -> None:
    found = loads(memory(64)[::4] * 2)
    assert found == ["(i0 * 4)"]
    assert np.prod(planned(memory(64)[::4] * 2).outputs[0].shape) == 16
