"""Two groups -> may row blocks pass through both? profitability.py asks, fusion.py fuses."""

from __future__ import annotations

from math import prod

from glassgrad.ir.linear import ZERO
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Target
from glassgrad.ir.uop import UOp
from glassgrad.schedule.fuse.groups import FusionGroup, Loop, is_scanned, loop_size
from glassgrad.schedule.materialize.statement import Statement
from glassgrad.schedule.materialize.wide_products import BLOCK_ROWS, is_wide_result, ranges_of

MIN_OUTER_ITERATIONS = 16  # with fewer outer iterations, cores and registers are idle
SINGLE_CORE_BYTES = 1 << 16  # bytes of a value for which one core is fast enough


def has_contraction(group: FusionGroup) -> bool:
    """True if the group has a contraction, which needs a register tile of its own."""
    return any(s.is_contraction and s.loops > SINGLE_CORE_BYTES for s in group.statements)


def can_block_rows(
    first: FusionGroup, second: FusionGroup, shared: list[Loop], target: Target
) -> bool:
    """True if row blocks can pass both groups: intermediates in scratch, and what all rows need of
    each product in the cache.
    """
    if not shared or target.has_threads or not (has_contraction(first) or has_contraction(second)):
        return False
    rows, size = shared[-1], prod(loop_size(loop) for loop in shared)
    if (
        any(is_scanned(loop) or not _has_constant_size(loop) for loop in shared)
        or loop_size(rows) < MIN_OUTER_ITERATIONS
    ):
        return False
    if size < BLOCK_ROWS * 2 * target.cores:
        return False  # too few row blocks for all cores
    statements = first.statements + second.statements
    inner = {s: sum(r is not ZERO for r in s.axes) - len(shared) for s in statements}
    products = [s for s in statements if s.is_contraction]
    if any(inner[s] != 1 or _ends_with_shared(s, shared) for s in products):
        return False  # only the columns may be inside
    if not all(_has_tile_axes(s, rows[s]) for s in products):
        return False
    is_wide = any(is_wide_product(s) for s in products)
    row_bytes = sum(s.numel * s.node.dtype.itemsize for s in statements if inner[s]) / size
    if row_bytes * MIN_OUTER_ITERATIONS > target.l3_bytes / 4 / target.cores and not is_wide:
        return False
    return all(
        _operands_fit_cache(s, [loop[s] for loop in shared], is_wide, target) for s in products
    )


def is_wide_product(statement: Statement) -> bool:
    """True if the statement is a contraction with a wide result."""
    return statement.is_contraction and is_wide_result(statement, _factor_ranges(statement))


def _factor_ranges(product: Statement) -> list[frozenset[UOp]]:
    return [ranges_of(indices) for accesses in product.reads.values() for indices in accesses]


def _ends_with_shared(statement: Statement, shared: list[Loop]) -> bool:
    """True if the last axis of a statement is a shared loop."""
    last = max(axis for axis, r in enumerate(statement.axes) if r is not ZERO)
    return any(loop[statement] == last for loop in shared)


def _has_tile_axes(product: Statement, rows_axis: int) -> bool:
    """True if one factor lacks the columns and another the rows, as a register tile needs."""
    rows, columns = product.axes[rows_axis], [r for r in product.axes if r is not ZERO][-1]
    have = _factor_ranges(product)
    return any(
        rows in first - second and columns in second - first for first in have for second in have
    )


def _has_constant_size(loop: Loop) -> bool:
    """True if the loop's size is known before launch."""
    statement, axis = next(iter(loop.items()))
    return statement.axes[axis].src[0].is_const


def _operands_fit_cache(
    product: Statement, shared: list[int], is_wide: bool, target: Target
) -> bool:
    """True if the operands that all rows need fit the cache, or differ per outer iteration.

    Operands of one outer iteration are packed once and read from L3; without outer loops, once per
    core's share of rows, which pays if a wide product is not stored. They may then exceed any
    cache: the wide product would be larger still.
    """
    *outer, rows = [product.axes[axis] for axis in shared]
    has_shares = bool(outer) or is_wide
    for value, accesses in product.reads.items():
        for indices in accesses:
            ranges = ranges_of(indices)
            if rows in ranges:
                continue
            nbytes = value.dtype.itemsize * prod(r.size for r in ranges.difference(outer))
            is_private = has_shares and ranges.issuperset(r for r in outer if r.op is Ops.RANGE)
            limit = target.l3_bytes / 4 / target.cores if is_private else target.l2_bytes / 2
            if nbytes > limit and not (is_private and is_wide):
                return False
    return True
