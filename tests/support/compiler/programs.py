"""Programs of small nests, and where in them things stand."""

from __future__ import annotations

from collections import Counter

from glassgrad.ir.ops import Ops
from glassgrad.ir.spec import check
from glassgrad.ir.stages import Nest, Program, Target
from glassgrad.ir.uop import UOp
from glassgrad.loops.moves.lanes import choose_lanes
from glassgrad.lower import lower
from support.compiler.schedules import TARGET


def program_of(nest: Nest, target: Target = TARGET) -> Program:
    """The instructions of a nest, checked."""
    program = lower(choose_lanes(nest, target), target)
    check(program.uops, "program")
    return program


def count(program: Program, op: Ops) -> int:
    return sum(uop.op is op for uop in program.uops)


def all_of(program: Program, op: Ops) -> list[UOp]:
    return [uop for uop in program.uops if uop.op is op]


def depths(program: Program, op: Ops) -> list[int]:
    """How many loops are open at each instruction of a kind."""
    found, depth = [], 0
    for uop in program.uops:
        depth -= uop.op is Ops.END
        if uop.op is op:
            found.append(depth)
        depth += uop.op is Ops.RANGE
    return found


def loads_by_depth(program: Program) -> Counter[int]:
    return Counter(depths(program, Ops.LOAD))
