"""Random graphs: the result of every pipeline stage matches the reference."""

from __future__ import annotations

from random import Random

import pytest
from support.compiler.schedules import TARGET
from support.random.graphs import WRITES, describe, differences, random_graph
from support.random.recipes import RandomChooser
from support.references.graph import Array, evaluate_all
from support.references.kernel import check_kernel_shape, run_schedule

from glassgrad.base.config import Context
from glassgrad.engine import pipeline
from glassgrad.engine.pipeline import realize
from glassgrad.ir.uop import UOp
from glassgrad.schedule import schedule

BATCH = 25  # graphs in one test: a failure names its seed


def compare(seed: int, roots: list[UOp], got: list[Array], want: list[Array], more: str) -> None:
    found = differences(roots, got, want)
    if found:
        message = "\n".join([f"seed {seed}", *found, describe(roots), more])
        pytest.fail(message, pytrace=False)


@pytest.mark.parametrize("batch", range(40))
def test_scheduled_kernels_equal_the_reference(batch: int) -> None:
    for seed in range(batch * BATCH, batch * BATCH + BATCH):
        roots = random_graph(Random(seed), 3 + seed % 30)
        want = evaluate_all(roots)
        result = schedule(roots, TARGET)
        for kernel in result.kernels:
            check_kernel_shape(kernel)
        compare(seed, roots, run_schedule(result), want, "")


def check_stages(seed: int, size: int, more: str = "") -> None:
    roots = random_graph(Random(seed), size)
    want = evaluate_all(roots)
    got = [view.numpy() for view in realize(roots)]
    compare(seed, roots, got, want, more)


@pytest.mark.parametrize("batch", range(12))
def test_compiled_kernels_equal_the_reference(batch: int) -> None:
    for seed in range(batch * BATCH, batch * BATCH + BATCH):
        check_stages(20_000 + seed, 3 + seed % 12)


@pytest.mark.parametrize("batch", range(6))
def test_unoptimized_kernels_equal_the_reference(batch: int) -> None:
    with Context(NOOPT=1):
        for seed in range(batch * BATCH, batch * BATCH + BATCH):
            check_stages(30_000 + seed, 3 + seed % 12)


@pytest.mark.parametrize("batch", range(16))
def test_random_legal_recipes_equal_the_reference(
    batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    move_count = 0
    for seed in range(batch * BATCH, batch * BATCH + BATCH):
        chooser = RandomChooser(seed)
        monkeypatch.setattr(pipeline, "current_policy", lambda chooser=chooser: chooser)
        roots = random_graph(Random(40_000 + seed), 3 + seed % 12)
        want = evaluate_all(roots)
        pipeline.PLANS.clear()
        got = [view.numpy() for view in realize(roots)]
        compare(seed, roots, got, want, f"recipes {chooser.recipes}")
        move_count += sum(len(recipe) for recipe in chooser.recipes)
    assert move_count > BATCH, "too few moves were legal"


@pytest.mark.parametrize("batch", range(8))
def test_many_writes_to_few_buffers_equal_the_reference(
    batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every second graph gets random recipes."""
    default = pipeline.current_policy
    for seed in range(batch * BATCH, batch * BATCH + BATCH):
        chooser = RandomChooser(seed)
        choose = (lambda chooser=chooser: chooser) if seed % 2 else default
        monkeypatch.setattr(pipeline, "current_policy", choose)
        roots = random_graph(Random(seed), 4 + seed % 16, 64, WRITES)
        want = evaluate_all(roots)
        pipeline.PLANS.clear()
        got = [view.numpy() for view in realize(roots)]
        compare(seed, roots, got, want, f"recipes {chooser.recipes}")
