"""Long ways to neighbouring results -> step by step beside each other.

A processor looks some 200 instructions ahead. Where every result of a tile is 50 instructions away,
one waiting for the other, it finds four ways to work on at once; side by side it finds enough.
"""

from __future__ import annotations

from collections.abc import Sequence

from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.lower.cleanup.dead_code import SILENT

TOGETHER = 4  # measured; more would need more registers than there are
LONG = 16  # instructions to a result, for which it is worth it
MEMORY = frozenset((Ops.PARAM, Ops.SCRATCH))
LOAD, STORE = Ops.LOAD, Ops.STORE


def interleave(lines: Sequence[UOp], in_place: frozenset[UOp] = frozenset()) -> list[UOp]:
    """The same instructions; neighbouring ways to a STORE are taken together.

    Of what is overwritten `in_place`, every way reads only what it writes itself.
    """
    done: list[UOp] = []
    ways = _Ways(in_place)
    way: list[UOp] = []
    for line in lines:
        way.append(line)
        if line.op is STORE:
            if not ways.may_take(way):
                done += ways.together()
            ways.take(way)
            way = []
        elif line.op not in SILENT:  # the border of a loop
            done += ways.together() + way
            way = []
    return done + ways.together() + way


class _Ways:
    """Neighbouring ways to a STORE."""

    def __init__(self, in_place: frozenset[UOp]) -> None:
        self.in_place = in_place
        self._clear()

    def _clear(self) -> None:
        self.lines: list[UOp] = []
        self.written: set[UOp] = set()
        self.weight = 0.0

    def may_take(self, way: list[UOp]) -> bool:
        """Is there room, and does nothing on this way read memory that others write?"""
        if self.weight >= TOGETHER:
            return False
        return not any(line.op is LOAD and _memory(line) in self.written for line in way)

    def take(self, way: list[UOp]) -> None:
        self.lines += way
        self.written |= {_memory(way[-1])} - self.in_place
        self.weight += min(1.0, len(way) / LONG)

    def together(self) -> list[UOp]:
        """What can be done first goes first; what is read is overwritten after that."""
        depth: dict[UOp, int] = {}
        read: dict[UOp, int] = {}  # memory -> when it is read last
        for line in self.lines:
            needs = [depth.get(source, 0) for source in line.src]
            if line.op is STORE:
                needs.append(read.get(_memory(line), 0))
            depth[line] = 1 + max(needs, default=0)
            if line.op is LOAD:
                memory = _memory(line)
                read[memory] = max(read.get(memory, 0), depth[line])
        lines = self.lines
        is_alone = sum(line.op is STORE for line in lines) < 2
        if not is_alone and max(depth.values()) >= LONG:
            lines = sorted(lines, key=depth.__getitem__)
        self._clear()
        return lines


def _memory(access: UOp) -> UOp:
    """The buffer that a LOAD or STORE goes to."""
    node = access.src[0]
    while node.op not in MEMORY and node.src:
        node = node.src[0]
    return node
