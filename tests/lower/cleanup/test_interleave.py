"""Dependency chains to neighbouring results are interleaved."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.compiler.programs import TARGET
from support.compiler.schedules import memory, planned

from glassgrad import Tensor
from glassgrad.base.dtype import dtypes
from glassgrad.engine.compile.optimizer_policy import current_policy
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Param
from glassgrad.ir.uop import UOp
from glassgrad.loops import optimize
from glassgrad.lower import lower
from glassgrad.lower.cleanup.interleave import MAX_INTERLEAVED_CHAINS, MIN_CHAIN_LENGTH, interleave

OUT, IN = [UOp(Ops.PARAM, dtypes.float32, (), Param(slot, (64,), (1,))) for slot in range(2)]


def chain(place: int, steps: int, read: UOp = IN, write: UOp = OUT) -> list[UOp]:
    """Load, add `steps` times, store."""
    number = UOp(Ops.CONST, dtypes.int64, (), place)
    lines = [UOp(Ops.INDEX, dtypes.float32, (read, number))]
    lines.append(UOp(Ops.LOAD, dtypes.float32, (lines[-1],)))
    for _ in range(steps):
        lines.append(lines[-1] + lines[-1])
    at = UOp(Ops.INDEX, dtypes.float32, (write, number))
    return [*lines, at, UOp(Ops.STORE, dtypes.void, (at, lines[-1]))]


def stores(lines: list[UOp]) -> list[int]:
    return [place for place, line in enumerate(lines) if line.op is Ops.STORE]


def test_long_chains_are_interleaved() -> None:
    chains = [chain(place, MIN_CHAIN_LENGTH) for place in range(MAX_INTERLEAVED_CHAINS)]
    found = interleave([line for lines in chains for line in lines])
    assert stores(found) == list(range(len(found) - MAX_INTERLEAVED_CHAINS, len(found)))


def test_short_chains_are_not_interleaved() -> None:
    lines = [line for place in range(4) for line in chain(place, 3)]
    assert interleave(lines) == lines


def test_a_load_of_written_memory_waits_for_the_store() -> None:
    lines = [*chain(0, MIN_CHAIN_LENGTH), *chain(1, MIN_CHAIN_LENGTH, read=OUT)]
    assert interleave(lines) == lines


def test_a_store_waits_for_loads_of_the_old_contents() -> None:
    late = chain(0, MIN_CHAIN_LENGTH)
    number = UOp(Ops.INDEX, dtypes.float32, (IN, late[-3].cast(dtypes.int64)))
    value = UOp(Ops.LOAD, dtypes.float32, (number,))  # its offset takes many instructions
    at = UOp(Ops.INDEX, dtypes.float32, (OUT, UOp(Ops.CONST, dtypes.int64, (), 9)))
    first = [*late[:-2], number.src[1], number, value, at, UOp(Ops.STORE, dtypes.void, (at, value))]
    where = UOp(Ops.INDEX, dtypes.float32, (IN, UOp(Ops.CONST, dtypes.int64, (), 5)))
    zero = UOp(Ops.CONST, dtypes.float32, (), 0.0)
    second = [zero, where, UOp(Ops.STORE, dtypes.void, (where, zero))]
    found = interleave(first + second)
    assert found.index(second[-1]) > found.index(value)


def test_in_place_updates_are_interleaved() -> None:
    chains = [chain(place, MIN_CHAIN_LENGTH, read=OUT) for place in range(2)]
    lines = [line for one in chains for line in dict.fromkeys(one)]
    assert interleave(lines) == lines
    found = interleave(lines, frozenset((OUT,)))
    assert stores(found) == [len(found) - 2, len(found) - 1]


def test_nothing_crosses_the_end_of_a_loop() -> None:
    loop = UOp(Ops.RANGE, dtypes.int64, (UOp(Ops.CONST, dtypes.int64, (), 4),))
    end = UOp(Ops.END, dtypes.void, (loop,))
    lines = [loop, *chain(0, MIN_CHAIN_LENGTH), end, *chain(1, MIN_CHAIN_LENGTH)]
    assert interleave(lines) == lines


@given(st.lists(st.tuples(st.integers(0, 2 * MIN_CHAIN_LENGTH), st.booleans()), max_size=12))
def test_every_instruction_appears_once_after_its_operands(shape: list[tuple[int, bool]]) -> None:
    lines: list[UOp] = []
    for place, (steps, back) in enumerate(shape):
        steps_of = dict.fromkeys(chain(place, steps, read=OUT if back else IN))
        lines += [n for n in steps_of if n not in lines]
    found = interleave(lines)
    assert sorted(found, key=lines.index) == lines
    place = {line: number for number, line in enumerate(found)}
    assert all(place[s] < place[n] for n in found for s in n.src if s in place)


def test_the_results_of_a_product_with_gelu_are_interleaved() -> None:
    (kernel,) = planned((memory(64, 64) @ memory(64, 64)).gelu()).kernels
    lines = list(lower(optimize(kernel, TARGET, current_policy()), TARGET).uops)
    distances = np.diff(stores(lines))
    assert (distances < MIN_CHAIN_LENGTH).any()  # otherwise they are some forty instructions apart


def test_interleaving_keeps_the_results() -> None:
    rng = np.random.default_rng(1)
    x, w = [rng.standard_normal((33, 33)).astype(np.float32) for _ in "xw"]
    found = (Tensor(x) @ Tensor(w)).sigmoid().numpy()
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-(x @ w))), rtol=1e-5, atol=1e-6)
