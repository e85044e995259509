"""Attention from its plain expression: one kernel, row blocks, nothing for masked keys."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.compiler.programs import TARGET
from support.compiler.schedules import memory, planned

from glassgrad import Tensor
from glassgrad.engine.compile.optimizer_policy import current_policy
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Kernel, Nest
from glassgrad.loops import optimize
from glassgrad.loops.analysis.mask_bounds import masked_loops
from glassgrad.loops.moves.table import apply_opt
from glassgrad.loops.nest import axes
from glassgrad.loops.opts import IllegalMove, Opt, OptOps
from glassgrad.loops.strategies.attention import MIN_BLOCKS_PER_SHARE

HEADS, TIME, WIDTH = 16, 128, 32
BEFORE, BEYOND = -1, 1


def attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
    scores = query @ key.transpose(-2, -1) * WIDTH**-0.5
    return (scores if mask is None else scores + mask).softmax(-1) @ value


def causal(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return query.scaled_dot_product_attention(key, value, is_causal=True)


def heads() -> list[Tensor]:
    return [memory(HEADS, TIME, WIDTH) for _ in range(3)]


def only_kernel(result: Tensor) -> Kernel:
    (kernel,) = planned(result).kernels
    return kernel


@pytest.mark.parametrize("mask", [None, (TIME, TIME), (HEADS, 1, TIME)])
def test_the_plain_expression_is_one_kernel_without_scores(mask: tuple[int, ...] | None) -> None:
    kernel = only_kernel(attention(*heads(), None if mask is None else memory(*mask)))
    shapes = [node.arg.shape for node in kernel.body.toposort() if node.op is Ops.PARAM]
    assert (HEADS, TIME, TIME) not in shapes
    assert sum(node.op is Ops.STORE for node in kernel.body.toposort()) == 1


def test_a_common_divisor_is_applied_to_the_sum() -> None:
    kernel = only_kernel(attention(*heads()))
    stages = [node for node in kernel.body.toposort() if node.op is Ops.STAGE and node.arg]
    assert len(stages) == 2  # scores and their exponentials; not the quotients
    (store,) = [node for node in kernel.body.toposort() if node.op is Ops.STORE]
    assert store.src[1].op is Ops.FDIV


def test_each_product_has_a_tile_in_blocks_of_rows() -> None:
    nest = optimize(only_kernel(attention(*heads())), TARGET, current_policy())
    moves = [opt.op for opt in nest.recipe]
    assert moves.count(OptOps.ROW_BLOCK) == 1
    assert moves.count(OptOps.PACK) == 1  # the keys are transposed once for all blocks
    scratch = [node.arg for node in nest.body.toposort() if node.op is Ops.STAGE]
    assert all(TIME * TIME > int(np.prod(shape)) for shape in scratch)


def test_of_queries_keys_and_values_in_one_array_only_keys_are_transposed() -> None:
    """Queries and values are not transposed, whether they share an argument with keys or not."""
    joined = memory(2, 256, 3, 4, 32).permute(2, 0, 3, 1, 4)
    apart = [memory(2, 256, 4, 32).permute(0, 2, 1, 3) for _ in range(3)]
    for q, k, v in (joined, apart):
        nest = optimize(only_kernel(causal(q, k, v)), TARGET, current_policy())
        copies = [n for n in nest.body.toposort() if n.op is Ops.STAGE and n.src[0].op is Ops.LOAD]
        assert len(copies) == 1


def test_cores_take_heads_of_all_batches() -> None:
    q, k, v = [memory(3, 256, 5, 32).permute(0, 2, 1, 3) for _ in range(3)]
    nest = optimize(only_kernel(causal(q, k, v)), TARGET, current_policy())
    assert [opt.op for opt in nest.recipe].count(OptOps.CORE) == 2
    assert [r.size for r in nest.outer[:2]] == [3, 5]


def test_a_result_and_its_gradients_are_one_kernel() -> None:
    q, k, v = heads()
    made = causal(q, k, v)
    assert len(planned(made, *made.gradient(q, k, v, gradient=memory(*made.shape))).kernels) == 1


def test_a_causal_mask_shortens_every_loop_over_keys() -> None:
    kernel = only_kernel(causal(*heads()))
    found, distance = masked_loops(kernel.body, kernel.outer[-1], BEYOND)
    assert distance == 1
    assert len(found) == 5  # scores, maximum, exponentials, their sum, the product with values
    nest = optimize(kernel, TARGET, current_policy())
    assert sum(not r.src[0].is_const for r in axes(nest)) == 5


def test_without_a_mask_no_loop_is_shortened() -> None:
    kernel = only_kernel(attention(*heads()))
    for side in (BEFORE, BEYOND):
        assert masked_loops(kernel.body, kernel.outer[-1], side)[0] == set()


def test_an_anti_causal_mask_lets_loops_start_late() -> None:
    q, k, v = heads()
    line = Tensor.arange(TIME)
    mask = line >= line.unsqueeze(1)
    scores = mask.where(q @ k.transpose(-2, -1), -float("inf"))
    kernel = only_kernel(scores.softmax(-1) @ v)
    assert masked_loops(kernel.body, kernel.outer[-1], BEYOND)[0] == set()
    found, distance = masked_loops(kernel.body, kernel.outer[-1], BEFORE)
    assert (len(found), distance) == (5, 1)
    nest = optimize(kernel, TARGET, current_policy())
    assert sum(not r.src[0].is_const for r in axes(nest)) == 5


def test_few_heads_leave_blocks_of_rows_to_the_cores() -> None:
    rng = np.random.default_rng(4)
    q, k, v = [rng.standard_normal((3, 320, 16)).astype(np.float32) for _ in "qkv"]
    kernel = only_kernel(causal(*[Tensor(x) for x in (q, k, v)]))
    nest = optimize(kernel, replace(TARGET, cores=2), current_policy())
    assert nest.outer[0].kind is AxisKind.CORE and nest.outer[0].size > 3
    short = [r for r in axes(nest) if not r.src[0].is_const]
    assert short and all(nest.outer[0] in r.src[0].ranges for r in short)
    place = np.arange(320)
    found = causal(*[Tensor(x) for x in (q, k, v)]).numpy()
    wanted = expected(q, k, v, place > place[:, None])
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("time", "cores"), [(1024, 2), (1100, 2), (1990, 8)])
def test_one_head_is_one_kernel_whose_blocks_of_rows_the_cores_share(time: int, cores: int) -> None:
    rng = np.random.default_rng(time)
    q, k, v = [rng.standard_normal((time, WIDTH)).astype(np.float32) for _ in "qkv"]
    line, place = Tensor.arange(time), np.arange(time)
    hidden = (line > line.unsqueeze(1)).where(-float("inf"), 0.0)
    kernel = only_kernel(attention(*[Tensor(x) for x in (q, k, v)], hidden))
    nest = optimize(kernel, replace(TARGET, cores=cores), current_policy())
    share, block, *_ = nest.outer
    assert share.kind is AxisKind.CORE and block.size >= MIN_BLOCKS_PER_SHARE, (
        "keys are packed for many rows"
    )
    short = [r for r in axes(nest) if not r.src[0].is_const]
    assert short and all({share, block} <= r.src[0].ranges for r in short)
    found = attention(*[Tensor(x) for x in (q, k, v)], hidden).numpy()
    wanted = expected(q, k, v, place > place[:, None])
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_only_the_innermost_shared_loop_goes_in_blocks() -> None:
    kernel = only_kernel(attention(*heads()))
    nest = Nest(kernel.body, kernel.outer)
    with pytest.raises(IllegalMove, match="innermost"):
        apply_opt(nest, Opt(OptOps.ROW_BLOCK, kernel.outer[0].axis, 8), TARGET)
    with pytest.raises(IllegalMove, match="block of 999 does not fit"):
        apply_opt(nest, Opt(OptOps.ROW_BLOCK, kernel.outer[-1].axis, 999), TARGET)


def test_a_large_matrix_that_all_rows_need_stays_in_a_kernel_of_its_own() -> None:
    x, w = memory(4096, 512), memory(512, 512)
    assert len(planned((x @ w).softmax(-1)).kernels) == 2


@pytest.mark.parametrize("length", [20_000, 65_536])
def test_keys_that_fit_no_cache_do_not_put_scores_into_memory(length: int) -> None:
    q, k, v = [memory(length, WIDTH) for _ in range(3)]
    assert len(planned(attention(q, k, v)).kernels) == 1


def expected(q: np.ndarray, k: np.ndarray, v: np.ndarray, hides: np.ndarray) -> np.ndarray:
    scores = q.astype(np.float64) @ np.swapaxes(k, -1, -2) * q.shape[-1] ** -0.5
    scores = np.where(hides, -np.inf, scores)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    found: np.ndarray = weights / weights.sum(-1, keepdims=True) @ v
    return found


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(
    "shape",
    [
        (8, 64, 16),
        (3, 5, 77, 24),
        (2, 130, 33),
        (2, 4, 192, 8),
        (1, 500, 32),
        (2, 193, 16),
        (3, 321, 16),
    ],
)
def test_values_equal_numpy(shape: tuple[int, ...], is_causal: bool) -> None:
    rng = np.random.default_rng(shape[-2])
    q, k, v = [rng.standard_normal(shape).astype(np.float32) for _ in "qkv"]
    place = np.arange(shape[-2])
    hides = (place > place[:, None]) & is_causal
    found = Tensor(q).scaled_dot_product_attention(Tensor(k), Tensor(v), is_causal=is_causal)
    np.testing.assert_allclose(found.numpy(), expected(q, k, v, hides), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("time", [128, 250])
def test_masks_with_an_offset_and_fully_masked_rows(time: int) -> None:
    rng = np.random.default_rng(1)
    q, k, v = [rng.standard_normal((16, time, 16)).astype(np.float32) for _ in "qkv"]
    line = Tensor.arange(time)
    for offset in (-3, 0, 1, 5, 64, 300):
        mask = line < line.unsqueeze(1) + offset
        scores = mask.where(Tensor(q) @ Tensor(k).transpose(-2, -1) * 0.25, -float("inf"))
        found = (scores.softmax(-1) @ Tensor(v)).numpy()
        hides = np.arange(time) >= np.arange(time)[:, None] + offset
        with np.errstate(invalid="ignore"):
            wanted = expected(q, k, v, hides)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("time", [256, 203])
def test_loops_over_sliding_windows_start_and_end(time: int) -> None:
    rng = np.random.default_rng(3)
    q, k, v = [rng.standard_normal((16, time, 16)).astype(np.float32) for _ in "qkv"]
    line, place = Tensor.arange(time), np.arange(time)
    for ahead, behind in ((1, 1), (3, 70), (100, 5), (64, 64)):
        far = line - line.unsqueeze(1)
        mask = (far < ahead) & (-behind < far)
        scores = mask.where(Tensor(q) @ Tensor(k).transpose(-2, -1) * 0.25, -float("inf"))
        away = place - place[:, None]
        wanted = expected(q, k, v, (away >= ahead) | (away <= -behind))
        found = (scores.softmax(-1) @ Tensor(v)).numpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("time", [128, 192, 250, 263])  # weights are stored or recomputed
def test_gradients_equal_finite_differences(time: int) -> None:
    rng = np.random.default_rng(2)
    q, k, v, g = [rng.standard_normal((16, time, 16)) for _ in "qkvg"]
    place = np.arange(time)
    hides = place > place[:, None]
    tensors = [Tensor(x.astype(np.float32)) for x in (q, k, v)]
    found = causal(*tensors).gradient(*tensors, gradient=Tensor(g.astype(np.float32)))
    for number, gradient in enumerate(found):
        direction = rng.standard_normal(q.shape)
        moved = [[q, k, v], [q, k, v]]
        moved[0][number] = moved[0][number] + 1e-5 * direction
        moved[1][number] = moved[1][number] - 1e-5 * direction
        above, below = [(expected(*inputs, hides) * g).sum() for inputs in moved]
        assert (gradient.numpy() * direction).sum() == pytest.approx(
            (above - below) / 2e-5, rel=1e-3
        )


def test_memory_is_linear_in_the_sequence_length() -> None:
    q, k, v = [memory(4, 4096, 64) for _ in range(3)]
    nest = optimize(only_kernel(attention(q, k, v)), TARGET, current_policy())
    scratch = [node.arg for node in nest.body.toposort() if node.op is Ops.STAGE]
    assert all(int(np.prod(shape)) <= 64 * 4096 for shape in scratch)
