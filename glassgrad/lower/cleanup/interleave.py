"""Long ways to neighbouring results -> step by step beside each other.

A processor looks some 200 instructions ahead. Where every result of a tile is 50 instructions away,
one waiting for the other, it finds four ways to work on at once; side by side it finds enough.
"""

from __future__ import annotations

from collections.abc import Sequence

from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.lower.cleanup.dead_code import PURE_OPS

MAX_INTERLEAVED_CHAINS = 4  # measured; more would need more registers than there are
MIN_CHAIN_LENGTH = 16  # instructions to a result, for which it is worth it
MEMORY = frozenset((Ops.PARAM, Ops.SCRATCH))
LOAD, STORE = Ops.LOAD, Ops.STORE


def interleave(lines: Sequence[UOp], in_place: frozenset[UOp] = frozenset()) -> list[UOp]:
    """The same instructions; neighbouring ways to a STORE are taken together.

    Of what is overwritten `in_place`, every way reads only what it writes itself.
    """
    done: list[UOp] = []
    group = _ChainGroup(in_place)
    chain: list[UOp] = []
    for line in lines:
        chain.append(line)
        if line.op is STORE:
            if not group.can_add(chain):
                done += group.flush()
            group.add(chain)
            chain = []
        elif line.op not in PURE_OPS:  # the border of a loop
            done += group.flush() + chain
            chain = []
    return done + group.flush() + chain


class _ChainGroup:
    """Neighbouring ways to a STORE."""

    def __init__(self, in_place: frozenset[UOp]) -> None:
        self.in_place = in_place
        self._clear()

    def _clear(self) -> None:
        self.lines: list[UOp] = []
        self.written: set[UOp] = set()
        self.weight = 0.0

    def can_add(self, chain: list[UOp]) -> bool:
        """Is there room, and does nothing on this way read memory that others write?"""
        if self.weight >= MAX_INTERLEAVED_CHAINS:
            return False
        return not any(line.op is LOAD and _accessed_buffer(line) in self.written for line in chain)

    def add(self, chain: list[UOp]) -> None:
        self.lines += chain
        self.written |= {_accessed_buffer(chain[-1])} - self.in_place
        self.weight += min(1.0, len(chain) / MIN_CHAIN_LENGTH)

    def flush(self) -> list[UOp]:
        """What can be done first goes first; what is read is overwritten after that."""
        depth: dict[UOp, int] = {}
        read: dict[UOp, int] = {}  # memory -> when it is read last
        for line in self.lines:
            needs = [depth.get(source, 0) for source in line.src]
            if line.op is STORE:
                needs.append(read.get(_accessed_buffer(line), 0))
            depth[line] = 1 + max(needs, default=0)
            if line.op is LOAD:
                memory = _accessed_buffer(line)
                read[memory] = max(read.get(memory, 0), depth[line])
        lines = self.lines
        is_alone = sum(line.op is STORE for line in lines) < 2
        if not is_alone and max(depth.values()) >= MIN_CHAIN_LENGTH:
            lines = sorted(lines, key=depth.__getitem__)
        self._clear()
        return lines


def _accessed_buffer(access: UOp) -> UOp:
    """The buffer that a LOAD or STORE goes to."""
    node = access.src[0]
    while node.op not in MEMORY and node.src:
        node = node.src[0]
    return node
