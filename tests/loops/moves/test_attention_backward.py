"""ATTENTION_BACKWARD: row blocks of scores are used along rows and summed over rows."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from support.compiler.nests import GPU, kernel_of, ops_of, refused
from support.compiler.on_device import realize_on
from support.compiler.programs import TARGET
from support.compiler.schedules import memory, planned
from support.random.recipes import RandomChooser

from glassgrad import Tensor, dtypes
from glassgrad.base.config import Context
from glassgrad.devices.python.device import PythonDevice
from glassgrad.engine import pipeline
from glassgrad.engine.compile.optimizer_policy import current_policy
from glassgrad.ir.ops import Ops
from glassgrad.ir.staged import carried_loops
from glassgrad.ir.stages import Kernel, Nest, Target
from glassgrad.ir.uop import UOp
from glassgrad.loops import optimize
from glassgrad.loops.moves.table import apply_opt
from glassgrad.loops.nest import axes
from glassgrad.loops.opts import Opt, OptOps, Recipe
from glassgrad.loops.search.candidates import try_recipe
from glassgrad.schedule.fuse import profitability
from glassgrad.schedule.fuse import row_block_legality as blocks
from glassgrad.schedule.materialize import wide_products
from glassgrad.tensor.lazy.collect import collect_values, graph_to_compute

Array = np.ndarray
SHAPE = (16, 256, 32)


def gradients(q: Tensor, k: Tensor, v: Tensor, g: Tensor, sees: Tensor | None) -> list[Tensor]:
    """Attention, and what its inputs should change."""
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    scores = scores if sees is None else sees.where(scores, -float("inf"))
    made = scores.softmax(-1) @ v
    return [made, *made.gradient(q, k, v, gradient=g)]


def expected(q: Array, k: Array, v: Array, g: Array, sees: Array | None) -> list[Array]:
    """The same by hand, in double precision."""
    q, k, v, g = [x.astype(np.float64) for x in (q, k, v, g)]
    size = q.shape[-1] ** -0.5
    scores = q @ np.swapaxes(k, -1, -2) * size
    scores = scores if sees is None else np.where(sees, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    weight_gradients = g @ np.swapaxes(v, -1, -2)
    row_sums = (weights * weight_gradients).sum(-1, keepdims=True)
    score_gradients = weights * (weight_gradients - row_sums) * size
    transposed = np.swapaxes(score_gradients, -1, -2)
    return [weights @ v, score_gradients @ k, transposed @ q, np.swapaxes(weights, -1, -2) @ g]


def mask(length: int, ahead: int, behind: int) -> Array:
    """A band mask: queries attend to keys less than `behind` before and `ahead` after their own."""
    distance = np.arange(length) - np.arange(length)[:, None]
    found: Array = (distance < ahead) & (-behind < distance)
    return found


def both_ways() -> Kernel:
    tensors = [memory(*SHAPE) for _ in range(4)]
    return kernel_of(*gradients(*tensors, sees=None))


def nest_of(kernel: Kernel) -> Nest:
    return Nest(kernel.body, kernel.outer, kernel.may_alias)


def rows_of(nest: Nest) -> list[int]:
    """The rows of scores in scratch."""
    stages = [node for node in nest.body.toposort() if node.op is Ops.STAGE]
    return [stage.bound[0].axis for stage in stages if len(stage.arg) == 2]


def carrying(nest: Nest) -> list[UOp]:
    return [n for n in nest.body.toposort() if n.op is Ops.STAGE and carried_loops(n)]


def sweep(nest: Nest, amount: int) -> Nest:
    return apply_opt(nest, Opt(OptOps.ATTENTION_BACKWARD, rows_of(nest)[0], amount), TARGET)


def test_scratch_has_a_block_of_the_scores_and_both_sums() -> None:
    nest = sweep(nest_of(both_ways()), 64)
    shapes = [node.arg for node in nest.body.toposort() if node.op is Ops.STAGE]
    assert (256, 256) not in shapes
    assert [(stage.arg, stage.src[0].arg) for stage in carrying(nest)] == [
        ((256, 32), Ops.ADD),  # of keys
        ((256, 32), Ops.ADD),  # of values
    ]
    (block,) = {r for stage in carrying(nest) for r in carried_loops(stage)}
    assert block.size == 4


def test_rows_of_scratch_have_an_odd_number_of_lines() -> None:
    nest = sweep(nest_of(both_ways()), 64)
    scores = {node.arg for node in nest.body.toposort() if node.op is Ops.STAGE and 64 in node.arg}
    assert (64, 272) in scores
    assert all(len(shape) == 1 or shape[1] * 4 // 64 % 2 for shape in scores)


def test_rows_of_the_result_are_stored_block_by_block_and_sums_behind() -> None:
    nest = sweep(nest_of(both_ways()), 64)
    (block,) = {r for stage in carrying(nest) for r in carried_loops(stage)}
    inside = [block in store.bound for store in nest.body.src]
    assert sum(inside) == 2, "values of rows, and the gradient of queries"
    assert inside == sorted(inside), "what waits for the last block stands first, and runs the loop"


def test_blocks_divide_the_rows_on_a_target_without_threads() -> None:
    nest = nest_of(both_ways())
    (axis, *_) = rows_of(nest)
    for amount in (0, 60, 256):
        assert f"{amount} rows do not evenly divide 256" in refused(
            nest, OptOps.ATTENTION_BACKWARD, axis, amount
        )
    assert "target has threads" in refused(nest, OptOps.ATTENTION_BACKWARD, axis, 64, GPU)


def test_the_move_needs_a_sum_over_rows() -> None:
    q, k, v = [memory(*SHAPE) for _ in range(3)]
    nest = nest_of(kernel_of((q @ k.transpose(-2, -1)).softmax(-1) @ v))
    for axis in axes(nest):
        assert refused(nest, OptOps.ATTENTION_BACKWARD, axis.axis, 16)


def test_rows_may_not_depend_on_a_sum_over_all_rows() -> None:
    x, y = memory(32, 16, 8), memory(32, 16, 8)
    rows = (x * y).sum(-1)
    nest = nest_of(kernel_of(rows / rows.sum(1, keepdim=True)))
    (axis,) = [n.bound[0].axis for n in nest.body.toposort() if n.op is Ops.STAGE and n.arg]
    assert "depends on a sum over all rows" in refused(nest, OptOps.ATTENTION_BACKWARD, axis, 2)


def test_a_sum_may_not_depend_on_another_sum_over_rows() -> None:
    nest = nest_of(kernel_of(memory(1, 3, 3, 3).cumsum(3).var(2, correction=0)))
    assert rows_of(nest)
    assert "depends on a sum over all rows" in refused(
        nest, OptOps.ATTENTION_BACKWARD, rows_of(nest)[0], 1
    )


def test_blocks_stay_in_order_and_nothing_is_added_twice() -> None:
    nest = sweep(nest_of(both_ways()), 64)
    (block,) = {r for stage in carrying(nest) for r in carried_loops(stage)}
    for op in (OptOps.UPCAST, OptOps.TILE, OptOps.CORE):
        assert "block to block" in refused(nest, op, block.axis, 2)
    rows = carrying(nest)[0].bound[1]
    assert "accumulate twice" in refused(nest, OptOps.UPCAST, rows.axis, 6)
    apply_opt(nest, Opt(OptOps.UPCAST, rows.axis, 4), TARGET)


def test_masks_shorten_every_loop_over_keys() -> None:
    tensors = [memory(*SHAPE) for _ in range(4)]
    made = tensors[0].scaled_dot_product_attention(*tensors[1:3], is_causal=True)
    kernel = kernel_of(made, *made.gradient(*tensors[:3], gradient=tensors[3]))
    nest = optimize(kernel, TARGET, current_policy())
    assert OptOps.ATTENTION_BACKWARD in ops_of(nest)
    scores = [n for n in kernel.body.toposort() if n.op is Ops.STAGE and n.arg == (256, 256)]
    short = [r for r in axes(nest) if not r.src[0].is_const]
    assert len(short) >= len(scores) + 2, "scores, and both sums that are carried"


# ---------------------------------------------------------------------- values


class BackwardChooser(RandomChooser):
    """Blocks of rows where that is legal, and then whatever moves are."""

    def __call__(self, nest: Nest, target: Target) -> Recipe:
        for axis in rows_of(nest)[:1]:
            opt = Opt(OptOps.ATTENTION_BACKWARD, axis, self.rng.choice((1, 2, 4, 8, 16, 32)))
            nest = try_recipe(nest, (opt,), target) or nest
        return super().__call__(nest, target)


def inputs(seed: int, *shape: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(np.float32) for _ in "qkvg"]


@pytest.mark.parametrize("batch", range(5))
def test_any_recipe_with_a_fused_backward_pass_gives_the_same(batch: int) -> None:
    count = 0
    for seed in range(batch * 6, batch * 6 + 6):
        choose, choice = BackwardChooser(seed), Random(seed)
        x = inputs(seed, choice.choice((8, 10)), 64, choice.choice((4, 7, 8)))
        sees = mask(64, choice.choice((1, 9, 64)), choice.choice((5, 64)))
        roots, *_ = collect_values(
            [t.uop for t in gradients(*[Tensor(part) for part in x], sees=Tensor(sees))]
        )
        with pytest.MonkeyPatch.context() as patched, Context(CACHELEVEL=0):
            patched.setattr(pipeline, "current_policy", lambda choose=choose: choose)
            pipeline.PLANS.clear()
            found = [view.numpy() for view in pipeline.realize(graph_to_compute(roots))]
        pipeline.PLANS.clear()
        for one, other in zip(found, expected(*x, sees), strict=True):
            np.testing.assert_allclose(
                one, other, rtol=1e-4, atol=2e-5, err_msg=f"{choose.recipes}"
            )
        count += sum(
            OptOps.ATTENTION_BACKWARD in [opt.op for opt in recipe] for recipe in choose.recipes
        )
    assert count >= 3, "hardly any backward pass was fused"


def test_scratch_is_written_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter would say so."""
    for module in (blocks, profitability):
        monkeypatch.setattr(module, "MIN_OUTER_ITERATIONS", 2)
        monkeypatch.setattr(module, "SINGLE_CORE_BYTES", 0)
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 0)
    monkeypatch.setattr(wide_products, "ROW_MULTIPLE", 4)
    count = 0
    for seed in range(6):
        x, sees = inputs(seed, 2, 12, 2), mask(12, 1, (12, 5, 3)[seed % 3])
        roots, *_ = collect_values(
            [t.uop for t in gradients(*[Tensor(part) for part in x], sees=Tensor(sees))]
        )
        choose = BackwardChooser(seed)
        found = realize_on(PythonDevice("PYTHON:7"), graph_to_compute(roots), choose)
        for one, other in zip(found, expected(*x, sees), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=2e-5)
        count += sum(
            OptOps.ATTENTION_BACKWARD in [opt.op for opt in recipe] for recipe in choose.recipes
        )
    assert count >= 3, "hardly any backward pass was fused"


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(
    ("shape", "ahead", "behind"),
    [
        ((40, 256, 32), 1, 256),  # causal
        ((40, 256, 16), 256, 256),  # everything
        ((40, 320, 16), 1, 70),  # the last 70 keys: loops start late
        ((40, 192, 8), 65, 3),
        ((4, 10, 160, 24), 1, 160),
        ((2, 20, 96, 16), 96, 1),  # what comes
    ],
)
def test_gradients_equal_numpy_and_are_deterministic(
    shape: tuple[int, ...], ahead: int, behind: int, threads: int
) -> None:
    x, length = inputs(shape[-1], *shape), shape[-2]
    distance = Tensor.arange(length) - Tensor.arange(length).unsqueeze(1)
    sees = (distance < ahead) & (-behind < distance)
    tensors = [Tensor(part) for part in x]
    target = Target("CPU", "llvm", cores=threads)
    kernels = planned(*gradients(*tensors, sees=sees), target=target).kernels
    moves = [ops_of(optimize(kernel, target, current_policy())) for kernel in kernels]
    assert any(OptOps.ATTENTION_BACKWARD in found for found in moves)
    with Context(THREADS=threads):
        once, again = [[t.numpy() for t in gradients(*tensors, sees=sees)] for _ in range(2)]
    for one, other, wanted in zip(
        once, again, expected(*x, mask(length, ahead, behind)), strict=True
    ):
        np.testing.assert_allclose(one, wanted, rtol=1e-4, atol=2e-5)
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16])
def test_half_precision_sums_accumulate_in_float(dtype: object) -> None:
    x = inputs(5, 16, 256, 16)
    halves = [Tensor(part).cast(dtype).realize() for part in x]
    made = [t.float().numpy() for t in gradients(*halves, sees=None)]
    exact = expected(*[t.float().numpy() for t in halves], None)
    for one, other in zip(made, exact, strict=True):
        assert np.abs(one - other).max() < 0.03 * np.abs(other).max()


@pytest.mark.parametrize("shape", [(2, 2, 2), (4, 5, 6), (3, 64, 8)])
def test_a_variance_over_rows_is_refused(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).integers(-4, 5, shape).astype(np.float32)
    running = x.astype(np.float64).cumsum(-1)
    found = Tensor(x).cumsum(-1).var(1, correction=0).numpy()
    np.testing.assert_allclose(found, running.var(1), rtol=1e-5)
