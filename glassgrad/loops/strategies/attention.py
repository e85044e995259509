"""Recipes for rows that go through several steps with a matrix product among them: attention.

A block of rows goes through all steps together. Each product has a tile of its own; an operand that
all rows need is packed once, outside of the loop over blocks.
"""

from __future__ import annotations

from math import prod

from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.staged import carried_over
from glassgrad.ir.strides import stride, written_stride
from glassgrad.ir.uop import UOp
from glassgrad.loops.analysis.contraction_pattern import Contraction
from glassgrad.loops.analysis.mask_bounds import GRAIN
from glassgrad.loops.nest import next_number
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.strategies.cores import divide_heads, shared_blocks
from glassgrad.loops.strategies.recipe_builder import Draft
from glassgrad.loops.strategies.register_tile import choose_tile, lanes_along

MOST_ROWS = 64
SHARES = 8  # of rows for each core: below a mask, later ones take longer
FEW_BLOCKS = 8  # are not worth packing something for them alone
PACKING = 2.0  # blocks that take as long as that
FEWEST_ROWS = 24
CARRIED_ROWS = 48
FEWEST_SWEPT = 32
FEWEST_BLOCKED = 4  # equal blocks are worth being so many times smaller than they may be
TILE_ROWS, TILE_COLUMNS = 6, 16


def rows_recipe(draft: Draft) -> set[int] | None:
    """Blocks of rows and tiles; None, and nothing done, if no product is one of several steps.

    Else the axes of those sums, which need no lanes any more.
    """
    if not _go_in_blocks(draft):
        return None
    around = [r.axis for r in draft.nest.outer]
    is_swept = any(opt.op is OptOps.SWEEP for opt in draft.nest.recipe)
    heads = around if is_swept or len(around) == 1 else around[:-1]
    carrying = sorted({r.axis for s in draft.blocks(Ops.STAGE) for r in carried_over(s)})
    done: set[int] = set()
    tried: set[int] = set()
    packed: dict[tuple[int, int], None] = {}
    narrow: dict[int, None] = {}
    while (found := _next_product(draft, tried)) is not None:
        tried.add(found.columns.axis)
        done |= {r.axis for r in found.reduce.bound}
        lanes = lanes_along(draft, found.reduce, found.columns)
        tile = choose_tile(draft, found.rows, found.columns, lanes)
        registers = next_number(draft.nest)
        is_tile = draft.attempt(Opt(OptOps.UPCAST, found.columns.axis, tile.vectors * lanes))
        columns = registers if is_tile else found.columns.axis
        draft.attempt(Opt(OptOps.UPCAST, found.rows.axis, tile.rows))
        is_ready = (
            found.right.dtype is found.reduce.dtype and stride(found.right, found.columns) == 1
        )
        if found.right.src[0].op is Ops.PARAM and (carrying or not is_ready):
            packed[found.right.src[0].arg.slot, columns] = None
        if found.left.src[0].op is Ops.PARAM and found.left.dtype is not found.reduce.dtype:
            narrow[found.left.src[0].arg.slot] = None
    for slot in narrow:  # rows of a block are converted once
        draft.attempt(Opt(OptOps.WINDOW, around[-1], slot))
    for operand in packed:  # now that all tiles are known: products may read one in two ways
        for number in (heads[-1], *carrying):
            if draft.attempt(Opt(OptOps.STAGE, number, operand)):
                break
    divide_heads(draft, heads, around)
    return done


def _go_in_blocks(draft: Draft) -> bool:
    """Blocks of rows, if there are several steps for each."""
    steps = len(draft.blocks(Ops.STAGE) + draft.blocks(Ops.STORE))
    if not draft.nest.outer or steps < 2:
        return False
    if _sweep(draft):
        return True
    axis = draft.nest.outer[-1]
    if not _has_products(draft) or not axis.src[0].is_const or not _block(draft, axis):
        return False
    if len(draft.nest.outer) == 1:
        _share(draft)
    return True


