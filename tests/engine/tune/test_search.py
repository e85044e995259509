"""BEAM=n: recipes are measured, and the winner is stored."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.compiler.nests import kernel_of
from support.compiler.schedules import memory

from glassgrad import Tensor
from glassgrad.base.config import Context
from glassgrad.devices.cpu.object_cache import write_object
from glassgrad.devices.registry import Device
from glassgrad.engine.tune import search as searching
from glassgrad.engine.tune.benchmark_client import BenchmarkClient
from glassgrad.engine.tune.search import (
    encode_recipe,
    load_recipe,
    search,
    search_recipe,
    source_of,
)
from glassgrad.ir.stages import Nest, Target
from glassgrad.loops.moves.coalesce import coalesce_loops
from glassgrad.loops.moves.table import apply_moves
from glassgrad.loops.opts import Opt, OptOps, Recipe

TARGET = Device["CPU"].target


def nest_of(tensor: Tensor) -> Nest:
    kernel = kernel_of(tensor)
    return coalesce_loops(Nest(kernel.body, kernel.outer, kernel.may_alias))


def empty_recipe(nest: Nest, target: Target) -> Recipe:
    return ()


def test_a_search_beats_a_bad_heuristic() -> None:
    nest = nest_of(memory(512, 768).exp().sum(1))
    with Context(BEAM_SECONDS=8):
        found = search(nest, TARGET, 1, empty_recipe)
    sources = [source_of(apply_moves(nest, r, TARGET), TARGET) for r in ((), found)]
    with BenchmarkClient(TARGET) as client:
        before, after = client.measure(sources, rounds=5)
    assert after < 0.7 * before  # vectors alone are four times as fast


def test_a_result_is_the_same_with_a_search() -> None:
    data = np.random.default_rng(0).standard_normal((100, 130)).astype(np.float32)
    with Context(BEAM=1, BEAM_SECONDS=3):
        found = Tensor(data).softmax().numpy()
    np.testing.assert_allclose(found, Tensor(data).softmax().numpy(), rtol=1e-5)


def test_a_kernel_that_cannot_be_measured_keeps_the_heuristic_recipe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        BenchmarkClient,
        "measure",
        lambda self, sources, *args, **kwargs: [float("inf")] * len(sources),
    )
    usual = (Opt(OptOps.UPCAST, 0, 2),)
    assert search(nest_of(memory(24) + 5), TARGET, 1, lambda nest, target: usual) == usual


def test_a_winner_that_loses_the_final_comparison_is_rejected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual, lucky = (Opt(OptOps.UPCAST, 0, 2),), (Opt(OptOps.UPCAST, 0, 8),)
    monkeypatch.setattr(searching, "beam", lambda *args: lucky)
    times = {"before": 1.0, "after": 1.0}
    monkeypatch.setattr(
        BenchmarkClient, "measure", lambda self, sources, rounds: list(times.values())
    )
    assert search_recipe(nest_of(memory(48) + 5), TARGET, 1, usual) == usual
    times["after"] = 0.9
    assert search_recipe(nest_of(memory(48) + 5), TARGET, 1, usual) == lucky


def test_a_second_search_measures_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    nest = nest_of(memory(72) * 3)
    first = search(nest, TARGET, 1)
    monkeypatch.setattr(searching, "search_recipe", None)
    assert search(nest, TARGET, 1) == first
    with pytest.raises(TypeError):  # another width has another key
        search(nest, TARGET, 2)


def test_a_second_process_finds_the_winner_on_disk(tmp_path: Path) -> None:
    program = (
        "from glassgrad import Tensor\n"
        "from glassgrad.engine.tune import search\n"
        "import sys\n"
        "if sys.argv[1] == 'again': search.search_anew = None\n"
        "print((Tensor([1.0, 2.0, 3.0]) + 1).tolist())\n"
    )
    settings = {"BEAM": "1", "DEBUG": "3", "GLASSGRAD_CACHE": str(tmp_path), "SPEC": "0"}
    for turn in ("first", "again"):
        done = subprocess.run(
            [sys.executable, "-c", program, turn],
            env=os.environ | settings,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "[2.0, 3.0, 4.0]" in done.stdout, done.stderr


def test_other_machines_get_the_heuristic_recipe() -> None:
    nest = nest_of(memory(24) + 5)
    other = Target("GPU", "cuda", has_threads=True, group_size=64)
    usual = (Opt(OptOps.LOCAL, 0, 8),)
    assert search(nest, other, 4, lambda nest, target: usual) == usual


def test_a_recipe_survives_a_round_trip() -> None:
    recipe = (Opt(OptOps.UPCAST, 0, 4), Opt(OptOps.CORE, 1), Opt(OptOps.PACK, 2, (1, 0)))
    write_object("ab" * 32, encode_recipe(recipe))
    assert load_recipe("ab" * 32) == recipe


@pytest.mark.parametrize("damage", [b"", b"{", b'[["JUMP", 0, 1]]', b"[3]"])
def test_a_damaged_recipe_is_a_cache_miss(damage: bytes) -> None:
    write_object("cd" * 32, damage)
    assert load_recipe("cd" * 32) is None
