"""Long ways to neighbouring results -> step by step beside each other.

A processor looks some 200 instructions ahead. Where every result of a tile is 50 instructions away,
one waiting for the other, it finds four ways to work on at once; side by side it finds enough.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.lower.unused import SILENT

TOGETHER = 4  # measured; more would need more registers than there are
LONG = 16  # instructions to a result, for which it is worth it
MEMORY = frozenset((Ops.PARAM, Ops.SCRATCH))
LOAD, STORE, INDEX = Ops.LOAD, Ops.STORE, Ops.INDEX


def interleave(lines: Sequence[UOp]) -> list[UOp]:
    """The same instructions; neighbouring ways to a STORE are taken together."""
    done: list[UOp] = []
    group: list[list[UOp]] = []
    way: list[UOp] = []
    for line in lines:
        way.append(line)
        if line.op is STORE:
            if len(way) < LONG or not _may_join(group, way):
                done += _together(group)
                group = []
            group.append(way)
            way = []
        is_border = line.op is not STORE and line.op not in SILENT
        if is_border or len(group) == TOGETHER:
            done += _together(group)
            group = []
        if is_border:
            done += way
            way = []
    return [*done, *_together(group), *way]


def _may_join(group: list[list[UOp]], way: list[UOp]) -> bool:
    """Does nothing on this way read memory that others of the group write?"""
    if group and len(group[0]) < LONG:
        return False
    written = {_memory(other[-1]) for other in group}
    return not any(line.op is LOAD and _memory(line) in written for line in way)


def _memory(access: UOp) -> UOp:
    """The buffer that a LOAD or STORE goes to."""
    node = access.src[0]
    while node.op not in MEMORY and node.src:
        node = node.src[0]
    return node


def _together(ways: list[list[UOp]]) -> list[UOp]:
    """One instruction of each in turns; one that needs another's waits for it."""
    if len(ways) < 2:
        return [line for way in ways for line in way]
    waiting = {line for way in ways for line in way}
    queues = [deque(way) for way in ways]
    done: list[UOp] = []
    while waiting:
        for queue in queues:
            if queue and waiting.isdisjoint(queue[0].src):
                line = queue.popleft()
                waiting.discard(line)
                done.append(line)
    return done
