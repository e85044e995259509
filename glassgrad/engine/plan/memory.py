"""Schedule -> Plan: which memory each launch works on; values that never meet share it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from glassgrad.base.dtype import dtypes
from glassgrad.base.fast_dataclasses import replace
from glassgrad.engine.launch.error_flags import Cells
from glassgrad.engine.plan.arena import Life, assign_offsets
from glassgrad.engine.plan.plan import Made, Plan, Result
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import CELLS, Launch, Schedule
from glassgrad.ir.uop import UOp
from glassgrad.schedule import place


def make_plan(
    made: Schedule, built: Sequence[Launch], roots: Sequence[UOp], leaves: Sequence[UOp]
) -> Plan:
    """Number the places: leaves first, then results, cells, and temporaries."""
    numbers = {leaf: number for number, leaf in enumerate(leaves)}
    results: list[Made] = []
    for output in made.outputs:
        base = place(output)
        if base not in numbers:
            numbers[base] = len(leaves) + len(results)
            results.append(Made(base.shape, base.dtype))
    cells = _cells(made, len(leaves) + len(results))
    results += [Made((len(found.checks),), dtypes.int64, is_zeroed=True) for found in cells]
    temporaries = _temporaries(made, numbers)
    offsets, size = assign_offsets(temporaries)
    first = len(leaves) + len(results)
    numbers |= {node: first + number for number, node in enumerate(temporaries)}
    own = {found.launch: found.place for found in cells}
    launches = []
    for number, (launch, nodes) in enumerate(zip(built, made.buffers, strict=True)):
        slots = [own[number] if node is CELLS else numbers[node] for node in nodes]
        launches.append(replace(launch, slots=tuple(slots)))
    ends = [
        Result(numbers[place(output)], root.shape, output.op is Ops.ASSIGN)
        for root, output in zip(roots, made.outputs, strict=True)
    ]
    writes = [
        tuple(sorted({n for node in stored if (n := numbers[place(node)]) < len(leaves)}))
        for stored in made.stored
    ]
    return Plan(launches, len(leaves), results, list(offsets.values()), size, ends, cells, writes)


def _cells(made: Schedule, first: int) -> list[Cells]:
    pairs = enumerate(zip(made.kernels, made.buffers, strict=True))
    checking = [(number, kernel) for number, (kernel, nodes) in pairs if CELLS in nodes]
    known: set[int] = set()
    found = []
    for i, (number, kernel) in enumerate(checking):
        own = {check.number for check in kernel.checks}
        found.append(Cells(first + i, number, kernel.checks, own <= known))
        known |= own
    return found


def _temporaries(made: Schedule, known: dict[UOp, int]) -> dict[UOp, Life]:
    found: dict[UOp, Life] = {}
    for number, slots in enumerate(made.buffers):
        for node in slots:
            if node in known or node is CELLS:
                continue
            first = found[node].first if node in found else number
            found[node] = Life(first, number, prod(map(int, node.shape)) * node.dtype.itemsize)
    return found
