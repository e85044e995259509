"""What recomputing a value costs against keeping it: nanoseconds and bytes per element."""

from __future__ import annotations

from collections.abc import Container, Iterable
from math import prod
from typing import NamedTuple

from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.uop import UOp

# Measured on two AVX2 cores together: arithmetic is cheap, memory is not.
BYTE_NS = 0.04  # moving one byte to or from memory
CACHED_BYTE_NS = 0.01
LOAD_NS = 0.03  # from the cache
LAUNCH_NS = 2_000.0  # what one more kernel costs at least
MOST = 1e6  # sums over deep graphs would grow without end
MOST_OPS = 400  # a value made of more ops than this is kept: kernels stay compilable

OP_NS: dict[Ops, float] = dict.fromkeys(OpGroup.POINTWISE, 0.015)
OP_NS |= {Ops.EXP2: 0.15, Ops.LOG2: 0.2, Ops.SIN: 0.5, Ops.POW: 0.6, Ops.THREEFRY: 0.8}
OP_NS |= {Ops.SQRT: 0.1, Ops.RECIPROCAL: 0.1, Ops.FDIV: 0.1}
OP_NS |= {Ops.FLOORDIV: 0.4, Ops.FLOORMOD: 0.4}
OP_NS |= {Ops.CMPLT: 0.01, Ops.CMPEQ: 0.01, Ops.CMPNE: 0.01, Ops.CAST: 0.01, Ops.WHERE: 0.01}

# How many instructions functions become: what they cost the compiler.
OPS = {Ops.EXP2: 12.0, Ops.LOG2: 20.0, Ops.SIN: 60.0, Ops.POW: 60.0, Ops.THREEFRY: 80.0}


class Cost(NamedTuple):
    """Computing one element from what is in memory: time, bytes read, ops.

    `loads` counts the reads, and `largest` is the largest of them, in bytes.
    """

    ns: float = 0.0
    bytes: float = 0.0
    ops: float = 0.0
    loads: float = 0.0
    largest: float = 0.0


NOTHING = Cost()
NO_PARTS: frozenset[UOp] = frozenset()


class Costs:
    """What an element of each node costs, where kept values are read and all others computed.

    A value that several parts of an expression use is computed once, so its distinct parts are
    added up. Behind a movement the same value is met at another place, and counts again. Where a
    small value is repeated, its bytes come from the cache.
    """

    def __init__(self, kept: Container[UOp]) -> None:
        self.kept = kept
        self.of: dict[UOp, Cost] = {}
        self._parts: dict[UOp, frozenset[UOp]] = {}
        self._own: dict[UOp, Cost] = {}  # of a part alone

    def add_leaf(self, node: UOp) -> None:
        self.of[node], self._parts[node] = NOTHING, NO_PARTS

    def add(self, node: UOp) -> Cost:
        """The cost of a node whose sources were added before."""
        if node.op in OpGroup.POINTWISE:
            own = Cost(OP_NS[node.op], ops=OPS.get(node.op, 1.0))
            widest = max(node.src, key=self._width)
            parts, costs = self._parts_of(widest), [own, self._cost(widest, node)]
            for source in node.src:
                other = self._parts_of(source)
                if not other <= parts:
                    costs += [self._alone(part, node) for part in other - parts]
                    parts |= other
            found = _total(costs)
        else:
            own = found = _total([self._cost(source, node) for source in node.src])
            parts = NO_PARTS
        self._own[node], self._parts[node], self.of[node] = own, parts | {node}, found
        return found

    def _parts_of(self, source: UOp) -> frozenset[UOp]:
        return frozenset((source,)) if source in self.kept else self._parts[source]

    def _width(self, source: UOp) -> int:
        return 1 if source in self.kept else len(self._parts[source])

    def _cost(self, source: UOp, reader: UOp) -> Cost:
        """What a reader pays for a source and all that it is made of."""
        if source in self.kept:
            return _repeated(_read(source), source, reader)
        return _repeated(self.of[source], source, reader)

    def _alone(self, part: UOp, reader: UOp) -> Cost:
        return _repeated(_read(part) if part in self.kept else self._own[part], part, reader)


def _read(value: UOp) -> Cost:
    size = value.dtype.itemsize
    return Cost(bytes=size, loads=1.0, largest=size)


def _repeated(cost: Cost, value: UOp, reader: UOp) -> Cost:
    if not cost.bytes or value.shape == reader.shape:
        return cost
    share = min(1.0, (prod(value.shape) or 1) / (prod(reader.shape) or 1))
    ns, moved, ops, loads, largest = cost
    return Cost(ns, moved * share, ops, loads * share, largest * share)


def _total(costs: Iterable[Cost]) -> Cost:
    ns = moved = ops = loads = largest = 0.0
    for more_ns, more_moved, more_ops, more_loads, size in costs:
        ns, moved, ops, loads = ns + more_ns, moved + more_moved, ops + more_ops, loads + more_loads
        largest = max(largest, size)
    return Cost(min(ns, MOST), min(moved, MOST), min(ops, MOST), min(loads, MOST), largest)


def worth_keeping(
    node: UOp, cost: Cost, evaluations: float, readers: int, is_near: bool = False
) -> bool:
    """Is computing an element `evaluations` times dearer than writing it once and reading it?

    Each reader comes past its elements in memory once; after that they are in the cache, and near
    readers find them there anyway. Who computes it again mostly needs one of its sources for
    something else, too.
    """
    bytes_again = (readers - 1) * (cost.bytes - cost.largest)
    bytes_kept = (1 + readers) * node.dtype.itemsize
    ns_again = (evaluations - 1) * (cost.ns + (cost.loads - 1) * LOAD_NS)
    saved = ns_again + (bytes_again - bytes_kept) * (CACHED_BYTE_NS if is_near else BYTE_NS)
    return bool(saved * prod(node.shape) > LAUNCH_NS)
