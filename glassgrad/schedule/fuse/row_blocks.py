"""May matrix products share a kernel with other steps? Where blocks of rows go through them all."""

from __future__ import annotations

from math import prod

from glassgrad.ir.linear import ZERO
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Target
from glassgrad.ir.uop import UOp
from glassgrad.schedule.fuse.groups import Cluster, Loop, is_scanned, loop_size
from glassgrad.schedule.kernels.movement import Indices
from glassgrad.schedule.materialize.statement import Statement

FEW = 16  # fewer outer iterations than this leave cores and registers idle
SMALL_BYTES = 1 << 16  # below this, nobody minds one core
MOST_ROWS = 64  # in a block
DEEPEST = 128  # terms in a sum that is cheaper than reading its result
WIDER = 2  # times as many elements as both factors together


def contracts(cluster: Cluster) -> bool:
    """Is there a contraction, whose register tile wants the loops for itself?"""
    return any(s.is_contraction and s.loops > SMALL_BYTES for s in cluster.statements)


def go_in_blocks(one: Cluster, two: Cluster, shared: list[Loop], target: Target) -> bool:
    """Could blocks of rows go through both, with what is between them in scratch, and with what
    all rows need of each product in the cache?
    """
    if not shared or target.has_threads or not (contracts(one) or contracts(two)):
        return False
    rows, size = shared[-1], prod(loop_size(loop) for loop in shared)
    if any(is_scanned(loop) or not _is_fixed(loop) for loop in shared) or loop_size(rows) < FEW:
        return False
    if size < MOST_ROWS * 2 * target.cores:
        return False  # too few blocks to keep all cores busy
    statements = one.statements + two.statements
    inner = {s: sum(r is not ZERO for r in s.axes) - len(shared) for s in statements}
    products = [s for s in statements if s.is_contraction]
    if any(inner[s] != 1 or _ends_with(s, shared) for s in products):
        return False  # columns are inside, and nothing else
    if not all(_is_tiled(s, rows[s]) for s in products):
        return False
    has_wide = any(has_plane(s) for s in products)
    row = sum(s.numel * s.node.dtype.itemsize for s in statements if inner[s]) / size
    if row * FEW > target.l3_bytes / 4 / target.cores and not has_wide:
        return False
    return all(_stay_near(s, [loop[s] for loop in shared], has_wide, target) for s in products)


def is_wide(product: Statement, factors: list[frozenset[UOp]]) -> bool:
    """Is a result so much larger than what it is made of that it should not be in memory?

    Factors are the ranges that each depends on.
    """
    size = sum(prod(r.size for r in ranges) for ranges in factors)
    return prod(r.size for r in product.reduced) <= DEEPEST and product.numel >= WIDER * size


def has_plane(statement: Statement) -> bool:
    """Is it a wide product?"""
    return statement.is_contraction and is_wide(statement, _factors(statement))


def _factors(product: Statement) -> list[frozenset[UOp]]:
    return [ranges_of(indices) for places in product.reads.values() for indices in places]


def _ends_with(statement: Statement, shared: list[Loop]) -> bool:
    """Is the last axis of a statement one of these loops?"""
    last = max(axis for axis, r in enumerate(statement.axes) if r is not ZERO)
    return any(loop[statement] == last for loop in shared)


def _is_tiled(product: Statement, rows_axis: int) -> bool:
    """Does one factor lack the columns and another the rows, as a register tile wants?"""
    rows, columns = product.axes[rows_axis], [r for r in product.axes if r is not ZERO][-1]
    have = _factors(product)
    return any(rows in one - two and columns in two - one for one in have for two in have)


def ranges_of(indices: Indices) -> frozenset[UOp]:
    return frozenset[UOp]().union(*(index.ranges for index in indices))


def _is_fixed(loop: Loop) -> bool:
    """Is its size known before launch?"""
    statement, axis = next(iter(loop.items()))
    return statement.axes[axis].src[0].is_const


def _stay_near(product: Statement, shared: list[int], has_wide: bool, target: Target) -> bool:
    """Are operands that all rows need small, or other ones for every step of the loops around?

    Those are packed once, and blocks of rows read them from a cache further away; without loops
    around, once for a core's share of the rows, which pays if something wide is not written. Then
    they may also be too large for any cache: what is wide would be larger still.
    """
    *around, rows = [product.axes[axis] for axis in shared]
    has_shares = bool(around) or has_wide
    for value, places in product.reads.items():
        for indices in places:
            ranges = ranges_of(indices)
            if rows in ranges:
                continue
            size = value.dtype.itemsize * prod(r.size for r in ranges.difference(around))
            is_own = has_shares and ranges.issuperset(r for r in around if r.op is Ops.RANGE)
            most = target.l3_bytes / 4 / target.cores if is_own else target.l2_bytes / 2
            if size > most and not (is_own and has_wide):
                return False
    return True
