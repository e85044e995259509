"""Wide products, such as attention scores: results much larger than their factors."""

from __future__ import annotations

from math import prod

from glassgrad.ir.stages import Target
from glassgrad.ir.uop import UOp
from glassgrad.schedule.materialize.statement import Statement
from glassgrad.schedule.movement import Indices

BLOCK_ROWS = 64  # rows of a block
MAX_DEPTH = 128  # terms of a sum that is cheaper to recompute than to read
WIDE_RATIO = 2  # times the elements of both factors
ROW_MULTIPLE = 32  # rows must be a multiple of this, so that blocks of a good size divide them


def is_wide_result(product: Statement, factors: list[frozenset[UOp]]) -> bool:
    """True if a product is so much larger than its factors that it should not be stored.

    `factors` are the ranges each factor depends on.
    """
    size = sum(prod(r.size for r in ranges) for ranges in factors)
    return prod(r.size for r in product.reduced) <= MAX_DEPTH and product.numel >= WIDE_RATIO * size


def ranges_of(indices: Indices) -> frozenset[UOp]:
    return frozenset[UOp]().union(*(index.ranges for index in indices))


def can_fuse_backward(heads: int, rows: int, target: Target) -> bool:
    """True if heads balance across cores, each handled by one, and blocks divide the rows."""
    is_balanced = heads % target.cores == 0 or heads >= 4 * target.cores
    return is_balanced and rows % ROW_MULTIPLE == 0 and rows > ROW_MULTIPLE
