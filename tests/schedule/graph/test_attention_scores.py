"""Attention's gradient recomputes its weights, along rows and columns, instead of storing them."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiler.programs import TARGET as CPU
from support.compiler.schedules import TARGET, memory, planned, sizes

from glassgrad import Tensor, dtypes
from glassgrad.engine.compile.optimizer_policy import current_policy
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Schedule
from glassgrad.loops import optimize
from glassgrad.loops.nest import axes
from glassgrad.schedule.fuse import profitability, row_block_legality
from glassgrad.schedule.graph import attention_scores
from glassgrad.schedule.graph.attention_scores import rematerialize_scores
from glassgrad.schedule.materialize import wide_products

SHAPE = (16, 256, 32)
SCORES = 16 * 256 * 256


def attend(q: Tensor, k: Tensor, v: Tensor, is_causal: bool = True) -> Tensor:
    return q.scaled_dot_product_attention(k, v, is_causal=is_causal)


def trained(is_causal: bool = True, shape: tuple[int, ...] = SHAPE) -> Schedule:
    """A step whose gradient comes long after the weights: other operations use the result first."""
    q, k, v, w, g = [memory(*found) for found in (shape, shape, shape, (32, 32), shape)]
    loss = ((attend(q, k, v, is_causal) @ w).softmax() * g).sum()
    return planned(loss, *loss.gradient(q, k, v, w))


@pytest.mark.parametrize("is_causal", [True, False])
def test_no_kernel_of_a_training_step_stores_scores_or_weights(is_causal: bool) -> None:
    assert SCORES not in sizes(trained(is_causal))


@pytest.mark.parametrize(
    ("shape", "counts"),
    [
        ((16, 256, 32), [6]),  # scores, gradients of weights, their sums, queries, keys, values
        (
            (16, 252, 32),
            [5, 4],
        ),  # no block size divides the rows: two kernels, one with transposed scores
        ((7, 288, 32), [4, 4]),  # two cores would wait for one head
    ],
)
def test_gradients_are_one_kernel_or_one_for_queries_and_one_for_keys_and_values(
    shape: tuple[int, ...], counts: list[int]
) -> None:
    kernels = [
        sum(node.op is Ops.REDUCE and node.arg is Ops.ADD for node in kernel.body.toposort())
        for kernel in trained(shape=shape).kernels
        if any(s.op is Ops.STAGE and s.arg[-1:] == shape[-2:-1] for s in kernel.body.toposort())
    ]
    assert kernels[1:] == counts


def test_all_loops_over_masked_keys_are_shortened() -> None:
    for kernel in trained().kernels[-2:]:
        nest = optimize(kernel, CPU, current_policy())
        stages = [n for n in kernel.body.toposort() if n.op is Ops.STAGE and n.arg[-1:] == (256,)]
        short = [r for r in axes(nest) if not r.src[0].is_const]
        assert len(short) >= len(stages) or not stages


@pytest.mark.parametrize("shape", [(1024, 32), (1, 1, 1024, 32), (2, 65536, 32), (40_000, 32)])
def test_few_heads_with_long_sequences_store_no_weights_either(shape: tuple[int, ...]) -> None:
    q, k, v, w, g = [memory(*shape) for shape in (shape, shape, shape, (32, 32), shape)]
    loss = ((attend(q, k, v) @ w).softmax() * g).sum()
    length = shape[-2]
    assert max(sizes(planned(loss, *loss.gradient(q, k, v, w)))) < length * length / 8


def test_a_gradient_that_does_not_wait_shares_the_kernel_of_the_forward_pass() -> None:
    q, k, v, g = [memory(*SHAPE) for _ in range(4)]
    made = attend(q, k, v)
    schedule = planned(made, *made.gradient(q, k, v, gradient=g))
    assert len(schedule.kernels) == 1
    assert SCORES not in sizes(schedule)


def test_products_that_are_deep_small_or_alone_are_left_as_they_are() -> None:
    for batch, time, width in ((16, 256, 256), (2, 32, 8), (1, 1024, 32)):
        q, k, v, g = [memory(batch, time, width) for _ in range(4)]
        made = attend(q, k, v)
        roots = [x.uop for x in (made, *made.gradient(q, k, v, gradient=g))]
        assert rematerialize_scores(roots, TARGET) == roots


def test_factors_may_be_looked_up() -> None:
    table, indices = memory(50, 32), memory(16, 256, dtype=dtypes.int32)
    k, v, g = [memory(*SHAPE) for _ in range(3)]
    made = attend(table[indices], k, v)
    assert SCORES not in sizes(planned(made, *made.gradient(table, k, v, gradient=g)))


def reference(x: list[np.ndarray], late: bool) -> float:
    q, k, v, w, g = x
    place = np.arange(q.shape[-2])
    scores = q @ np.swapaxes(k, -1, -2) * q.shape[-1] ** -0.5
    scores = np.where(place > place[:, None], -np.inf, scores)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    made = weights / weights.sum(-1, keepdims=True) @ v @ w
    return float(((np.tanh(made) if late else made) * g).sum())


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize("shape", [(4, 16, 4), (3, 24, 8), (2, 2, 9, 4), (5, 20, 3)])
def test_gradients_are_finite_differences(
    shape: tuple[int, ...], late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (row_block_legality, profitability):
        monkeypatch.setattr(module, "MIN_OUTER_ITERATIONS", 2)
        monkeypatch.setattr(module, "SINGLE_CORE_BYTES", 0)
    monkeypatch.setattr(attention_scores, "MIN_SCORE_BYTES", 0)
    monkeypatch.setattr(wide_products, "WIDE_RATIO", 0)
    monkeypatch.setattr(row_block_legality, "BLOCK_ROWS", 0)
    rng = np.random.default_rng(shape[-2])
    wide = shape[-1]
    x = [rng.standard_normal(s) for s in (shape, shape, shape, (wide, wide), shape)]
    tensors = [Tensor(part.astype(np.float32)) for part in x]
    made = attend(*tensors[:3]) @ tensors[3]
    loss = ((made.tanh() if late else made) * tensors[4]).sum()
    for number, gradient in enumerate(loss.gradient(*tensors[:4])):
        direction = rng.standard_normal(x[number].shape)
        moved = [
            [*x[:number], x[number] + sign * direction, *x[number + 1 :]] for sign in (1e-5, -1e-5)
        ]
        above, below = [reference(inputs, late) for inputs in moved]
        assert (gradient.numpy() * direction).sum() == pytest.approx(
            (above - below) / 2e-5, rel=2e-3
        )


@pytest.mark.parametrize("widths", [(13, 784, 1), (13, 784, 3), (3, 2000, 1)])
def test_wide_layers_before_few_outputs_have_gradients(widths: tuple[int, ...]) -> None:
    """A layer much wider than its input is a wide product; the gradient of the next layer's weight
    sums it over rows, to a vector if there is one output.
    """
    rng = np.random.default_rng(0)
    inputs, wide, outputs = widths
    shapes = (1000, inputs), (inputs, wide), (wide,), (wide, outputs)
    x, first, bias, second = [rng.standard_normal(shape) for shape in shapes]
    data, *params = [Tensor(part.astype(np.float32)) for part in (x, first, bias, second)]
    loss = ((data @ params[0] + params[1]).tanh() @ params[2]).square().mean()
    found = loss.gradient(*params)
    Tensor.realize(loss, *found)
    hidden = np.tanh(x @ first + bias)
    g = 2 * (hidden @ second) / (1000 * outputs)
    before = g @ second.T * (1 - hidden**2)
    for one, other in zip(found, (x.T @ before, before.sum(0), hidden.T @ g), strict=True):
        np.testing.assert_allclose(one.numpy(), other, rtol=1e-3, atol=1e-4 * np.abs(other).max())
