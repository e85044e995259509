"""Instructions -> the needed ones: removes unused results of unroll copies."""

from __future__ import annotations

from collections.abc import Sequence

from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.uop import UOp

# Instructions without side effects.
PURE_OPS = OpGroup.ELEMENTWISE | {
    Ops.CONST, Ops.INDEX, Ops.LOAD, Ops.STACK, Ops.GEP, Ops.SHUFFLE,
    Ops.AFTER, Ops.SCRATCH, Ops.DOT,
}  # fmt: skip


def eliminate_dead_code(lines: Sequence[UOp]) -> list[UOp]:
    """Backwards: drop pure instructions that no later instruction uses."""
    needed: set[UOp] = set()
    needed_lines: list[UOp] = []
    for line in reversed(lines):
        if line.op not in PURE_OPS or line in needed:
            needed.update(line.src)
            needed_lines.append(line)
    needed_lines.reverse()
    return needed_lines
