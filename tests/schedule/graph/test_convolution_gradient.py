"""The gradient of a convolution is a convolution: one kernel, nothing as large as its windows."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from support.compiler.schedules import memory, planned

from glassgrad import Tensor
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import toposort
from glassgrad.schedule.graph.convolution_gradient import fuse_convolution_gradients


def gradient_of_input(options: dict[str, int], shape: tuple[int, ...] = (2, 6, 9, 9)) -> Tensor:
    x = memory(*shape)
    w = memory(4, shape[1] // options.get("groups", 1), *(3,) * (len(shape) - 2))
    y = x.conv2d(w, **options)
    return y.gradient(x, gradient=memory(*y.shape))[0]


@pytest.mark.parametrize(
    "options", [{}, {"padding": 1}, {"dilation": 2}, {"padding": 2, "dilation": 2}]
)
def test_the_gradient_of_a_convolutions_input_is_one_sum_of_products(
    options: dict[str, int],
) -> None:
    made = planned(gradient_of_input(options))
    assert len(made.kernels) == 1
    (root,) = fuse_convolution_gradients([gradient_of_input(options).uop])
    assert sum(node.op is Ops.REDUCE for node in toposort((root,))) == 1


def test_with_a_stride_the_sums_are_not_fused() -> None:
    (root,) = fuse_convolution_gradients([gradient_of_input({"stride": 2}).uop])
    assert sum(node.op is Ops.REDUCE for node in toposort((root,))) > 1


def test_no_buffer_has_an_element_per_element_of_each_window() -> None:
    made = planned(gradient_of_input({"padding": 1}, (2, 32, 20, 20)))
    largest = max(prod(node.shape) for nodes in made.buffers for node in nodes)
    assert largest == 2 * 32 * 20 * 20  # the gradient itself


def test_cropped_elements_are_not_summed() -> None:
    (root,) = fuse_convolution_gradients([memory(9, 8).sum(1)[2:5].uop])
    assert (root.op, root.src[0].shape) == (Ops.REDUCE, (3, 8))
    whole = memory(9, 8).sum(1)
    roots = [whole[2:5].uop, whole.uop]
    assert fuse_convolution_gradients(roots) == roots


def test_a_sum_with_another_reader_stays() -> None:
    x, w, g = memory(1, 2, 6), memory(3, 2, 3), memory(1, 3, 4)
    windows = x.unfold(2, 3, 1)  # (1, 2, 4, 3)
    product = (g.reshape(1, 3, 1, 4, 1) * w.reshape(1, 3, 2, 1, 3)).sum(1)
    (spread,) = windows.gradient(x, gradient=product)
    roots = [spread.uop, (product * 2).uop]
    assert fuse_convolution_gradients(roots) == roots


@pytest.mark.parametrize("options", [{}, {"padding": 1}, {"dilation": 2}, {"groups": 2}])
def test_values_stay_the_same(options: dict[str, int]) -> None:
    rng = np.random.default_rng(0)
    x = Tensor(rng.standard_normal((2, 4, 7, 7)).astype(np.float32))
    groups = options.get("groups", 1)
    w = Tensor(rng.standard_normal((4, 4 // groups, 3, 3)).astype(np.float32))
    y = x.conv2d(w, **options)
    g = rng.standard_normal(y.shape).astype(np.float32)
    (found,) = y.gradient(x, gradient=Tensor(g))
    # The adjoint of a linear map: <conv(x), g> = <x, gradient>
    left, right = float((y.numpy() * g).sum()), float((x.numpy() * found.numpy()).sum())
    assert left == pytest.approx(right, rel=1e-4)
    step = Tensor(rng.standard_normal(x.shape).astype(np.float32))
    left = float((step.conv2d(w, **options).numpy() * g).sum())
    assert left == pytest.approx(float((step.numpy() * found.numpy()).sum()), rel=1e-3, abs=1e-3)
