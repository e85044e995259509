"""Random graphs on the PYTHON device, with the targets of a small CPU and of a GPU."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from support.compiler.on_cpu import cpu
from support.compiler.run_schedules import run_on
from support.random.graphs import describe, differences, random_graph
from support.random.recipes import RandomChooser
from support.references.graph import evaluate_all

from glassgrad.devices.protocol import Device
from glassgrad.devices.python.device import PythonDevice
from glassgrad.engine import pipeline
from glassgrad.ir.stages import Target

BATCH = 20
GPU = Target(
    "PYTHON",
    "python",
    vector_bytes=16,
    has_vector_alu=False,
    has_threads=True,
    group_size=32,
    shared_bytes=1 << 15,
    native=PythonDevice().target.native,
)


def check(seed: int, device: Device, size: int, more: str = "") -> None:
    roots = random_graph(Random(seed), size, numel=48)
    want = evaluate_all(roots)
    found = differences(roots, run_on(device, roots), want)
    if found:
        pytest.fail("\n".join([f"seed {seed}", *found, describe(roots), more]), pytrace=False)


@pytest.mark.parametrize("batch", range(5))
def test_the_python_device_equals_the_reference(batch: int) -> None:
    for seed in range(batch * BATCH, batch * BATCH + BATCH):
        check(50_000 + seed, PythonDevice(), 3 + seed % 6)


@pytest.mark.parametrize("batch", range(3))
def test_the_cpu_equals_the_python_device(batch: int) -> None:
    for seed in range(60_000 + batch * BATCH, 60_000 + batch * BATCH + BATCH):
        roots = random_graph(Random(seed), 3 + seed % 6, numel=48)
        slow, fast = run_on(PythonDevice(), roots), run_on(cpu(), roots)
        for one, two in zip(slow, fast, strict=True):
            assert one.dtype == two.dtype
            np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-4, err_msg=f"seed {seed}")


@pytest.mark.parametrize("batch", range(5))
def test_gpu_threads_equal_the_reference(batch: int) -> None:
    device = PythonDevice("PYTHON", GPU)
    for seed in range(batch * BATCH, batch * BATCH + BATCH):
        check(70_000 + seed, device, 3 + seed % 6)


@pytest.mark.parametrize("target", [PythonDevice().target, GPU], ids=["lanes", "threads"])
@pytest.mark.parametrize("batch", range(4))
def test_random_legal_recipes_equal_the_reference(
    target: Target, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = PythonDevice("PYTHON", target)
    move_count = 0
    for seed in range(batch * BATCH, batch * BATCH + BATCH):
        chooser = RandomChooser(seed)
        monkeypatch.setattr(pipeline, "current_policy", lambda chooser=chooser: chooser)
        check(80_000 + seed, device, 3 + seed % 6, f"recipes {chooser.recipes}")
        move_count += sum(len(recipe) for recipe in chooser.recipes)
    assert move_count > BATCH // 2, "too few moves were legal"
