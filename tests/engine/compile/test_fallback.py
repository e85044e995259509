"""A recipe that fails never reaches the user: a simpler one is used, with one warning."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.compiler.golden_kernels import KERNELS
from support.random.graphs import differences
from support.references.graph import evaluate_all

import glassgrad.loops
import glassgrad.lower
import glassgrad.render
from glassgrad import Tensor
from glassgrad.base.config import Context
from glassgrad.base.counters import GlobalCounters
from glassgrad.base.errors import CompileError, CompilerWarning, DeviceError
from glassgrad.base.fast_dataclasses import replace
from glassgrad.devices.cpu.device import CpuDevice
from glassgrad.engine import pipeline
from glassgrad.engine.cache import graph_keys as cache
from glassgrad.engine.compile.optimizer_policy import OptimizerPolicy
from glassgrad.engine.pipeline import realize
from glassgrad.ir import spec
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Nest
from glassgrad.ir.uop import UOp, make_range
from glassgrad.loops.opts import IllegalMove
from glassgrad.loops.strategies.heuristic import heuristic
from glassgrad.lower.memory import access as memory
from glassgrad.tensor.lazy.deferred import expand_deferred


@pytest.fixture(autouse=True)
def empty_caches(tmp_path: Any) -> Any:
    """No kernels or plans in memory, and an empty cache folder."""
    cache.clear()
    with Context(CACHE=str(tmp_path / "kept"), CACHELEVEL=2):
        yield
    cache.clear()


def values() -> tuple[UOp, np.ndarray]:
    """A product with an epilogue and a row sum: a recipe of several moves; and its result."""
    rng = np.random.default_rng(1)
    x, y = rng.integers(-3, 4, (2, 96, 96)).astype(np.float32)
    wanted = (Tensor(x).realize() @ Tensor(y).realize()).relu()
    expand_deferred()
    return wanted.uop, np.maximum(x @ y, 0)


def stored_files(folder: Any) -> set[str]:
    return {name for _, _, names in os.walk(folder) for name in names}


def failing(inner: Callable[..., Any], is_refused: Callable[..., bool], error: Exception) -> Any:
    def fails(*args: Any, **kwargs: Any) -> Any:
        if is_refused(*args, **kwargs):
            raise error
        return inner(*args, **kwargs)

    return fails


def always(*_: object) -> bool:
    return True


def was_moved(nest: Nest, *_: object) -> bool:
    return bool(nest.recipe)


def break_choice(patch: pytest.MonkeyPatch) -> None:
    broken = OptimizerPolicy("heuristic", failing(list, always, KeyError(7)))
    patch.setattr(pipeline, "current_policy", lambda: broken)


def break_moves(patch: pytest.MonkeyPatch) -> None:
    moves = glassgrad.loops.apply_moves
    broken = failing(moves, lambda _, recipe, __: len(recipe) > 1, IllegalMove("injected"))
    patch.setattr(glassgrad.loops, "apply_moves", broken)
    given = OptimizerPolicy("heuristic", lambda nest, target: heuristic(nest, target).recipe)
    patch.setattr(pipeline, "current_policy", lambda: given)


def break_finish(patch: pytest.MonkeyPatch) -> None:
    lanes = glassgrad.loops.choose_lanes
    patch.setattr(
        glassgrad.loops, "choose_lanes", failing(lanes, was_moved, IndexError("injected"))
    )


def break_merging(patch: pytest.MonkeyPatch) -> None:
    merge = glassgrad.loops.coalesce_loops
    broken = failing(merge, always, AssertionError("injected"))
    patch.setattr(glassgrad.loops, "coalesce_loops", broken)


def break_lowering(patch: pytest.MonkeyPatch) -> None:
    lower = glassgrad.lower.lower
    patch.setattr(glassgrad.lower, "lower", failing(lower, was_moved, KeyError("injected")))


def break_prefetching(patch: pytest.MonkeyPatch) -> None:
    """Plain loops prefetch, too."""
    inner = memory.prefetch_epilogue
    broken = failing(inner, lambda emitter, *_: emitter.target.has_hints, KeyError("injected"))
    patch.setattr(memory, "prefetch_epilogue", broken)


def break_proof(patch: pytest.MonkeyPatch) -> None:
    """As if a check of ir/spec.py failed for the program."""
    moved: list[bool] = []
    lower, check = glassgrad.lower.lower, spec.check

    def record_and_lower(nest: Nest, target: Any, max_instructions: int | None = None) -> Any:
        moved.append(bool(nest.recipe))
        return lower(nest, target, max_instructions)

    def is_refused(_: object, stage: str) -> bool:
        return stage == "program" and moved[-1]

    patch.setattr(glassgrad.lower, "lower", record_and_lower)
    patch.setattr(spec, "check", failing(check, is_refused, AssertionError("injected")))


def break_rendering(patch: pytest.MonkeyPatch) -> None:
    render = glassgrad.render.render
    is_first = iter([True])
    broken = failing(render, lambda *_: next(is_first, False), TypeError("injected"))
    patch.setattr(glassgrad.render, "render", broken)


def break_compiler(patch: pytest.MonkeyPatch) -> None:
    inner = CpuDevice.compile
    is_first = iter([True])
    broken = failing(inner, lambda *_: next(is_first, False), CompileError("injected"))
    patch.setattr(CpuDevice, "compile", broken)


def break_coverage(patch: pytest.MonkeyPatch) -> None:
    """As if a move left out the last block of an axis."""
    inner = glassgrad.loops.apply_mask_bounds

    def shorter(nest: Nest) -> Nest:
        made = inner(nest)
        loops = [r for r in made.outer if r.size > 1] if made.recipe else []
        if not loops:
            return made
        short = make_range(loops[0].axis, loops[0].size - 1, loops[0].kind)
        outer = tuple([short if r is loops[0] else r for r in made.outer])
        return replace(made, body=made.body.substitute({loops[0]: short}), outer=outer)

    patch.setattr(glassgrad.loops, "apply_mask_bounds", shorter)


STAGES = [
    break_coverage,
    break_choice, break_moves, break_finish, break_merging, break_lowering,
    break_prefetching, break_proof,
    break_rendering, break_compiler,
]  # fmt: skip


@pytest.mark.parametrize("inject", STAGES, ids=lambda f: f.__name__.removeprefix("break_"))
def test_a_refused_kernel_is_computed_by_a_simpler_recipe(
    inject: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    value, want = values()
    before = stored_files(tmp_path)
    with monkeypatch.context() as patch:
        inject(patch)
        with pytest.warns(CompilerWarning, match="kernel r_.* does not compile") as found:
            (view,) = realize([value])
            (again,) = realize([value])
    assert len(found) == 1
    assert "to report it" in str(found[0].message)
    np.testing.assert_array_equal(view.numpy(), want)
    np.testing.assert_array_equal(again.numpy(), want)
    sources = [
        name for name in stored_files(tmp_path) - before if is_source_or_plan(tmp_path, name)
    ]
    assert sources == []

    cache.clear()  # simulates the next process, in which nothing fails
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (view,) = realize([value])
    np.testing.assert_array_equal(view.numpy(), want)


def is_source_or_plan(folder: Any, name: str) -> bool:
    for path, _, names in os.walk(folder):
        if name in names:
            with open(os.path.join(path, name), "rb") as file:
                return b'"language"' in (found := file.read()) or b'"sources"' in found
    return False


@pytest.mark.parametrize("inject", STAGES, ids=lambda f: f.__name__.removeprefix("break_"))
def test_if_warnings_are_errors_the_cause_is_chained(
    inject: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    value, want = values()
    launched = GlobalCounters.kernel_count
    with monkeypatch.context() as patch:
        inject(patch)
        with pytest.raises(CompilerWarning) as raised:
            realize([value])
    assert raised.value.__cause__ is not None
    assert len(cache.PLANS) == len(cache.KERNELS) == 0
    assert GlobalCounters.kernel_count == launched
    np.testing.assert_array_equal(realize([value])[0].numpy(), want)


def test_if_no_recipe_compiles_the_first_error_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    value, want = values()
    numbers = iter(range(100))

    def refuse(*_: object) -> None:
        raise CompileError(f"refused {next(numbers)}")

    with monkeypatch.context() as patch:
        patch.setattr(CpuDevice, "compile", refuse)
        with pytest.raises(CompileError, match="refused 0"):
            realize([value])
    assert next(numbers) > 2
    assert len(cache.PLANS) == len(cache.KERNELS) == 0
    np.testing.assert_array_equal(realize([value])[0].numpy(), want)


def test_a_missing_compiler_is_not_tried_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    value, _ = values()
    calls = []

    def refuse(*_: object) -> None:
        calls.append(1)
        raise DeviceError("no compiler here")

    monkeypatch.setattr(CpuDevice, "compile", refuse)
    with pytest.raises(DeviceError, match="no compiler here"):
        realize([value])
    assert len(calls) == 1


def test_one_of_many_kernels_may_be_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several kernels are compiled in threads: the others stay optimized and are stored."""
    inner, refused = CpuDevice.compile, []

    def compile_but_first(device: CpuDevice, source: Any) -> Any:
        if source.name.startswith("r_") and not refused:
            refused.append(source.name)
            raise CompileError("injected")
        return inner(device, source)

    monkeypatch.setattr(CpuDevice, "compile", compile_but_first)
    x = Tensor(np.arange(64.0, dtype=np.float32).reshape(8, 8)).realize()
    with pytest.warns(CompilerWarning) as found:
        views = realize([(x * 3).uop, x.sum(0).uop, x.flip(1).contiguous().uop])
    assert len(found) == 1
    assert len(refused) == 1
    np.testing.assert_array_equal(views[1].numpy(), x.numpy().sum(0))
    np.testing.assert_array_equal(views[0].numpy(), x.numpy() * 3)


