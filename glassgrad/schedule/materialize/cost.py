"""The cost of recomputing a value against keeping it: nanoseconds and bytes per element."""

from __future__ import annotations

from collections.abc import Container, Iterable
from math import prod
from typing import NamedTuple

from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.uop import UOp

# Nanoseconds, measured on two AVX2 cores together: arithmetic is cheap, memory is not.
BYTE_NS = 0.04  # one byte to or from memory
CACHED_BYTE_NS = 0.01  # one byte to or from a cache
LOAD_NS = 0.03  # one load from the cache
LAUNCH_NS = 2_000.0  # the least cost of one more kernel
MAX_COST = 1e6  # cap of the fields of a Cost, which grow without bound in deep graphs
MAX_EXPRESSION_OPS = 400  # a value of more ops is materialized, so that kernels stay compilable

OP_NS: dict[Ops, float] = dict.fromkeys(OpGroup.POINTWISE, 0.015)
OP_NS |= {Ops.EXP2: 0.15, Ops.LOG2: 0.2, Ops.SIN: 0.5, Ops.POW: 0.6, Ops.THREEFRY: 0.8}
OP_NS |= {Ops.SQRT: 0.1, Ops.RECIPROCAL: 0.1, Ops.FDIV: 0.1}
OP_NS |= {Ops.FLOORDIV: 0.4, Ops.FLOORMOD: 0.4}
OP_NS |= {Ops.CMPLT: 0.01, Ops.CMPEQ: 0.01, Ops.CMPNE: 0.01, Ops.CAST: 0.01, Ops.WHERE: 0.01}

# Instructions per expanded function: the cost for the compiler.
EXPANDED_OPS = {Ops.EXP2: 12.0, Ops.LOG2: 20.0, Ops.SIN: 60.0, Ops.POW: 60.0, Ops.THREEFRY: 80.0}


class Cost(NamedTuple):
    """The cost of one element computed from memory: time, bytes read, ops.

    `loads` counts the reads; `largest` is the size of the largest of them, in bytes.
    """

    ns: float = 0.0
    bytes: float = 0.0
    ops: float = 0.0
    loads: float = 0.0
    largest: float = 0.0


NO_COST = Cost()
NO_PARTS: frozenset[UOp] = frozenset()


class Costs:
    """The cost per element of every node, where materialized values are read and all others
    computed.

    A subexpression shared within a pointwise expression counts once. Behind movement it is read at
    other indices and counts again. Where a small value is repeated, its bytes come from the cache.
    """

    def __init__(self, materialized: Container[UOp]) -> None:
        self.materialized = materialized
        self.of: dict[UOp, Cost] = {}
        self._parts: dict[UOp, frozenset[UOp]] = {}
        self._own_cost: dict[UOp, Cost] = {}  # of one node without its sources

    def add_leaf(self, node: UOp) -> None:
        self.of[node], self._parts[node] = NO_COST, NO_PARTS

    def add(self, node: UOp) -> Cost:
        """The cost of a node whose sources have been added."""
        if node.op in OpGroup.POINTWISE:
            own = Cost(OP_NS[node.op], ops=EXPANDED_OPS.get(node.op, 1.0))
            widest = max(node.src, key=self._width)
            parts, costs = self._parts_under(widest), [own, self._cost(widest, node)]
            for source in node.src:
                other = self._parts_under(source)
                if not other <= parts:
                    costs += [self._part_cost(part, node) for part in other - parts]
                    parts |= other
            found = _total(costs)
        else:
            own = found = _total([self._cost(source, node) for source in node.src])
            parts = NO_PARTS
        self._own_cost[node], self._parts[node], self.of[node] = own, parts | {node}, found
        return found

    def _parts_under(self, source: UOp) -> frozenset[UOp]:
        return frozenset((source,)) if source in self.materialized else self._parts[source]

    def _width(self, source: UOp) -> int:
        return 1 if source in self.materialized else len(self._parts[source])

    def _cost(self, source: UOp, reader: UOp) -> Cost:
        """The cost to a reader of a source and all that it is computed from."""
        if source in self.materialized:
            return _repeated(_read(source), source, reader)
        return _repeated(self.of[source], source, reader)

    def _part_cost(self, part: UOp, reader: UOp) -> Cost:
        return _repeated(
            _read(part) if part in self.materialized else self._own_cost[part], part, reader
        )


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
    return Cost(
        min(ns, MAX_COST), min(moved, MAX_COST), min(ops, MAX_COST), min(loads, MAX_COST), largest
    )


def is_worth_materializing(
    node: UOp, cost: Cost, evaluations: float, readers: int, is_cached: bool = False
) -> bool:
    """True if computing an element `evaluations` times costs more than writing it once and reading
    it.

    Each reader loads its elements from memory once; `is_cached` readers find them in the cache. A
    reader that recomputes the value mostly needs its largest source anyway.
    """
    extra_bytes_read = (readers - 1) * (cost.bytes - cost.largest)
    bytes_of_keeping = (1 + readers) * node.dtype.itemsize
    extra_ns = (evaluations - 1) * (cost.ns + (cost.loads - 1) * LOAD_NS)
    saved = extra_ns + (extra_bytes_read - bytes_of_keeping) * (
        CACHED_BYTE_NS if is_cached else BYTE_NS
    )
    return bool(saved * prod(node.shape) > LAUNCH_NS)
