"""One loop over window rows and channels: when there is one, and how weights are packed."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import numpy as np
import pytest
from support.compiler.nests import kernel_of, same
from support.compiler.programs import TARGET, program_of
from support.compiler.schedules import memory, planned

from glassgrad import Tensor
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Kernel, Nest
from glassgrad.ir.uop import UOp, make_range
from glassgrad.loops import optimize
from glassgrad.loops.opts import OptOps
from glassgrad.loops.strategies.convolution_order import swaps


def convolution(batch: int, channels: int, out: int, size: int) -> Kernel:
    x, w = memory(batch, channels, size, size), memory(out, channels, 3, 3)
    return kernel_of(x.conv2d(w, padding=1))


def gradient(batch: int, channels: int, out: int, size: int) -> Kernel:
    x, w = memory(batch, channels, size, size), memory(out, channels, 3, 3)
    (found,) = (x.conv2d(w, padding=1) * memory(batch, out, size, size)).sum().gradient(x)
    return planned(found).kernels[-1]


Made = Callable[[int, int, int, int], Kernel]


def sum_of(nest: Nest) -> UOp:
    (found,) = [node for node in nest.body.toposort() if node.op is Ops.REDUCE]
    return found


@pytest.mark.parametrize("made", [convolution, gradient])
def test_rows_and_channels_are_one_loop_and_columns_are_unrolled(made: Made) -> None:
    nest = optimize(made(8, 64, 64, 14), TARGET)
    assert [(r.size, r.kind) for r in sum_of(nest).bound] == [
        (3 * 64, AxisKind.REDUCE),
        (3, AxisKind.UNROLL),
    ]


@pytest.mark.parametrize("made", [convolution, gradient])
def test_each_pointer_walks_through_the_copy_with_one_step(made: Made) -> None:
    program = program_of(optimize(made(8, 64, 64, 14), TARGET))
    products = [n for n, line in enumerate(program.uops) if line.op is Ops.MULACC]
    inside = program.uops[products[0] : products[-1]]
    assert not [line for line in inside if line.op in (Ops.CDIV, Ops.CMOD, Ops.SHR, Ops.AND)]
    assert len(products) == 3 * 6 * 2, "three columns of a tile of six pixels and two vectors"


@pytest.mark.parametrize("made", [convolution, gradient])
@pytest.mark.parametrize(("batch", "size"), [(1, 5), (3, 7)])
def test_the_moves_change_no_value(made: Made, batch: int, size: int) -> None:
    kernel = made(batch, 9, 16, size)
    nest = optimize(kernel, TARGET)
    assert OptOps.CACHE_READ in [opt.op for opt in nest.recipe]
    same(Nest(kernel.body, kernel.outer, kernel.may_alias), nest)


def test_weights_with_little_reuse_are_transposed_in_registers() -> None:
    few = program_of(optimize(convolution(1, 64, 64, 7), TARGET))
    many = program_of(optimize(convolution(8, 64, 64, 14), TARGET))
    assert any(line.op is Ops.SHUFFLE for line in few.uops)
    assert not any(line.op is Ops.SHUFFLE for line in many.uops)


def test_values_are_right_where_weights_are_transposed() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 40, 6, 6)).astype(np.float32)
    w = rng.standard_normal((48, 40, 3, 3)).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), (2, 3)
    )
    expected = np.einsum("ncyxij,ocij->noyx", windows, w)
    found = Tensor(x).conv2d(Tensor(w), padding=1).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_swaps_bring_loops_into_any_order() -> None:
    axes = [make_range(number, 2) for number in range(4)]
    for wanted in permutations(axes):
        order = [axis.axis for axis in axes]
        for opt in swaps(axes, wanted):
            one, two = order.index(opt.axis), order.index(opt.arg)
            order[one], order[two] = order[two], order[one]
        assert order == [axis.axis for axis in wanted]
