"""Operands of the next tile or panel are prefetched during the sums."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from support.compiler.nests import kernel_of
from support.compiler.programs import TARGET, depths
from support.compiler.schedules import memory

from glassgrad import Tensor
from glassgrad.base.dtype import dtypes
from glassgrad.base.fast_dataclasses import replace
from glassgrad.devices.python.interpreter import STEPS, ProgramRun
from glassgrad.ir.ops import Ops
from glassgrad.ir.reindex import reindex
from glassgrad.ir.spec import check
from glassgrad.ir.stages import Program, Target
from glassgrad.ir.uop import UOp, const, make_range
from glassgrad.loops import optimize
from glassgrad.lower import lower
from glassgrad.lower.prefetch.operands import Runs, _prefetch_offsets

MANY_REGISTERS = replace(TARGET, registers=32, vector_bytes=64, l2_bytes=1 << 20)


def program_of(tensor: Tensor, target: Target = MANY_REGISTERS) -> Program:
    program = lower(optimize(kernel_of(tensor), target), target)
    check(program.uops, "program")
    return program


def operand_prefetches(program: Program) -> list[UOp]:
    """The prefetches in the innermost loop, among the products."""
    products = [n for n, line in enumerate(program.uops) if line.op is Ops.MULACC]
    begin = max(n for n in range(products[0]) if program.uops[n].op is Ops.RANGE)
    inside = program.uops[begin : products[-1]]
    return [line.src[0] for line in inside if line.op is Ops.PREFETCH]


def linear(rows: int, depth: int, columns: int) -> Tensor:
    """A layer whose weights are row-major."""
    return memory(rows, depth) @ memory(columns, depth).transpose()


@pytest.mark.parametrize("columns", [3072, 3000])
def test_weights_are_prefetched_once_per_iteration(columns: int) -> None:
    program = program_of(linear(256, 768, columns))
    (place,) = operand_prefetches(program)
    steps = [u.src[1] for u in place.toposort() if u.op is Ops.INDEX]
    assert steps, "the place moves on with the loops"
    inner = max(depths(program, Ops.MULACC))
    assert inner in depths(program, Ops.PREFETCH)


def test_the_prefetch_is_behind_the_current_panel() -> None:
    """Two panels of 48 rows are packed at a time, so the next ones begin 96 rows later."""
    program = program_of(linear(256, 768, 3072))
    (place,) = operand_prefetches(program)
    assert place.op is Ops.INDEX and place.src[1].is_const
    assert place.src[1].arg % (48 * 768) == 0 and place.src[1].arg > 0


def test_the_next_panels_are_prefetched_completely() -> None:
    (place,) = operand_prefetches(program_of(linear(256, 768, 3072)))
    ahead = place.src[1].arg
    steps = 32 * ahead // 48  # 32 tiles of 8 rows, each with sums of all steps, for every panel
    inner = place.src[0].src[1]
    assert inner.op is Ops.SHL, "a power of two of elements in every step of the inner loop"
    assert ahead <= steps << inner.src[1].arg < 2 * ahead


def test_unpacked_rows_are_prefetched_a_tile_ahead() -> None:
    program = program_of(memory(1024, 768) @ memory(768, 3072))
    (place,) = operand_prefetches(program)
    assert place.src[1].arg == 8 * 768, "the eight rows of the next tile"
    assert max(depths(program, Ops.MULACC)) in depths(program, Ops.PREFETCH)


def test_both_operands_of_a_gradient_are_prefetched() -> None:
    """Parts of 256 rows; of one operand a core packs 768 of 1536 columns, which are strided."""
    program = program_of(memory(2048, 1536).transpose() @ memory(2048, 384))
    places = operand_prefetches(program)
    slots = [u.arg.slot for place in places for u in place.toposort() if u.op is Ops.PARAM]
    assert sorted(slots) == [1, 2]


def test_cached_or_rarely_used_operands_are_not_prefetched() -> None:
    assert not operand_prefetches(program_of(memory(96, 768) @ memory(768, 96)))
    assert not operand_prefetches(program_of(linear(48, 64, 48)))
    assert not operand_prefetches(program_of(memory(16, 768) @ memory(768, 3072)))


# ---------------------------------------------------------------------- what a run asks for

LINE = 16  # floats


class AccessRecorder:
    """Cache lines of arguments in the order in which a program prefetches and reads them."""

    def __init__(self, program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: dict[int, set[int]] = {}
        self.late: dict[int, set[int]] = {}  # lines that were read before they were prefetched
        self.read: dict[int, set[int]] = {}
        load = STEPS[Ops.LOAD]
        monkeypatch.setitem(
            STEPS, Ops.PREFETCH, lambda t, u: self.record_prefetch(u, t.values[u.src[0]].at)
        )
        monkeypatch.setitem(
            STEPS, Ops.LOAD, lambda t, u: self.record_load(u, t.values[u.src[0]].at) or load(t, u)
        )
        params = {u.arg.slot: u.arg.numel for u in program.uops if u.op is Ops.PARAM}
        arrays = [np.zeros(params[slot], np.float32) for slot in sorted(params)]
        ProgramRun(program, [array.ctypes.data for array in arrays], ()).run()

    def record_prefetch(self, uop: UOp, at: int) -> None:
        self.asked.setdefault(_slot(uop), set()).add(at // LINE)

    def record_load(self, uop: UOp, at: int) -> None:
        slot = _slot(uop)
        if slot is None:
            return
        for line in range(at // LINE, (at + uop.dtype.count - 1) // LINE + 1):
            if line not in self.asked.get(slot, ()) and line not in self.read.get(slot, ()):
                self.late.setdefault(slot, set()).add(line)
            self.read.setdefault(slot, set()).add(line)


def _slot(uop: UOp) -> int | None:
    node = uop.src[0]
    while node.src:
        node = node.src[0]
    return node.arg.slot if node.op is Ops.PARAM else None


SMALL = replace(TARGET, cores=1, l2_bytes=4 << 10, l3_bytes=64 << 10)


@pytest.mark.parametrize(
    ("make", "slot", "late"),
    [
        # six rows of 64 floats are the first tile's
        (lambda: memory(60, 64) @ memory(64, 48), 1, 6 * 4),
        # the sixteen rows of the first panel
        (lambda: memory(48, 64) @ memory(96, 64).transpose(), 2, 16 * 4),
    ],
)
def test_much_reused_operands_are_not_prefetched(
    make: Callable[[], Tensor], slot: int, late: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = AccessRecorder(program_of(make(), SMALL), monkeypatch)
    assert len(watch.late[slot]) == late
    assert len(watch.read[slot]) > 2 * late
    beside = watch.asked[slot] - watch.read[slot]
    assert len(beside) <= late, "at most what would follow behind the end"


def test_separate_runs_are_prefetched_in_order() -> None:
    """All lines of the runs are prefetched, and no others."""
    runs = Runs(count=5, length=40, pitch=100)
    loops = [make_range(0, 2), make_range(1, 4), make_range(2, 10)]
    (away,) = _prefetch_offsets(runs, loops[:2], loops[2:], LINE)
    asked = set()
    for values in product(*(range(r.size) for r in loops)):
        numbers = {r: const(v, dtypes.index) for r, v in zip(loops, values, strict=True)}
        asked.add(reindex(away, numbers).arg // 4)
    assert asked == {(100 * run + at) // 4 for run in range(5) for at in range(40)}


def test_a_tile_prefetches_at_most_two_runs() -> None:
    tiles, steps = [make_range(0, 3)], [make_range(1, 10)]
    assert len(_prefetch_offsets(Runs(6, 40, 100), tiles, steps, LINE)) == 2
    assert not _prefetch_offsets(Runs(7, 40, 100), tiles, steps, LINE)
