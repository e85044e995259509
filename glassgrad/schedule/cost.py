"""What recomputing a value costs against keeping it: nanoseconds and bytes per element."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.uop import UOp

BYTE_NS = 0.02  # moving one byte to or from memory
LAUNCH_NS = 2_000.0  # what one more kernel costs at least
MOST_OPS = 400  # a value made of more ops than this is kept: kernels stay compilable

OP_NS: dict[Ops, float] = dict.fromkeys(OpGroup.POINTWISE, 0.04)
OP_NS |= {Ops.EXP2: 0.3, Ops.LOG2: 0.4, Ops.SIN: 0.8, Ops.POW: 0.8, Ops.THREEFRY: 1.5}
OP_NS |= {Ops.SQRT: 0.15, Ops.RECIPROCAL: 0.15, Ops.FDIV: 0.15}
OP_NS |= {Ops.FLOORDIV: 0.5, Ops.FLOORMOD: 0.5}
OP_NS |= {Ops.CMPLT: 0.01, Ops.CMPEQ: 0.01, Ops.CMPNE: 0.01, Ops.CAST: 0.02, Ops.WHERE: 0.02}


class Cost(NamedTuple):
    """Computing one element from what is in memory: time, bytes read, ops."""

    ns: float
    bytes: float
    ops: float

    @property
    def total(self) -> float:
        return self.ns + self.bytes * BYTE_NS


NOTHING = Cost(0.0, 0.0, 0.0)


def read_cost(value: UOp, reader: UOp) -> Cost:
    """Reading a kept value: smaller values are read again from the cache."""
    share = min(1.0, (prod(value.shape) or 1) / (prod(reader.shape) or 1))
    return Cost(0.0, value.dtype.itemsize * share, 0.0)


def elements_cost(node: UOp, costs: dict[UOp, Cost], kept: dict[UOp, object]) -> Cost:
    """Computing one element of this node, where kept values are read and all others computed."""
    ns, moved, ops = OP_NS.get(node.op, 0.0), 0.0, float(node.op in OpGroup.POINTWISE)
    for source in node.src:
        cost = read_cost(source, node) if source in kept else costs[source]
        ns, moved, ops = ns + cost.ns, moved + cost.bytes, ops + cost.ops
    return Cost(min(ns, 1e6), min(moved, 1e6), min(ops, 1e6))


def worth_keeping(node: UOp, cost: Cost, evaluations: float) -> bool:
    """Is computing an element `evaluations` times dearer than writing it once and reading it?"""
    extra = evaluations - 1
    if extra <= 0:
        return False
    saved = extra * cost.total - (1 + evaluations) * node.dtype.itemsize * BYTE_NS
    return bool(saved * prod(node.shape) > LAUNCH_NS)
