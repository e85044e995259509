"""Large contiguous results that are not read again are stored past the caches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from support.compiler.programs import TARGET
from support.compiler.schedules import memory, planned

from glassgrad import Tensor, dtypes
from glassgrad.engine.pipeline import write_source
from glassgrad.ir.linear import Linear, add, linear, minimum, scale
from glassgrad.ir.ops import NON_TEMPORAL, Ops
from glassgrad.ir.stages import Nest
from glassgrad.ir.uop import const, make_range
from glassgrad.loops.moves.lanes import choose_lanes
from glassgrad.loops.moves.table import apply_moves
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.lower import lower
from glassgrad.lower.memory.non_temporal import divisor

SMALL = replace(TARGET, l3_bytes=1 << 12)  # a machine on which 64 x 64 floats exceed L3


def are_non_temporal(tensor: Tensor) -> list[bool]:
    """For all vector stores to results: True if they are non-temporal."""
    found: list[bool] = []
    for kernel in planned(tensor).kernels:
        for uop in write_source(kernel, SMALL).program.uops:
            node = uop
            while node.src:
                node = node.src[0]
            if uop.op is Ops.STORE and node.op is Ops.PARAM and uop.src[1].dtype.count > 1:
                found.append(uop.arg is NON_TEMPORAL)
    return found


IN_ORDER: dict[str, Callable[[], Tensor]] = {
    "sum of two": lambda: memory(64, 64) + memory(64, 64),
    "exp": lambda: memory(64, 64).exp(),
    "softmax": lambda: memory(64, 64).softmax(),
    "running sums": lambda: memory(64, 64).cumsum(1),
    "rows that are looked up": lambda: memory(128, 64)[memory(64, dtype=dtypes.int32)],
    "longer than vectors divide": lambda: memory(9 * 8 * 64) + 1,
    "bytes": lambda: memory(128, 64, dtype=dtypes.int8) + memory(128, 64, dtype=dtypes.int8),
}
OTHERS: dict[str, Callable[[], Tensor]] = {
    "a small result": lambda: memory(64, 8) + 1,
    "a transposition": lambda: memory(64, 64).transpose(0, 1) + 0.5,
    "a tile of a product": lambda: memory(64, 64) @ memory(64, 64),
    "rows that start within a vector": lambda: memory(64, 65).softmax(),
    "a mask": lambda: memory(64, 64) < 0.5,
    "what is overwritten": lambda: _updated(memory(64, 64)),
}


def _updated(tensor: Tensor) -> Tensor:
    return tensor.assign(tensor * 2 + 1)


@pytest.mark.parametrize("name", IN_ORDER)
def test_contiguous_stores_are_non_temporal(name: str) -> None:
    found = are_non_temporal(IN_ORDER[name]())
    assert found and all(found)


@pytest.mark.parametrize("name", OTHERS)
def test_other_stores_are_cached(name: str) -> None:
    found = are_non_temporal(OTHERS[name]())
    assert found and not any(found)


def test_results_from_three_quarters_of_l3_are_streamed() -> None:
    (kernel,) = planned(memory(64, 64) + 1).kernels

    def streams(cache: int) -> bool:
        uops = write_source(kernel, replace(TARGET, l3_bytes=cache)).program.uops
        return any(uop.arg is NON_TEMPORAL for uop in uops)

    assert streams(64 * 64 * 4 * 4 // 3) and not streams(64 * 64 * 4 * 4 // 3 + 4)


def test_a_divisor_divides_every_offset() -> None:
    i, j = make_range(0, 5), make_range(1, 7)
    assert divisor(linear(add(scale(i, 24), scale(j, 16)))) == 8
    assert divisor(linear(add(scale(i, 24), 4))) == 4
    assert divisor(linear(minimum(scale(i, 24), const(90)))) == 6
    assert divisor(Linear({}, 0)) == 0


@pytest.mark.parametrize(("registers", "streams"), [(8, False), (16, True)])
def test_stores_of_half_cache_lines_are_cached(registers: int, streams: bool) -> None:
    (kernel,) = planned(memory(64, 72)[:, :64].transpose(0, 1) + memory(64, 64)).kernels
    nest = Nest(kernel.body, kernel.outer)
    columns, rows = nest.outer[-1].axis, nest.outer[0].axis
    recipe = (Opt(OptOps.UPCAST, columns, registers), Opt(OptOps.SWAP, columns, rows))
    uops = lower(choose_lanes(apply_moves(nest, recipe, SMALL), SMALL), SMALL).uops
    assert any(uop.arg is NON_TEMPORAL for uop in uops) is streams
