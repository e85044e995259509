"""K_BLOCK: partial sums in scratch; and LANES, along which nothing need be contiguous."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiler.programs import TARGET
from support.compiler.schedules import memory, planned

from glassgrad import Tensor
from glassgrad.engine.compile.optimizer_policy import current_policy
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest
from glassgrad.loops import optimize
from glassgrad.loops.moves.table import apply_opt
from glassgrad.loops.opts import IllegalMove, Opt, OptOps


def product_nest() -> Nest:
    (kernel,) = planned(memory(6, 8) @ memory(8, 4)).kernels
    return Nest(kernel.body, kernel.outer)


def test_all_results_accumulate_each_k_block() -> None:
    nest = apply_opt(product_nest(), Opt(OptOps.K_BLOCK, 2, (0, 4)), TARGET)
    (kept,) = [node for node in nest.body.toposort() if node.op is Ops.STAGE]
    assert kept.arg == (4,)  # the columns of a row
    part, columns = kept.bound
    assert (part.size, columns.size) == (2, 4)
    assert part.kind is AxisKind.LOOP
    (sums,) = [node for node in nest.body.toposort() if node.op is Ops.REDUCE]
    assert [r.size for r in sums.bound] == [4]


@pytest.mark.parametrize(
    ("opt", "why"),
    [
        (Opt(OptOps.K_BLOCK, 2, (0, 3)), "do not evenly divide"),
        (Opt(OptOps.K_BLOCK, 2, (0, 8)), "do not evenly divide"),
        (Opt(OptOps.K_BLOCK, 1, (0, 2)), "exactly one sum"),
        (Opt(OptOps.K_BLOCK, 2, (1, 2)), "no loop is inside"),
        (Opt(OptOps.LANES, 1, 4), "unrolled by UPCAST"),
    ],
)
def test_errors_say_why_a_move_is_illegal(opt: Opt, why: str) -> None:
    with pytest.raises(IllegalMove, match=why):
        apply_opt(product_nest(), opt, TARGET)


def test_nothing_is_added_twice_to_sums_in_scratch() -> None:
    nest = apply_opt(product_nest(), Opt(OptOps.K_BLOCK, 2, (0, 4)), TARGET)
    (kept,) = [node for node in nest.body.toposort() if node.op is Ops.STAGE]
    with pytest.raises(IllegalMove, match="twice"):
        apply_opt(nest, Opt(OptOps.UPCAST, kept.bound[1].axis, 3), TARGET)
    apply_opt(nest, Opt(OptOps.UPCAST, kept.bound[1].axis, 2), TARGET)


def test_lanes_fit_the_registers() -> None:
    nest = apply_opt(product_nest(), Opt(OptOps.UPCAST, 0, 6), TARGET)
    with pytest.raises(IllegalMove, match="do not divide into vectors of 4"):
        apply_opt(nest, Opt(OptOps.LANES, 3, 4), TARGET)
    nest = apply_opt(nest, Opt(OptOps.LANES, 3, 2), TARGET)
    assert [r.size for r in nest.outer if r.kind is AxisKind.LANE] == [2]


def gradient_of_weights(batch: int, channels: int, size: int, padding: int = 0) -> Tensor:
    x, w = memory(batch, channels, size, size), memory(16, channels, 3, 3)
    y = x.conv2d(w, padding=padding)
    return y.gradient(w, gradient=memory(*y.shape))[0]


def test_a_long_sum_over_images_is_blocked_by_image() -> None:
    (kernel,) = planned(gradient_of_weights(64, 8, 26)).kernels
    nest = optimize(kernel, TARGET, current_policy())
    assert OptOps.K_BLOCK in [opt.op for opt in nest.recipe]
    scratch = [node for node in nest.body.toposort() if node.op is Ops.STAGE]
    assert len(scratch) == 2  # the sums, and one image's share of the gradient; no windows


@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("size", [5, 26])
def test_its_values_are_right(size: int, padding: int) -> None:
    rng = np.random.default_rng(size)
    x = rng.standard_normal((70, 3, size, size)).astype(np.float32)
    w = Tensor(rng.standard_normal((19, 3, 3, 3)).astype(np.float32))
    y = Tensor(x).conv2d(w, padding=padding)
    g = rng.standard_normal(y.shape).astype(np.float32)
    (found,) = y.gradient(w, gradient=Tensor(g))
    padded = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    expected = np.einsum("noyx,ncyxij->ocij", g.astype(np.float64), windows)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-3, atol=2e-3)


def test_a_deep_product_of_a_transposed_matrix_packs_nothing_twice() -> None:
    (kernel,) = planned(memory(2048, 96).T @ memory(2048, 128)).kernels
    nest = optimize(kernel, TARGET, current_policy())
    found = [opt for opt in nest.recipe if opt.op is OptOps.K_BLOCK]
    assert [opt.arg[1] for opt in found] == [256]
    shapes = [node.arg for node in nest.body.toposort() if node.op is Ops.STAGE]
    assert len(shapes) == 3  # the sums of a block, and a part of each operand
    assert all(int(np.prod(shape)) <= 512 * 128 for shape in shapes)


@pytest.mark.parametrize(("m", "k", "n"), [(96, 2048, 128), (97, 1536, 130), (100, 1024, 48)])
def test_deep_products_are_right(m: int, k: int, n: int) -> None:
    rng = np.random.default_rng(m)
    a, b = rng.standard_normal((k, m)), rng.standard_normal((k, n))
    found = Tensor(a.astype(np.float32)).T @ Tensor(b.astype(np.float32))
    np.testing.assert_allclose(found.numpy(), a.T @ b, rtol=1e-3, atol=1e-3)
