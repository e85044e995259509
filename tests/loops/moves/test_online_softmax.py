"""ONLINE_SOFTMAX: a running maximum, and sums scaled by it, over blocks of an axis."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from support.compiler.nests import GPU, kernel_of, ops_of, refused
from support.compiler.on_device import realize_on
from support.compiler.programs import TARGET
from support.compiler.schedules import memory
from support.random.recipes import RandomChooser

from glassgrad import Tensor
from glassgrad.base.config import Context
from glassgrad.devices.python.device import PythonDevice
from glassgrad.engine import pipeline
from glassgrad.engine.compile.optimizer_policy import OptimizerPolicy, current_policy
from glassgrad.ir.ops import Ops
from glassgrad.ir.staged import carried_loops
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.uop import UOp
from glassgrad.loops import optimize
from glassgrad.loops.moves.table import apply_opt
from glassgrad.loops.nest import find_axis
from glassgrad.loops.opts import Opt, OptOps, Recipe
from glassgrad.loops.search.candidates import try_recipe
from glassgrad.tensor.lazy.collect import collect_values, graph_to_compute

Array = np.ndarray


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    return (scores if mask is None else scores + mask).softmax(-1) @ v


def expected(q: Array, k: Array, v: Array, mask: Array | float = 0.0) -> Array:
    scores = q.astype(np.float64) @ np.swapaxes(k, -1, -2) * q.shape[-1] ** -0.5 + mask
    with np.errstate(invalid="ignore"):  # of rows that see nothing, which are no numbers
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        found: Array = weights / weights.sum(-1, keepdims=True) @ v
    return found


def nest_of(*tensors: Tensor) -> Nest:
    kernel = kernel_of(*tensors)
    return Nest(kernel.body, kernel.outer, kernel.may_alias)


def small() -> Nest:
    q, k, v = memory(16, 64, 4), memory(16, 40, 4), memory(16, 40, 4)
    return nest_of(attention(q, k, v))


def maxima(nest: Nest) -> list[int]:
    """The axes of maxima."""
    found = [node for node in nest.body.toposort() if node.op is Ops.REDUCE]
    return [node.bound[-1].axis for node in found if node.arg is Ops.MAX]


def carrying(nest: Nest) -> list[UOp]:
    return [n for n in nest.body.toposort() if n.op is Ops.STAGE and carried_loops(n)]


def carry(nest: Nest, amount: int, rows: int = 0) -> Recipe:
    """Blocks of rows, if any are wanted, and blocks of the axis of the first maximum."""
    opts = [Opt(OptOps.ROW_BLOCK, nest.outer[-1].axis, rows)] if rows else []
    blocked = try_recipe(nest, tuple(opts), TARGET)
    assert blocked is not None
    return (*opts, Opt(OptOps.ONLINE_SOFTMAX, maxima(blocked)[0], amount))


def test_scores_and_weights_are_those_of_one_block() -> None:
    nest = apply_opt(small(), Opt(OptOps.ONLINE_SOFTMAX, maxima(small())[0], 5), TARGET)
    shapes = [node.arg for node in nest.body.toposort() if node.op is Ops.STAGE]
    assert shapes.count((5,)) == 2, "scores and weights"
    assert not any(40 in shape for shape in shapes)
    (block,) = {r for stage in carrying(nest) for r in carried_loops(stage)}
    assert block.size == 8


def test_scratch_carries_two_maxima_and_two_sums() -> None:
    nest = apply_opt(small(), Opt(OptOps.ONLINE_SOFTMAX, maxima(small())[0], 4), TARGET)
    scans = [stage.src[0] for stage in carrying(nest)]
    assert len([s for s in scans if s.arg is Ops.MULACC]) == 2
    assert len([s for s in scans if s.arg is Ops.MAX]) == 1, "the maximum in the end"
    assert len(scans) == 4, "and the one before each block"


def test_blocks_are_smaller_than_the_axis_on_a_target_without_threads() -> None:
    nest = small()
    assert "block of 40 does not fit" in refused(nest, OptOps.ONLINE_SOFTMAX, maxima(nest)[0], 40)
    assert "block of 0 does not fit" in refused(nest, OptOps.ONLINE_SOFTMAX, maxima(nest)[0], 0)
    assert "block of 4 does not fit" in refused(
        nest, OptOps.ONLINE_SOFTMAX, maxima(nest)[0], 4, GPU
    )


def test_blocks_stay_in_order_and_nothing_is_added_twice() -> None:
    nest = apply_opt(small(), Opt(OptOps.ROW_BLOCK, small().outer[-1].axis, 6), TARGET)
    nest = apply_opt(nest, Opt(OptOps.ONLINE_SOFTMAX, maxima(nest)[0], 4), TARGET)
    (block,) = {r for stage in carrying(nest) for r in carried_loops(stage)}
    for op in (OptOps.UPCAST, OptOps.TILE, OptOps.CORE):
        assert "block to block" in refused(nest, op, block.axis, 2)
    sums = next(stage for stage in carrying(nest) if stage.src[0].arg is Ops.MULACC)
    rows = sums.bound[1]
    assert rows.size == 6
    assert "accumulate twice" in refused(nest, OptOps.UPCAST, rows.axis, 4)
    apply_opt(nest, Opt(OptOps.UPCAST, rows.axis, 3), TARGET)


# ---------------------------------------------------------------------- values


class OnlineSoftmaxChooser(RandomChooser):
    """Blocks of the axis of a maximum where that is legal, and then whatever moves are."""

    def __call__(self, nest: Nest, target: Target) -> Recipe:
        if nest.outer and self.rng.randrange(2):
            rows = Opt(OptOps.ROW_BLOCK, nest.outer[-1].axis, self.rng.choice((2, 3, 4, 8)))
            nest = try_recipe(nest, (rows,), target) or nest
        for axis in maxima(nest):
            most = find_axis(nest, axis).size
            opt = Opt(OptOps.ONLINE_SOFTMAX, axis, self.rng.randrange(1, most) if most > 1 else 1)
            nest = try_recipe(nest, (opt,), target) or nest
        return super().__call__(nest, target)


def sizes(choice: Random) -> tuple[int, int, int, int]:
    """Random heads, rows, length and width, small enough for one kernel that keeps all weights."""
    few = choice.choice((4, 7, 13, 16))
    return choice.choice((8, 9)), choice.randrange(33, 40), choice.randrange(98, 110), few


def computed(choose: Callable[[Nest, Target], Recipe], *tensors: Tensor) -> list[Array]:
    """The values of tensors with another policy of moves."""
    roots, *_ = collect_values([tensor.uop for tensor in tensors])
    with pytest.MonkeyPatch.context() as patched, Context(CACHELEVEL=0):
        patched.setattr(pipeline, "current_policy", lambda: choose)
        pipeline.PLANS.clear()
        found = [view.numpy() for view in pipeline.realize(graph_to_compute(roots))]
    pipeline.PLANS.clear()
    return found


@pytest.mark.parametrize("batch", range(6))
def test_any_recipe_with_an_online_softmax_gives_the_same(batch: int) -> None:
    carried = 0
    for seed in range(batch * 8, batch * 8 + 8):
        choose, rng = OnlineSoftmaxChooser(seed), np.random.default_rng(seed)
        heads, rows, length, width = sizes(Random(seed))
        q = rng.standard_normal((heads, rows, width)).astype(np.float32)
        k, v = [rng.standard_normal((heads, length, width)).astype(np.float32) for _ in "kv"]
        mask = np.where(rng.random((rows, length)) < 0.4, -np.inf, 0).astype(np.float32)
        (found,) = computed(choose, attention(*[Tensor(x) for x in (q, k, v, mask)]))
        np.testing.assert_allclose(
            found, expected(q, k, v, mask), rtol=1e-4, atol=1e-5, err_msg=f"{choose.recipes}"
        )
        carried += sum(
            OptOps.ONLINE_SOFTMAX in [opt.op for opt in recipe] for recipe in choose.recipes
        )
    assert carried >= 2, "hardly any maximum was carried"


def relative(x: Tensor, y: Tensor) -> list[Tensor]:
    """A maximum that is wanted itself, a sum that is, and one that hides nothing."""
    most = x.max(1, keepdim=True)
    weights = (x - most).exp()
    total = weights.sum(1, keepdim=True)
    return [most + total.log(), total, (weights * y).sum(1, keepdim=True)]


def test_scratch_is_written_before_it_is_read() -> None:
    """The interpreter would say so."""
    carried = 0
    for seed in range(12):
        x, y = np.random.default_rng(seed).standard_normal((2, 5, 13)).astype(np.float32)
        roots, *_ = collect_values([tensor.uop for tensor in relative(Tensor(x), Tensor(y))])
        choose = OnlineSoftmaxChooser(seed)
        found = realize_on(PythonDevice("PYTHON:7"), graph_to_compute(roots), choose)
        total = np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True)
        np.testing.assert_allclose(found[1], total, rtol=1e-5, err_msg=f"{choose.recipes}")
        carried += sum(
            OptOps.ONLINE_SOFTMAX in [opt.op for opt in recipe] for recipe in choose.recipes
        )
    assert carried >= 6, "hardly any maximum was carried"


@pytest.mark.parametrize("amount", [1, 3, 8, 16, 31])
def test_fully_masked_rows_are_unchanged(amount: int) -> None:
    rng = np.random.default_rng(amount)
    x = rng.standard_normal((9, 32)).astype(np.float32) * 20
    x[1], x[2, :17], x[3, 5], x[4, 9], x[5] = -np.inf, -np.inf, np.inf, np.nan, -3.4e38
    x[6, 4:], x[7, ::2] = -3.4028235e38, -np.inf
    y = rng.standard_normal((9, 32)).astype(np.float32)
    moved: list[bool] = []

    def choose(nest: Nest, target: Target) -> Recipe:
        found = try_recipe(nest, carry(nest, amount) if maxima(nest) else (), target)
        moved.append(found is not None and OptOps.ONLINE_SOFTMAX in ops_of(found))
        return () if found is None else found.recipe

    with Context(NOOPT=1):
        wanted = [tensor.numpy() for tensor in relative(Tensor(x), Tensor(y))]
    found = computed(OptimizerPolicy(f"carry {amount}", choose), *relative(Tensor(x), Tensor(y)))
    assert any(moved)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-6)
    assert np.isnan(wanted[0][[1, 3, 4]]).all() and np.isfinite(wanted[0][[0, 2, 5, 6, 7, 8]]).all()


# ---------------------------------------------------------------------- long rows


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(
    ("shape", "is_causal"),
    [
        ((2, 320, 2048, 16), False),
        ((3, 1536, 1536, 8), True),
        ((1, 1501, 1501, 16), True),
        ((3, 250, 1733, 8), False),
        ((700, 4099, 16), False),
    ],
)
def test_long_rows_equal_numpy_and_are_deterministic(
    shape: tuple[int, ...], is_causal: bool, threads: int
) -> None:
    *heads, rows, length, width = shape
    rng = np.random.default_rng(length)
    q = rng.standard_normal((*heads, rows, width)).astype(np.float32)
    k, v = [rng.standard_normal((*heads, length, width)).astype(np.float32) for _ in "kv"]
    target = Target("CPU", "llvm", cores=threads)
    result = [Tensor(x) for x in (q, k, v)]
    nest = optimize(
        kernel_of(result[0].scaled_dot_product_attention(*result[1:], is_causal=is_causal)),
        target,
        current_policy(),
    )
    assert OptOps.ONLINE_SOFTMAX in ops_of(nest)
    mask = np.where(np.arange(length) > np.arange(rows)[:, None], -np.inf, 0) if is_causal else 0.0
    with Context(THREADS=threads):
        found = [
            result[0].scaled_dot_product_attention(*result[1:], is_causal=is_causal).numpy()
            for _ in range(2)
        ]
    np.testing.assert_allclose(found[0], expected(q, k, v, mask), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize("length", [1536, 1601])
@pytest.mark.parametrize(("ahead", "behind"), [(1, 300), (70, 1), (700, 10)])
def test_sliding_windows_over_long_rows_start_and_end(length: int, ahead: int, behind: int) -> None:
    rng = np.random.default_rng(length)
    q, k, v = [rng.standard_normal((2, length, 8)).astype(np.float32) for _ in "qkv"]
    distance = Tensor.arange(length) - Tensor.arange(length).unsqueeze(1)
    sees = (distance < ahead) & (-behind < distance)
    tensors = [Tensor(x) for x in (q, k, v)]
    scores = sees.where(tensors[0] @ tensors[1].transpose(-2, -1) * 8**-0.5, -float("inf"))
    nest = optimize(kernel_of(scores.softmax(-1) @ tensors[2]), TARGET, current_policy())
    assert OptOps.ONLINE_SOFTMAX in ops_of(nest)
    (blocks,) = {r for stage in carrying(nest) for r in carried_loops(stage)}
    assert not blocks.src[0].is_const, "blocks that no row sees are left out"
    offsets = np.arange(length) - np.arange(length)[:, None]
    mask = np.where((offsets < ahead) & (-behind < offsets), 0, -np.inf)
    found = (scores.softmax(-1) @ tensors[2]).numpy()
    np.testing.assert_allclose(found, expected(q, k, v, mask), rtol=1e-4, atol=1e-5)
