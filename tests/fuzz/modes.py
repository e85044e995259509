"""The ways to run a program, each compared with the reference."""

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
from fuzz.generate import Wishes, generate
from fuzz.programs import Array, Program
from fuzz.reference import check_end, evaluate, leaf_values, slopes
from fuzz.run_glassgrad import run
from fuzz.shrink import pruned
from fuzz.stochastic import Arithmetic, Discard

SEEDS = {"captured": (0, 1, 2, 1)}  # of the inputs of each call
USUAL_SEEDS = (0, 1, 0)
THREADS = 4
PROGRAMS_PER_THREAD = 3
REPEATS = 4  # compiled once, recorded each time


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
    """Any legal loop moves instead of the chosen ones."""
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
    """Every constant and every start of a slice is an argument of the launch."""
    from glassgrad.engine.plan import lifting

    before = lifting.MIN_CHANGES, lifting.MAX_LIFTED
    lifting.MIN_CHANGES, lifting.MAX_LIFTED = 0, 200
    try:
        yield
    finally:
        lifting.MIN_CHANGES, lifting.MAX_LIFTED = before


def around(mode: str, seed: int) -> Any:
    if mode == "noopt":
        return settings(NOOPT=1, THREADS=1)
    if mode == "lifted":
        return lifted_numbers()
    if mode == "recipes":
        return random_recipes(seed)
    return settings(THREADS=2 if mode == "two cores" else 1)


# ---------------------------------------------------------------------- one program


def check(program: Program, mode: str, seed: int) -> Failure | None:
    """Run a program in a mode, and compare. Raises Discard if nobody knows what is right."""
    return compared(program, mode, seed, _wanted(program, mode, seed))


def compared(program: Program, mode: str, seed: int, wanted: list[Compare]) -> Failure | None:
    try:
        with around(mode, seed):
            found = run(program, seeds_of(mode), mode == "captured")
    except Exception as error:  # noqa: BLE001
        return _raised(program, mode, seed, error)
    wrong = [
        message
        for call, (result, compare) in enumerate(zip(found, wanted, strict=True))
        for message in (f"call {call}: {text}" for text in compare(result))
    ]
    return Failure(program, mode, seed, "wrong", "\n".join(wrong)) if wrong else None


def seeds_of(mode: str) -> tuple[int, ...]:
    return SEEDS.get(mode, USUAL_SEEDS)


def _wanted(program: Program, mode: str, seed: int) -> list[Compare]:
    """For each call, what compares its results. Held leaves keep what earlier calls wrote."""
    found: list[Compare] = []
    arithmetic = Arithmetic(seed=seed)
    held: dict[str, Any] = {}
    known: dict[int, Compare] = {}  # while what is held stays what it was
    for inputs in seeds_of(mode):
        if inputs in known:
            found.append(known[inputs])
            continue
        moved = program.with_seeds(inputs)
        state = {**leaf_values(moved, arithmetic), **held}
        first = {name: one.read()[0].copy() for name, one in held.items()}
        held = {leaf.name: state[leaf.name] for leaf in program.leaves if leaf.is_held}
        before = [one.memory.lanes.copy() for one in held.values()]
        evaluate(moved, arithmetic, state)
        check_end(moved, state)
        found.append(_comparison(moved, state, seed, first))
        after = [one.memory.lanes for one in held.values()]
        if all(map(np.array_equal, before, after)):
            known[inputs] = found[-1]
        else:
            known.clear()
    return found


def _comparison(
    program: Program, state: dict[str, Any], seed: int, held: dict[str, Array]
) -> Compare:
    """`held` are the numbers in held leaves when the call began, where calls went before."""
    from fuzz.stochastic import shown

    kept = {n: shown(state[n].read(), state[n].dtype) for n in program.outputs}
    needed = pruned(replace(program, outputs=(), keeps_unused=False))
    moved = slopes(replace(needed, leaves=program.leaves), seed, held) if program.loss else []
    if moved and not any(slope.wanted for slope in moved):
        raise Discard("backward() refuses a loss that depends on no parameter")

    def compare(found: list[Array | None]) -> list[str]:
        return [
            *value_differences(program, found, kept),
            *gradient_differences(program, found, moved),
        ]

    return compare


def _raised(program: Program, mode: str, seed: int, error: Exception) -> Failure:
    text = traceback.format_exc(limit=-6)
    error.__traceback__ = None
    gc.collect()  # what a failed program leaves unfinished must not reach the next one
    return Failure(program, mode, seed, type(error).__name__, text)


# ---------------------------------------------------------------------- threads


def check_threads(seed: int, wishes: Wishes) -> tuple[int, Failure | None]:
    """Several threads, each with programs of its own that it runs again and again."""
    rng = Random(seed)
    work = [_work_of_thread(rng, wishes) for _ in range(THREADS)]
    failures: list[Failure] = []

    def go(programs: list[Work]) -> None:
        for _ in range(REPEATS):
            for program, one, wanted in programs:
                failure = compared(program, "threads", one, wanted)
                if failure:
                    failures.append(failure)

    before = sys.getswitchinterval()
    threads = [threading.Thread(target=go, args=(programs,)) for programs in work]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    return sum(map(len, work)), failures[0] if failures else None


Work = tuple[Program, int, list[Compare]]


def _work_of_thread(rng: Random, wishes: Wishes) -> list[Work]:
    """Short programs that are right when they run alone; those that are not, other modes find."""
    found: list[Work] = []
    for _ in range(PROGRAMS_PER_THREAD):
        seed = rng.randrange(1 << 40)
        program = generate(seed, Wishes(rng.random() < 0.7, wishes.without, 4, 12))
        try:
            wanted = _wanted(program, "plain", seed)
        except Discard:
            continue
        if compared(program, "plain", seed, wanted) is None:
            found.append((program, seed, wanted))
    return found
