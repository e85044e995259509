"""uops -> which of them have no line of their own: what is used once is written where it is used.

A value keeps a line, and a name, if it is used several times, in another block than the one it is
computed in, or behind an assignment to an accumulator that it reads.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence

from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.uop import UOp

OPENS = frozenset((Ops.RANGE, Ops.IF))
CLOSES = frozenset((Ops.END, Ops.ENDIF))
# Their text is short and has no cost: an element of a vector, a number, a name.
ALWAYS_INLINE = frozenset((Ops.CONST, Ops.GEP, Ops.AFTER))
# These may be written where they are used.
VALUES = OpGroup.ELEMENTWISE | frozenset((Ops.STACK, Ops.INDEX))
ORDERING = CLOSES | frozenset((Ops.BARRIER,))  # their sources only say what comes before
ENOUGH = 2  # nobody asks whether a value is used more often than this

Repeats = Callable[[UOp, int], int]  # how often a uop's text holds the text of source i


def inlined(uops: Sequence[UOp], repeats: Repeats, is_short: Callable[[UOp], bool]) -> set[UOp]:
    """The uops that are written where they are used."""
    place = {uop: number for number, uop in enumerate(uops)}
    blocks = _blocks(uops)
    hazards = _Hazards(uops, place)
    # Where a value's text stands: the numbers of the lines, as often as it stands there.
    uses: defaultdict[UOp, list[int]] = defaultdict(list)
    found: set[UOp] = set()
    for number in range(len(uops) - 1, -1, -1):
        uop = uops[number]
        if uop.op in ORDERING:
            continue
        where = [number]
        if uop.op in ALWAYS_INLINE or is_short(uop):
            found.add(uop)
            where = uses[uop]
        elif uop.op in VALUES and _fits(uop, uses[uop], number, blocks, hazards):
            found.add(uop)
            where = uses[uop]
        for i, source in enumerate(uop.src[:1] if uop.op is Ops.AFTER else uop.src):
            uses[source] += (where * repeats(uop, i))[:ENOUGH]
    return found


def _fits(uop: UOp, uses: list[int], number: int, blocks: list[int], hazards: _Hazards) -> bool:
    if uop.op is Ops.INDEX and uop.src[0].op is not Ops.INDEX:
        return True  # buffer + place: the place has a name if it is needed
    if len(uses) != 1 or blocks[uses[0]] != blocks[number]:
        return False
    return not hazards.between(uop, number, uses[0])


def _blocks(uops: Sequence[UOp]) -> list[int]:
    """For each line, which block it stands in; a loop's own line stands outside of its block."""
    found, opened = [], [-1]
    for number, uop in enumerate(uops):
        if uop.op in CLOSES:
            opened.pop()
        found.append(opened[-1])
        if uop.op in OPENS:
            opened.append(number)
    return found


class _Hazards:
    """Which accumulators a value reads, and where these are written."""

    def __init__(self, uops: Sequence[UOp], place: dict[UOp, int]) -> None:
        self.writes: defaultdict[UOp, list[int]] = defaultdict(list)
        self.reads: dict[UOp, frozenset[UOp]] = {}
        nothing: frozenset[UOp] = frozenset()
        for number, uop in enumerate(uops):
            if uop.op is Ops.ACC:
                self.reads[uop] = frozenset((uop,))
            elif uop.op is Ops.ASSIGN:
                self.writes[uop.src[0]].append(number)
            elif uop.op in VALUES or uop.op in ALWAYS_INLINE:
                some = [self.reads[s] for s in uop.src if self.reads.get(s)]
                self.reads[uop] = nothing.union(*some)

    def between(self, uop: UOp, first: int, last: int) -> bool:
        """Is something that the value reads written after line `first` and before line `last`?"""
        for acc in self.reads[uop]:
            writes = self.writes[acc]
            following = bisect_right(writes, first)
            if following < len(writes) and writes[following] < last:
                return True
        return False
