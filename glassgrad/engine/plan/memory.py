"""Schedule -> Plan: which memory each launch uses; temporaries share an arena."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from glassgrad.base.dtype import dtypes
from glassgrad.base.fast_dataclasses import replace
from glassgrad.engine.launch.error_cells import ErrorCells
from glassgrad.engine.plan.arena import Lifetime, assign_offsets
from glassgrad.engine.plan.plan import Allocation, Plan, Result
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import ERROR_CELLS, Launch, Schedule
from glassgrad.ir.uop import UOp
from glassgrad.schedule import base_buffer


def make_plan(
    schedule: Schedule,
    built: Sequence[Launch],
    roots: Sequence[UOp],
    leaves: Sequence[UOp],
) -> Plan:
    """Number the buffers: leaves first, then results, error cells, and temporaries."""
    numbers = {leaf: number for number, leaf in enumerate(leaves)}
    results: list[Allocation] = []
    for output in schedule.outputs:
        base = base_buffer(output)
        if base not in numbers:
            numbers[base] = len(leaves) + len(results)
            results.append(Allocation(base.shape, base.dtype))
    cells = _cells(schedule, len(leaves) + len(results))
    results += [Allocation((len(found.checks),), dtypes.int64, is_zeroed=True) for found in cells]
    temporaries = _temporaries(schedule, numbers)
    offsets, size = assign_offsets(temporaries)
    first = len(leaves) + len(results)
    numbers |= {node: first + number for number, node in enumerate(temporaries)}
    cells_of = {found.launch: found.buffer for found in cells}
    launches = []
    for number, (launch, nodes) in enumerate(zip(built, schedule.buffers, strict=True)):
        slots = [cells_of[number] if node is ERROR_CELLS else numbers[node] for node in nodes]
        launches.append(replace(launch, slots=tuple(slots)))
    ends = [
        Result(numbers[base_buffer(output)], root.shape, output.op is Ops.ASSIGN)
        for root, output in zip(roots, schedule.outputs, strict=True)
    ]
    writes = [
        tuple(sorted({n for node in stored if (n := numbers[base_buffer(node)]) < len(leaves)}))
        for stored in schedule.stored
    ]
    return Plan(launches, len(leaves), results, list(offsets.values()), size, ends, cells, writes)


def _cells(schedule: Schedule, first: int) -> list[ErrorCells]:
    pairs = enumerate(zip(schedule.kernels, schedule.buffers, strict=True))
    checking = [(number, kernel) for number, (kernel, nodes) in pairs if ERROR_CELLS in nodes]
    reported: set[int] = set()
    found = []
    for i, (number, kernel) in enumerate(checking):
        own = {check.number for check in kernel.checks}
        found.append(ErrorCells(first + i, number, kernel.checks, own <= reported))
        reported |= own
    return found


def _temporaries(schedule: Schedule, placed: dict[UOp, int]) -> dict[UOp, Lifetime]:
    found: dict[UOp, Lifetime] = {}
    for number, slots in enumerate(schedule.buffers):
        for node in slots:
            if node in placed or node is ERROR_CELLS:
                continue
            first = found[node].first if node in found else number
            found[node] = Lifetime(first, number, prod(map(int, node.shape)) * node.dtype.itemsize)
    return found