def _sweep(draft: Draft) -> bool:
    """Blocks of rows of a plane in scratch, which is used along its rows and across."""
    for stage in draft.blocks(Ops.STAGE):
        if len(stage.arg) != 2 or stage.bound[:1] != stage.src[1:2]:
            continue
        (axis, *_), kept = stage.bound, _kept_bytes(draft) // stage.arg[0]
        most = max(FEWEST_SWEPT, min(MOST_ROWS, draft.target.l2_bytes * 5 // 8 // kept))
        fitting = [n for n in range(2, min(most, axis.size - 1) + 1) if axis.size % n == 0]
        rows = min(fitting, key=lambda n: _waste(axis.size, n) + 2 / n, default=1)
        if draft.attempt(Opt(OptOps.SWEEP, axis.axis, rows)):
            return True
    return False


def _share(draft: Draft) -> None:
    """Blocks of rows without loops around them in shares: what all rows need is packed for each."""
    (axis,) = draft.nest.outer
    cores, must_divide = draft.target.cores, draft.nest.rewrites
    most = max(FEW_BLOCKS, -(-axis.size // (SHARES * cores)))
    if most < axis.size:
        amount = shared_blocks(axis.size, most, cores, must_divide, PACKING)
        draft.attempt(Opt(OptOps.TILE, axis.axis, amount))


def _block(draft: Draft, axis: UOp) -> bool:
    """Blocks of rows; where too few rows fit, what each is made of goes by in blocks as well."""
    if _fitting(draft) < FEWEST_ROWS and _carry(draft, axis):
        return True
    most = max(FEWEST_ROWS, min(MOST_ROWS, _fitting(draft)))
    return draft.attempt(Opt(OptOps.BLOCK, axis.axis, _rows(draft, most)))


def _carry(draft: Draft, axis: UOp) -> bool:
    """Blocks of rows and of a maximum's axis; nothing is done if they do not fit a cache either."""
    before, most = draft.nest, CARRIED_ROWS
    if len(before.outer) == 1:  # cores take shares of the blocks of rows
        most = max(FEWEST_ROWS, min(most, axis.size // (FEW_BLOCKS * draft.target.cores)))
    rows = _rows(draft, most)
    if draft.attempt(Opt(OptOps.BLOCK, axis.axis, rows)):
        for found in [node for node in draft.blocks(Ops.REDUCE) if node.arg is Ops.MAX]:
            along = found.bound[-1]
            most = draft.target.l2_bytes // 2 * along.size // max(_kept_bytes(draft), 1)
            places = _places(draft, along.size, most)
            if draft.attempt(Opt(OptOps.CARRY, along.axis, places)):
                if _kept_bytes(draft) < draft.target.l2_bytes:
                    return True
                break  # something else that is kept is as long as it was
    draft.nest = before
    return False


def _places(draft: Draft, size: int, most: int) -> int:
    """Of a long axis, as many places at a time as there may be; equal blocks if there are any."""
    whole = max(GRAIN, most // GRAIN * GRAIN)
    for amount in range(whole, whole // FEWEST_BLOCKED, -GRAIN):
        if size % amount == 0:
            return amount
    grain = GRAIN if draft.nest.limits else TILE_COLUMNS
    blocks = -(-size // whole)
    return -(-size // blocks // grain) * grain


def _has_products(draft: Draft) -> bool:
    """Does a sum of products need something that all rows need, in one of several steps?"""
    rows = draft.nest.outer[-1]
    for reduce in draft.blocks(Ops.REDUCE):
        loads = draft.loads(reduce)
        has_rows = [rows in index.ranges for index in loads]
        has_columns = not reduce.ranges <= set(draft.nest.outer)
        if reduce.arg is Ops.ADD and len(loads) == 2 and sum(has_rows) == 1 and has_columns:
            return True
    return False


def _fitting(draft: Draft) -> int:
    """How many rows fit half of the second cache with all that is kept of them."""
    return draft.target.l2_bytes // 2 // max(_kept_bytes(draft), 1)


def _kept_bytes(draft: Draft) -> int:
    """Of all scratch: of one row, or of a block of rows once there are blocks."""
    return int(sum(prod(s.arg) * s.dtype.itemsize for s in draft.blocks(Ops.STAGE)))


def _rows(draft: Draft, most: int) -> int:
    """So many rows or a little fewer: whole blocks, in whole tiles."""
    size = draft.nest.outer[-1].size
    counts = list(range(min(size, most // 2 or 1), min(size, most) + 1))
    if draft.nest.rewrites:
        counts = [n for n in counts if size % n == 0] or [1]
    return min(counts, key=lambda n: _waste(size, n) + 2 / n)


def _waste(size: int, rows: int) -> float:
    """How much more is done than needed: blocks of so many rows, in tiles of the usual height."""
    return -(-size // rows) * -(-rows // TILE_ROWS) * TILE_ROWS / size


def _next_product(draft: Draft, tried: set[int]) -> Contraction | None:
    """One whose columns have no tile yet."""
    for step in draft.blocks(Ops.STAGE) + draft.blocks(Ops.STORE):
        loops = [r for r in step.bound if r.kind is AxisKind.LOOP]
        columns = [r for r in loops if written_stride(step, r) == 1 and r.axis not in tried]
        for reduce in step.value.toposort(stop=_is_step):
            if reduce.op is not Ops.REDUCE or reduce.arg is not Ops.ADD or not columns:
                continue
            loads = draft.loads(reduce)
            if len(loads) != 2:
                continue
            for left, right in (loads, loads[::-1]):
                rows = [r for r in loops if r in left.ranges and r not in right.ranges]
                wide = [r for r in columns if r in right.ranges and r not in left.ranges]
                if rows and wide:
                    return Contraction(reduce, rows[-1], wide[0], left, right)
    return None


def _is_step(node: UOp) -> bool:
    return node.op in (Ops.STAGE, Ops.STORE)
