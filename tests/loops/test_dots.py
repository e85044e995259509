"""Sums of products that lie along memory: lanes along the sum, a tile of sums around it."""

from __future__ import annotations

import numpy as np
import pytest
from programs import TARGET
from schedules import memory, planned

from glassgrad import Tensor
from glassgrad.engine.choose import chooser
from glassgrad.ir.stages import Kernel
from glassgrad.loops import optimize
from glassgrad.loops.opts import OptOps


def moves(kernel: Kernel) -> list[OptOps]:
    return [opt.op for opt in optimize(kernel, TARGET, chooser()).recipe]


def gradient_of_weights(size: int) -> Tensor:
    x, w = memory(4, 6, size, size), memory(8, 6, 3, 3)
    y = x.conv2d(w)
    return y.gradient(w, gradient=memory(*y.shape))[0]


def test_the_gradient_of_a_convolutions_weights_has_a_tile_of_sums() -> None:
    (kernel,) = planned(gradient_of_weights(18)).kernels
    found = moves(kernel)
    assert found.count(OptOps.UPCAST) == 2
    assert OptOps.UNROLL in found


def test_a_convolution_with_few_columns_keeps_its_lanes_there() -> None:
    (kernel,) = planned(memory(4, 6, 8, 8).conv2d(memory(8, 6, 3, 3))).kernels
    assert OptOps.WINDOW in moves(kernel)


@pytest.mark.parametrize("size", [5, 8, 11, 18])
def test_values_are_right_for_any_length(size: int) -> None:
    rng = np.random.default_rng(size)
    x = rng.standard_normal((3, 2, size, size)).astype(np.float32)
    w = Tensor(rng.standard_normal((4, 2, 3, 3)).astype(np.float32))
    y = Tensor(x).conv2d(w)
    g = rng.standard_normal(y.shape).astype(np.float32)
    (found,) = y.gradient(w, gradient=Tensor(g))
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
    np.testing.assert_allclose(
        found.numpy(), np.einsum("noyx,ncyxij->ocij", g, windows), rtol=1e-4, atol=1e-4
    )