def test_unoptimized_loops_compute_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last fallback, for all kinds of kernels."""
    rng = np.random.default_rng(0)
    for name, (build, _) in KERNELS.items():
        cache.clear()
        made = build()
        expand_deferred()
        for node in made.uop.toposort():
            if node.op is Ops.BUFFER:
                view, is_float = node.arg.numpy(), node.dtype.kind == "float"
                view[...] = rng.normal(size=view.shape) if is_float else 0
        want = evaluate_all([made.uop])
        with monkeypatch.context() as patch:
            patch.setattr(glassgrad.loops, "coalesce_loops", failing(list, always, KeyError()))
            with pytest.warns(CompilerWarning):
                got = [view.numpy() for view in realize([made.uop])]
        assert not differences([made.uop], got, want), name


def test_kernels_without_a_coverage_proof_are_counted_and_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    GlobalCounters.reset()
    break_coverage(monkeypatch)
    value, wanted = values()
    with pytest.warns(CompilerWarning, match="writes other elements"), Context(DEBUG=3):
        (view,) = realize([value])
    np.testing.assert_array_equal(view.numpy(), wanted)
    assert GlobalCounters.uncovered_count == 1
    assert (
        "not proved to write every element of their results: 1 kernels" in capsys.readouterr().out
    )
    GlobalCounters.reset()
    assert GlobalCounters.uncovered_count == 0
