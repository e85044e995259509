"""Sums over rows of scores share the kernel that computes them, or recompute them."""

from __future__ import annotations

import pytest
from support.compiler.schedules import TARGET, memory, planned, sizes

from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Schedule
from glassgrad.ir.uop import UOp
from glassgrad.schedule.materialize.wide_products import can_fuse_backward

SHAPE = (16, 256, 32)
SCORES = 16 * 256 * 256


def step(*shape: int) -> Schedule:
    """Gradients that come long after the weights."""
    q, k, v, w, g = [memory(*found) for found in (shape, shape, shape, (32, 32), shape)]
    loss = ((q.scaled_dot_product_attention(k, v) @ w).softmax() * g).sum()
    return planned(loss, *loss.gradient(q, k, v))


def store_counts(schedule: Schedule) -> list[int]:
    """The number of results of each kernel."""
    return [sum(s.op is Ops.STORE for s in kernel.body.src) for kernel in schedule.kernels]


def test_the_backward_pass_is_fused_where_heads_balance_and_blocks_divide_the_rows() -> None:
    assert can_fuse_backward(16, 256, TARGET)
    assert can_fuse_backward(9, 96, TARGET)  # enough for both cores
    assert not can_fuse_backward(7, 256, TARGET)
    assert not can_fuse_backward(1, 256, TARGET)
    assert not can_fuse_backward(16, 250, TARGET)
    assert not can_fuse_backward(16, 32, TARGET)  # one block


def test_a_product_both_ways_round_is_one_kernel_without_softmax() -> None:
    x, y, left, right = [memory(16, 256, 16) for _ in range(4)]
    scores = (x @ y.transpose(-2, -1)).sin()
    made = planned(scores @ right, scores.transpose(-2, -1) @ left)
    assert store_counts(made) == [2]
    assert SCORES not in sizes(made)


def test_scores_that_are_outputs_are_stored_and_read() -> None:
    x, y, left = [memory(16, 256, 16) for _ in range(3)]
    scores = (x @ y.transpose(-2, -1)).sin()
    made = planned(scores, scores.transpose(-2, -1) @ left)
    assert SCORES in sizes(made)
    assert len(made.kernels) == 2


def test_a_step_computes_the_scores_for_the_weights_and_once_for_all_gradients() -> None:
    def has_scores(body: UOp) -> bool:
        return any(n.op is Ops.STAGE and n.arg[-1:] == (256,) for n in body.toposort())

    made = step(*SHAPE)
    assert sum(has_scores(kernel.body) for kernel in made.kernels) == 2
    assert SCORES not in sizes(made)


@pytest.mark.parametrize("is_detached", [True, False])
def test_the_order_in_which_values_are_met_does_not_matter(is_detached: bool) -> None:
    """Weights and their gradients, in row blocks, are fused whichever is visited first."""
    x, g = memory(8, 256, 3 * 64), memory(8, 256, 64)
    source = x.detach() if is_detached else x
    q, k, v = source.reshape(8, 256, 3, 2, 32).permute(2, 0, 3, 1, 4)
    mixed = q.scaled_dot_product_attention(k, v, is_causal=True).transpose(1, 2)
    made = planned(*mixed.reshape(8, 256, 64).gradient(source, gradient=g))
    assert SCORES not in sizes(made)
    assert store_counts(made) == [3, 1], "all gradients, and their layout"


def test_gradients_that_are_written_into_memory_are_right_too() -> None:
    q, k, v, g = [memory(*SHAPE) for _ in range(4)]
    made = q.scaled_dot_product_attention(k, v)
    gradients = made.gradient(q, k, v, gradient=g)
    room = memory(*SHAPE)
    room.assign(room + gradients[1])
    assert SCORES not in sizes(planned(made, gradients[0], gradients[2], room))


def test_an_unrelated_wide_product_does_not_prevent_the_fused_backward_pass() -> None:
    """A language model's last layer, with few words: its gradient is wide, but nobody's weights."""
    q, k, v, g = [memory(16, 256, 64) for _ in range(4)]
    weights = q.scaled_dot_product_attention(k, v)
    wide = memory(16, 256, 24) @ memory(24, 384)
    rows = wide - wide.mean(-1, keepdim=True)
    made = planned(*(weights * g).sum().gradient(q, k, v), rows, rows.sum((0, 1)))
    alone = planned(*(weights * g).sum().gradient(q, k, v))
    assert max(store_counts(made)) == max(store_counts(alone)) == 3, (
        "all three gradients are one kernel's"
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("is_layer", [False, True])
def test_narrow_floats_are_fused_like_float32(dtype: str, is_layer: bool) -> None:
    """Casts between results and gradients, and between weights and their sums, change nothing."""
    x, *weights = [memory(*shape, dtype=dtype) for shape in ((2, 256, 256), *[(256, 256)] * 4)]
    heads = [(x @ w).reshape(2, 256, 8, 32).transpose(1, 2) for w in weights[:3]]
    y = heads[0].scaled_dot_product_attention(heads[1], heads[2], is_causal=True)
    if is_layer:
        y = y.transpose(1, 2).reshape(2, 256, 256) @ weights[3] + x
        y = y.layernorm().gelu()
    loss = y.square().mean()
    made = planned(loss, *loss.gradient(*weights[: 4 if is_layer else 3]))
    assert 2 * 8 * 256 * 256 not in sizes(made)
