"""Long float sums -> blocks: each block has a fresh accumulator, whose sum is added to a total.

One float32 accumulator that takes n terms one after the other is off by up to n roundings, and
stops growing once a term is below half an ulp of it. Blocks bound the error by BLOCK_STEPS
roundings however long a sum is: lower/reduce/accumulators.py keeps the total in float64 where it
can.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from glassgrad.base.dtype import DType, dtypes
from glassgrad.ir.facts import rebuilt
from glassgrad.ir.linear import add, scale
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.reindex import reindex
from glassgrad.ir.stages import Target
from glassgrad.ir.uop import UOp, make_range
from glassgrad.lower.scope import loops_of

MAX_BLOCK_STEPS = 2048  # additions to one accumulator: a block's start and end cost some 100 cycles
MIN_BLOCK_FRACTION = 8  # a block that is shorter by this factor would let that cost be felt
MAX_CHAINS = 8  # accumulators that keep the adders busy; more only cost registers
BINDERS = frozenset((Ops.REDUCE, Ops.STAGE, Ops.STORE, Ops.SCAN))


def needs_blocks(node: UOp) -> bool:
    """Does rounding of a running value add up in this reduction?"""
    return node.arg is Ops.ADD and node.dtype.kind == "float"


def chain_count(results: int, steps: int) -> int:
    """How many accumulators take turns with the unrolled steps of a sum, so that additions overlap
    where there are few results.
    """
    return min(steps, max(1, MAX_CHAINS // results))


def _max_block_steps(node: UOp) -> int:
    """Steps of loops in a block: each adds all unrolled steps of a chain to its accumulator."""
    results, steps = [
        prod(r.size for r in ranges if r.kind in (AxisKind.UPCAST, AxisKind.UNROLL))
        for ranges in (node.ranges, node.bound)
    ]
    return max(1, MAX_BLOCK_STEPS * chain_count(results, steps) // steps)


def split_loops_at_blocks(node: UOp) -> tuple[Sequence[UOp], Sequence[UOp]]:
    """The loops over blocks, and the loops of one block; the former are none in a short sum."""
    loops, most = loops_of(node.bound), _max_block_steps(node)
    steps, first = 1, len(loops)
    while first and steps * loops[first - 1].size <= most:
        first -= 1
        steps *= loops[first].size
    return (loops[:first], loops[first:]) if first < len(loops) else ((), loops)


def total_dtype(dtype: DType, target: Target) -> DType:
    """What the sums of blocks are added up in."""
    has_wide = dtypes.float64 in target.dtypes and not target.has_threads
    return dtypes.float64 if has_wide and dtype is dtypes.float32 else dtype


def strip_mine_sums(body: UOp) -> UOp:
    """sum over n  ->  sum over n/2000 blocks of 2000 steps, where no loop is a block as it is"""
    splits = _find_splits(body)
    if not splits:
        return body
    number = max(node.axis for node in body.toposort() if node.op is Ops.RANGE) + 1
    pieces = {r: _pieces(r, steps, number + 2 * i) for i, (r, steps) in enumerate(splits.items())}
    done: dict[UOp, UOp] = {}
    for node in body.toposort():
        done[node] = rebuilt(node, done)
        for r in node.bound if node.op is Ops.REDUCE else ():
            if r in pieces:
                done[node] = _split_reduction(done[node], r, pieces[r])
    return done[body]


def _find_splits(body: UOp) -> dict[UOp, int]:
    """Loops of sums that are too long for a block -> how many steps of them are one."""
    nodes = body.toposort()
    kept = {r for n in nodes if n.op in BINDERS and n.op is not Ops.REDUCE for r in n.bound}
    splits: dict[UOp, int] = {}
    for node in nodes:
        if node.op is not Ops.REDUCE or not needs_blocks(node):
            continue
        loops, most = loops_of(node.bound), _max_block_steps(node)
        if prod(r.size for r in loops) <= most:
            continue
        blocks, block = split_loops_at_blocks(node)
        steps = prod(r.size for r in block) if blocks else 1
        longest = blocks[-1] if blocks else loops[-1]
        is_free = longest.src[0].is_const and longest not in kept and most // steps > 1
        if steps * MIN_BLOCK_FRACTION < most and is_free:
            splits.setdefault(longest, _even_block(longest.size, most // steps))
    return splits


def _even_block(size: int, most: int) -> int:
    """Steps in a block: the most that leave no rest, unless such blocks were short."""
    fewest = max(1, most // MIN_BLOCK_FRACTION)
    return next((n for n in range(most, fewest, -1) if size % n == 0), most)


LoopPiece = tuple[tuple[UOp, ...], UOp]  # loops, and the value of the range that they stand for


def _pieces(r: UOp, steps: int, number: int) -> list[LoopPiece]:
    """The blocks of a loop, and the steps that are left over, if any."""
    blocks, rest = divmod(r.size, steps)
    outer, inner = make_range(r.axis, blocks, r.kind), make_range(number, steps, r.kind)
    main: LoopPiece = ((outer, inner), add(scale(outer, steps), inner))
    if not rest:
        return [main]
    last = make_range(number + 1, rest, r.kind)
    return [main, ((last,), add(last, blocks * steps))]


def _split_reduction(reduce: UOp, r: UOp, pieces: list[LoopPiece]) -> UOp:
    """sum over r  ->  sum over blocks of r, plus sum over the rest"""
    parts: list[UOp] = []
    for loops, place in pieces:
        bound = tuple([new for old in reduce.bound for new in (loops if old is r else (old,))])
        value = reindex(reduce.value, {r: place})
        parts.append(UOp(Ops.REDUCE, reduce.dtype, (value, *bound), reduce.arg))
    return parts[0] if len(parts) == 1 else parts[0].alu(reduce.arg, parts[1])
