"""Neighbouring dependency chains -> interleaved, to give out-of-order cores parallel work.

A core looks some 200 instructions ahead. Where each result of a tile ends a chain of 50 dependent
instructions, that window holds four chains; interleaved, it holds enough independent work.
"""

from __future__ import annotations

from collections.abc import Sequence

from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.lower.cleanup.dead_code import PURE_OPS

MAX_INTERLEAVED_CHAINS = 4  # measured; more chains need more registers than there are
MIN_CHAIN_LENGTH = 16  # instructions; shorter chains overlap anyway
MEMORY = frozenset((Ops.PARAM, Ops.SCRATCH))
LOAD, STORE = Ops.LOAD, Ops.STORE


def interleave(lines: Sequence[UOp], in_place: frozenset[UOp] = frozenset()) -> list[UOp]:
    """The same instructions; the chains that end in neighbouring STOREs are interleaved.

    Of buffers that are overwritten `in_place`, every chain reads only what it writes itself.
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
        elif line.op not in PURE_OPS:  # a loop begins or ends
            done += group.flush() + chain
            chain = []
    return done + group.flush() + chain


class _ChainGroup:
    """Neighbouring chains, each of which ends in a STORE."""

    def __init__(self, in_place: frozenset[UOp]) -> None:
        self.in_place = in_place
        self._clear()

    def _clear(self) -> None:
        self.lines: list[UOp] = []
        self.written: set[UOp] = set()
        self.weight = 0.0

    def can_add(self, chain: list[UOp]) -> bool:
        """True if the group has space and the chain reads no memory that another one writes."""
        if self.weight >= MAX_INTERLEAVED_CHAINS:
            return False
        return not any(line.op is LOAD and _accessed_buffer(line) in self.written for line in chain)

    def add(self, chain: list[UOp]) -> None:
        self.lines += chain
        self.written |= {_accessed_buffer(chain[-1])} - self.in_place
        self.weight += min(1.0, len(chain) / MIN_CHAIN_LENGTH)

    def flush(self) -> list[UOp]:
        """The instructions by depth: a store waits for the loads of what it overwrites."""
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
    """The buffer that a LOAD or STORE accesses."""
    node = access.src[0]
    while node.op not in MEMORY and node.src:
        node = node.src[0]
    return node
