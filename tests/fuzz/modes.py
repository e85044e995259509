"""Modes: the ways to run a program, each compared with the reference."""

from __future__ import annotations

import gc
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np

from fuzz.compare import gradient_differences, value_differences
from fuzz.generate import GeneratorOptions, generate
from fuzz.programs import Array, Program
from fuzz.reference import check_outputs, derivatives, evaluate, leaf_values
from fuzz.run_glassgrad import run
from fuzz.shrink import prune
from fuzz.stochastic import Arithmetic, Discard

SEEDS = {"captured": (0, 1, 2, 1)}  # of the inputs of each call
DEFAULT_SEEDS = (0, 1, 0)
THREADS = 4
PROGRAMS_PER_THREAD = 3
REPEATS = 4  # the first compiles, all of them record

Compare = Callable[[list[Array | None]], list[str]]


@dataclass(frozen=True)
class Failure:
    """A program that went wrong: `kind` is "wrong" or the name of the exception."""

    program: Program
    mode: str
    seed: int
    kind: str
    message: str


# ---------------------------------------------------------------------- how it is run


@contextmanager
def settings(**values: int) -> Iterator[None]:
    from glassgrad.base.config import Context

    with Context(**values):
        yield


@contextmanager
def random_recipes(seed: int) -> Iterator[None]:
    """Random legal loop moves instead of those of the heuristic."""
    from support.random.recipes import RandomChooser

    from glassgrad.engine import pipeline

    chooser, before = RandomChooser(seed), pipeline.current_policy
    pipeline.current_policy = lambda: chooser
    try:
        yield
    finally:
        pipeline.current_policy = before


@contextmanager
def lifted_numbers() -> Iterator[None]:
    """Lift every constant and every slice start to an argument of the launch."""
    from glassgrad.engine.plan import lifting

    before = lifting.MIN_CHANGES, lifting.MAX_LIFTED
    lifting.MIN_CHANGES, lifting.MAX_LIFTED = 0, 200
    try:
        yield
    finally:
        lifting.MIN_CHANGES, lifting.MAX_LIFTED = before


def mode_context(mode: str, seed: int) -> Any:
    if mode == "noopt":
        return settings(NOOPT=1, THREADS=1)
    if mode == "lifted":
        return lifted_numbers()
    if mode == "recipes":
        return random_recipes(seed)
    return settings(THREADS=2 if mode == "two cores" else 1)


# ---------------------------------------------------------------------- one program


def check(program: Program, mode: str, seed: int) -> Failure | None:
    """Run a program in a mode, and compare. Raises Discard if the answer is unknown."""
    return run_and_compare(program, mode, seed, _expectations(program, mode, seed))


def run_and_compare(
    program: Program, mode: str, seed: int, expected: list[Compare]
) -> Failure | None:
    try:
        with mode_context(mode, seed):
            found = run(program, seeds_of(mode), mode == "captured")
    except Exception as error:  # noqa: BLE001
        return _raised(program, mode, seed, error)
    wrong = [
        message
        for call, (result, compare) in enumerate(zip(found, expected, strict=True))
        for message in (f"call {call}: {text}" for text in compare(result))
    ]
    return Failure(program, mode, seed, "wrong", "\n".join(wrong)) if wrong else None


def seeds_of(mode: str) -> tuple[int, ...]:
    return SEEDS.get(mode, DEFAULT_SEEDS)


def _expectations(program: Program, mode: str, seed: int) -> list[Compare]:
    """A comparison for each call. Global leaves keep what earlier calls wrote to them."""
    found: list[Compare] = []
    arithmetic = Arithmetic(seed=seed)
    global_leaves: dict[str, Any] = {}
    cached: dict[int, Compare] = {}  # by seed, while no call writes to a global leaf
    for inputs in seeds_of(mode):
        if inputs in cached:
            found.append(cached[inputs])
            continue
        call = program.with_seeds(inputs)
        state = {**leaf_values(call, arithmetic), **global_leaves}
        first = {name: one.read()[0].copy() for name, one in global_leaves.items()}
        global_leaves = {leaf.name: state[leaf.name] for leaf in program.leaves if leaf.is_global}
        before = [one.memory.samples.copy() for one in global_leaves.values()]
        evaluate(call, arithmetic, state)
        check_outputs(call, state)
        found.append(_comparison(call, state, seed, first))
        after = [one.memory.samples for one in global_leaves.values()]
        if all(map(np.array_equal, before, after)):
            cached[inputs] = found[-1]
        else:
            cached.clear()
    return found


def _comparison(
    program: Program, state: dict[str, Any], seed: int, global_values: dict[str, Array]
) -> Compare:
    """`global_values` are those of global leaves at the start of the call, after earlier calls."""
    from fuzz.stochastic import new_value

    outputs = {n: new_value(state[n].read(), state[n].dtype) for n in program.outputs}
    needed = prune(replace(program, outputs=(), keeps_unused=False))
    gradients = []
    if program.loss:
        gradients = derivatives(replace(needed, leaves=program.leaves), seed, global_values)
    if gradients and not any(derivative.expected for derivative in gradients):
        raise Discard("backward() refuses a loss that depends on no parameter")

    def compare(found: list[Array | None]) -> list[str]:
        return [
            *value_differences(program, found, outputs),
            *gradient_differences(program, found, gradients),
        ]

    return compare


def _raised(program: Program, mode: str, seed: int, error: Exception) -> Failure:
    text = traceback.format_exc(limit=-6)
    error.__traceback__ = None
    gc.collect()  # unfinished work of a failed program must not reach the next one
    return Failure(program, mode, seed, type(error).__name__, text)


# ---------------------------------------------------------------------- threads


def check_threads(seed: int, options: GeneratorOptions) -> tuple[int, Failure | None]:
    """Run several threads, each with programs of its own, several times."""
    rng = Random(seed)
    work = [_work_of_thread(rng, options) for _ in range(THREADS)]
    failures: list[Failure] = []

    def run_repeatedly(programs: list[Work]) -> None:
        for _ in range(REPEATS):
            for program, one, expected in programs:
                failure = run_and_compare(program, "threads", one, expected)
                if failure:
                    failures.append(failure)

    interval = sys.getswitchinterval()
    threads = [threading.Thread(target=run_repeatedly, args=(programs,)) for programs in work]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    return sum(map(len, work)), failures[0] if failures else None


Work = tuple[Program, int, list[Compare]]


def _work_of_thread(rng: Random, options: GeneratorOptions) -> list[Work]:
    """Short programs that are correct when run alone; other modes find those that are not."""
    found: list[Work] = []
    for _ in range(PROGRAMS_PER_THREAD):
        seed = rng.randrange(1 << 40)
        program = generate(seed, GeneratorOptions(rng.random() < 0.7, options.without, 4, 12))
        try:
            expected = _expectations(program, "plain", seed)
        except Discard:
            continue
        if run_and_compare(program, "plain", seed, expected) is None:
            found.append((program, seed, expected))
    return found
