"""Uops -> the set of values that are inlined into their single use instead of being named.

A value gets a line and a name if it is used several times, in another block, or after an assignment
to an accumulator that it reads.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence

from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.uop import UOp

OPENS = frozenset((Ops.RANGE, Ops.IF))
CLOSES = frozenset((Ops.END, Ops.ENDIF))
# Short texts without cost: an element of a vector, a literal, a name.
ALWAYS_INLINE = frozenset((Ops.CONST, Ops.GEP, Ops.AFTER))
# Ops that may be inlined.
VALUES = OpGroup.ELEMENTWISE | frozenset((Ops.STACK, Ops.INDEX))
ORDERING = CLOSES | frozenset((Ops.BARRIER,))  # their sources only express order
MAX_COUNTED_USES = 2  # counts above this make no difference

Repeats = Callable[[UOp, int], int]  # how often a uop's text contains source i


def inlined_values(
    uops: Sequence[UOp], repeats: Repeats, is_always_inline: Callable[[UOp], bool]
) -> set[UOp]:
    """The uops that are inlined."""
    position = {uop: number for number, uop in enumerate(uops)}
    blocks = _blocks(uops)
    hazards = _Hazards(uops, position)
    # The lines that contain a value's text, once for each occurrence.
    uses: defaultdict[UOp, list[int]] = defaultdict(list)
    found: set[UOp] = set()
    for number in range(len(uops) - 1, -1, -1):
        uop = uops[number]
        if uop.op in ORDERING:
            continue
        where = [number]
        if uop.op in ALWAYS_INLINE or is_always_inline(uop):
            found.add(uop)
            where = uses[uop]
        elif uop.op in VALUES and _can_inline(uop, uses[uop], number, blocks, hazards):
            found.add(uop)
            where = uses[uop]
        for i, source in enumerate(uop.src[:1] if uop.op is Ops.AFTER else uop.src):
            uses[source] += (where * repeats(uop, i))[:MAX_COUNTED_USES]
    return found


def _can_inline(
    uop: UOp, uses: list[int], number: int, blocks: list[int], hazards: _Hazards
) -> bool:
    if uop.op is Ops.INDEX and uop.src[0].op is not Ops.INDEX:
        return True  # buffer + offset is short, and a long offset has a name
    if len(uses) != 1 or blocks[uses[0]] != blocks[number]:
        return False
    return not hazards.between(uop, number, uses[0])


def _blocks(uops: Sequence[UOp]) -> list[int]:
    """The block of each line; a loop's own line belongs to the block around it."""
    found, opened = [], [-1]
    for number, uop in enumerate(uops):
        if uop.op in CLOSES:
            opened.pop()
        found.append(opened[-1])
        if uop.op in OPENS:
            opened.append(number)
    return found


class _Hazards:
    """The accumulators that each value reads, and the lines that write these."""

    def __init__(self, uops: Sequence[UOp], position: dict[UOp, int]) -> None:
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
        """True if an accumulator that the value reads is written between two lines."""
        for acc in self.reads[uop]:
            writes = self.writes[acc]
            following = bisect_right(writes, first)
            if following < len(writes) and writes[following] < last:
                return True
        return False
