"""Long float sums -> blocks: each block has a fresh accumulator, which is added to a total.

A float32 accumulator that adds n terms one by one is off by up to n roundings, and stops growing
once a term is below half an ulp. Blocks bound the error by MAX_BLOCK_STEPS roundings for sums of
any length; lower/reduce/accumulators.py keeps the total in float64 where it can.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from glassgrad.base.dtype import DType, dtypes
from glassgrad.ir.linear import add, scale
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.reindex import reindex
from glassgrad.ir.stages import Target
from glassgrad.ir.traverse import transform
from glassgrad.ir.uop import UOp, make_range
from glassgrad.lower.scope import loops_of

# additions to one accumulator; starting and ending a block costs some 100 cycles
MAX_BLOCK_STEPS = 2048
MIN_BLOCK_FRACTION = 8  # blocks below 1/8 of the maximum would make that cost noticeable
MAX_CHAINS = 8  # accumulators that keep the adders busy; more only cost registers
BINDERS = frozenset((Ops.REDUCE, Ops.STAGE, Ops.STORE, Ops.SCAN))


def needs_blocks(node: UOp) -> bool:
    """True for float sums, whose rounding errors accumulate."""
    return node.arg is Ops.ADD and node.dtype.kind == "float"


def chain_count(results: int, steps: int) -> int:
    """How many accumulators per result alternate, so that additions overlap with few results."""
    return min(steps, max(1, MAX_CHAINS // results))


def _max_block_steps(node: UOp) -> int:
    """Loop iterations in a block: each adds all unrolled steps of a chain."""
    results, steps = [
        prod(r.size for r in ranges if r.kind in (AxisKind.UPCAST, AxisKind.UNROLL))
        for ranges in (node.ranges, node.bound)
    ]
    return max(1, MAX_BLOCK_STEPS * chain_count(results, steps) // steps)


def split_loops_at_blocks(node: UOp) -> tuple[Sequence[UOp], Sequence[UOp]]:
    """(loops over blocks, loops of one block); the former is empty for a short sum."""
    loops, max_steps = loops_of(node.bound), _max_block_steps(node)
    steps, first = 1, len(loops)
    while first and steps * loops[first - 1].size <= max_steps:
        first -= 1
        steps *= loops[first].size
    return (loops[:first], loops[first:]) if first < len(loops) else ((), loops)


def total_dtype(dtype: DType, target: Target) -> DType:
    """The dtype that block sums are added up in."""
    has_wide = dtypes.float64 in target.dtypes and not target.has_threads
    return dtypes.float64 if has_wide and dtype is dtypes.float32 else dtype


def strip_mine_sums(body: UOp) -> UOp:
    """sum over n -> sum over n/2000 blocks of 2000 steps, if no existing loop is a block"""
    splits = _find_splits(body)
    if not splits:
        return body
    number = max(node.axis for node in body.toposort() if node.op is Ops.RANGE) + 1
    pieces = {r: _pieces(r, steps, number + 2 * i) for i, (r, steps) in enumerate(splits.items())}

    def split(node: UOp, current: UOp) -> UOp:
        for r in node.bound if node.op is Ops.REDUCE else ():
            if r in pieces:
                current = _split_reduction(current, r, pieces[r])
        return current

    return transform(body, split)


def _find_splits(body: UOp) -> dict[UOp, int]:
    """Loops of sums that are too long for a block -> the iterations of a block."""
    nodes = body.toposort()
    bound_elsewhere = {
        r for n in nodes if n.op in BINDERS and n.op is not Ops.REDUCE for r in n.bound
    }
    splits: dict[UOp, int] = {}
    for node in nodes:
        if node.op is not Ops.REDUCE or not needs_blocks(node):
            continue
        loops, max_steps = loops_of(node.bound), _max_block_steps(node)
        if prod(r.size for r in loops) <= max_steps:
            continue
        blocks, block = split_loops_at_blocks(node)
        steps = prod(r.size for r in block) if blocks else 1
        longest = blocks[-1] if blocks else loops[-1]
        can_split = (
            longest.src[0].is_const and longest not in bound_elsewhere and max_steps // steps > 1
        )
        if steps * MIN_BLOCK_FRACTION < max_steps and can_split:
            splits.setdefault(longest, _even_block(longest.size, max_steps // steps))
    return splits


def _even_block(size: int, max_steps: int) -> int:
    """Iterations of a block: the largest divisor of the size, unless such blocks were short."""
    fewest = max(1, max_steps // MIN_BLOCK_FRACTION)
    return next((n for n in range(max_steps, fewest, -1) if size % n == 0), max_steps)


LoopPiece = tuple[tuple[UOp, ...], UOp]  # loops, and the value of the split range in them


def _pieces(r: UOp, steps: int, number: int) -> list[LoopPiece]:
    """The loops over whole blocks, and the remainder loop, if any."""
    blocks, remainder = divmod(r.size, steps)
    outer, inner = make_range(r.axis, blocks, r.kind), make_range(number, steps, r.kind)
    main: LoopPiece = ((outer, inner), add(scale(outer, steps), inner))
    if not remainder:
        return [main]
    last = make_range(number + 1, remainder, r.kind)
    return [main, ((last,), add(last, blocks * steps))]


def _split_reduction(reduce: UOp, r: UOp, pieces: list[LoopPiece]) -> UOp:
    """sum over r -> sum over the blocks of r, plus sum over the remainder"""
    parts: list[UOp] = []
    for loops, value_of_range in pieces:
        bound = tuple([new for old in reduce.bound for new in (loops if old is r else (old,))])
        value = reindex(reduce.value, {r: value_of_range})
        parts.append(UOp(Ops.REDUCE, reduce.dtype, (value, *bound), reduce.arg))
    return parts[0] if len(parts) == 1 else parts[0].alu(reduce.arg, parts[1])
