"""Scratch is reused when its contents are dead."""

from __future__ import annotations

from itertools import combinations
from random import Random

import numpy as np
import pytest
from support.compiler.nests import kernel_of
from support.compiler.schedules import TARGET, memory
from support.random.graphs import random_graph
from support.random.recipes import RandomChooser

from glassgrad import Tensor
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Program
from glassgrad.ir.uop import UOp
from glassgrad.loops import optimize
from glassgrad.lower import lower
from glassgrad.lower.memory.scratch import allocate_scratch
from glassgrad.schedule import schedule


def scratches(program: Program) -> list[UOp]:
    return [uop for uop in program.uops if uop.op is Ops.SCRATCH]


def chain(count: int) -> Tensor:
    """Each value is computed from the reversed previous one: rows of 2 KB."""
    x = memory(64, 512)
    for _ in range(count):
        x = (x + x.flip(1))._computed_once()
    return x * 2


def test_a_chain_of_stages_needs_memory_for_two() -> None:
    program = lower(optimize(kernel_of(chain(5)), TARGET), TARGET)
    found = scratches(program)
    assert len(found) == 5
    assert len({scratch.arg[2] for scratch in found}) == 2
    assert program.scratch_bytes == 2 * 512 * 4


def test_scratch_that_is_read_later_keeps_its_memory() -> None:
    first = (memory(64, 512) * 3)._computed_once()
    second = (first + first.flip(1))._computed_once()
    third = (second + second.flip(1))._computed_once()
    nest = optimize(kernel_of(third.flip(1) + first.flip(1) + third), TARGET)
    found = scratches(lower(nest, TARGET))
    assert len(found) == 3
    assert len({scratch.arg[2] for scratch in found}) == 3


def test_a_chain_of_stages_is_computed_correctly() -> None:
    x = np.random.default_rng(0).standard_normal((64, 512)).astype(np.float32)
    found, want = Tensor(x), x
    for _ in range(4):
        found, want = (found + found.flip(1))._computed_once(), want + want[:, ::-1]
    np.testing.assert_allclose((found * 2).numpy(), want * 2, rtol=1e-5)


@pytest.mark.parametrize("seed", range(60))
def test_live_scratch_never_overlaps(seed: int) -> None:
    """Checks the instructions between the first and last use, in all loops around."""
    for kernel in schedule(random_graph(Random(seed), 12), TARGET).kernels:
        program = lower(optimize(kernel, TARGET, RandomChooser(seed)), TARGET)
        places = {scratch: _lines(program, scratch) for scratch in scratches(program)}
        for one, two in combinations(places, 2):
            is_apart = max(places[one]) < min(places[two]) or max(places[two]) < min(places[one])
            assert is_apart or _are_disjoint(one, two)


def test_nothing_changes_where_nothing_is_shared() -> None:
    program = lower(optimize(kernel_of(memory(64, 512) * 2), TARGET), TARGET)
    assert allocate_scratch(program.uops) == (list(program.uops), 0)


def _are_disjoint(one: UOp, two: UOp) -> bool:
    first, second = sorted((one, two), key=lambda scratch: scratch.arg[2])
    return bool(first.arg[2] + first.arg[1] * first.dtype.itemsize <= second.arg[2])


def _lines(program: Program, scratch: UOp) -> list[int]:
    pointers = {scratch}
    found = []
    for number, uop in enumerate(program.uops):
        if not pointers.isdisjoint(uop.src):
            found.append(number)
            if uop.op in (Ops.INDEX, Ops.AFTER):
                pointers.add(uop)
    return found
