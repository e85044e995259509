"""Strategy for rows that go through several statements with a matrix product among them: attention.

Rows are blocked, and each product gets a register tile. Operands that all rows need are packed
once, outside of the loop over row blocks.
"""

from __future__ import annotations

from math import prod

from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.staged import carried_loops
from glassgrad.ir.strides import stride, written_stride
from glassgrad.ir.uop import UOp
from glassgrad.loops.analysis.mask_bounds import MASK_ALIGNMENT
from glassgrad.loops.nest import next_axis_number
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.strategies.shared.contraction_pattern import Contraction
from glassgrad.loops.strategies.shared.cores import balanced_block_size, divide_heads
from glassgrad.loops.strategies.shared.recipe_builder import RecipeBuilder
from glassgrad.loops.strategies.shared.register_tile import choose_tile, lanes_along
from glassgrad.loops.strategies.shared.vectorize import vectorize

MAX_BLOCK_ROWS = 64  # rows; more gain nothing and fill the cache
SHARES_PER_CORE = 8  # shares per core: under a causal mask, later rows take longer
MIN_BLOCKS_PER_SHARE = 8  # row blocks per share: packing for fewer does not pay
PACKING_COST = 2.0  # cost of packing, in row blocks
MIN_BLOCK_ROWS = 24  # rows; with fewer, register tiles waste too much
MAX_ONLINE_ROWS = 48  # rows of a block whose softmax axis is strip-mined
MIN_BACKWARD_ROWS = 32  # rows of a block of the fused backward pass
MAX_BLOCK_SHRINK = 4  # equal blocks may be this many times smaller than the largest that fits
TILE_ROWS, TILE_COLUMNS = 6, 16  # of the usual register tile on AVX2


def attention_strategy(builder: RecipeBuilder) -> bool:
    """Shape row blocks with products; False, with nothing changed, if the nest has none."""
    reduced = _tile_products(builder)
    if reduced is None:
        return False
    vectorize(builder, reduced)
    return True


def _tile_products(builder: RecipeBuilder) -> set[int] | None:
    """Row blocks and register tiles: the axes of the products' reductions, which need no lanes any
    more.

    None, with nothing changed, if no product is one of several statements per row.
    """
    if not _block_rows(builder):
        return None
    outer = [r.axis for r in builder.nest.outer]
    is_backward = any(opt.op is OptOps.ATTENTION_BACKWARD for opt in builder.nest.recipe)
    heads = outer if is_backward or len(outer) == 1 else outer[:-1]
    carried = sorted({r.axis for s in builder.binders(Ops.STAGE) for r in carried_loops(s)})
    reduced: set[int] = set()
    tried: set[int] = set()
    packed: dict[tuple[int, int], None] = {}
    converted: dict[int, None] = {}
    while (product := _next_product(builder, tried)) is not None:
        tried.add(product.columns.axis)
        reduced |= {r.axis for r in product.reduce.bound}
        lanes = lanes_along(builder, product.reduce, product.columns)
        tile = choose_tile(builder, product.rows, product.columns, lanes)
        tile_axis = next_axis_number(builder.nest)
        is_tiled = builder.try_move(Opt(OptOps.UPCAST, product.columns.axis, tile.vectors * lanes))
        columns = tile_axis if is_tiled else product.columns.axis
        builder.try_move(Opt(OptOps.UPCAST, product.rows.axis, tile.rows))
        is_contiguous = (
            product.right.dtype is product.reduce.dtype
            and stride(product.right, product.columns) == 1
        )
        if product.right.src[0].op is Ops.PARAM and (carried or not is_contiguous):
            packed[product.right.src[0].arg.slot, columns] = None
        if product.left.src[0].op is Ops.PARAM and product.left.dtype is not product.reduce.dtype:
            converted[product.left.src[0].arg.slot] = None
    for slot in converted:  # convert the rows of a block once
        builder.try_move(Opt(OptOps.CACHE_READ, outer[-1], slot))
    for operand in packed:  # after all tiles are known: two products may read one operand
        for number in (heads[-1], *carried):
            if builder.try_move(Opt(OptOps.PACK, number, operand)):
                break
    divide_heads(builder, heads, outer)
    return reduced


def _block_rows(builder: RecipeBuilder) -> bool:
    """Block the rows if there are several statements per row."""
    steps = len(builder.binders(Ops.STAGE) + builder.binders(Ops.STORE))
    if not builder.nest.outer or steps < 2:
        return False
    if _fuse_backward(builder):
        return True
    axis = builder.nest.outer[-1]
    if (
        not _has_products(builder)
        or not axis.src[0].is_const
        or not _block_innermost(builder, axis)
    ):
        return False
    if len(builder.nest.outer) == 1:
        _split_into_shares(builder)
    return True


def _fuse_backward(builder: RecipeBuilder) -> bool:
    """Apply ATTENTION_BACKWARD to a matrix in scratch that is used along its rows and summed over
    them.
    """
    for stage in builder.binders(Ops.STAGE):
        if len(stage.arg) != 2 or stage.bound[:1] != stage.src[1:2]:
            continue
        (axis, *_), row_bytes = stage.bound, _scratch_bytes(builder) // stage.arg[0]
        limit = max(
            MIN_BACKWARD_ROWS, min(MAX_BLOCK_ROWS, builder.target.l2_bytes * 5 // 8 // row_bytes)
        )
        divisors = [n for n in range(2, min(limit, axis.size - 1) + 1) if axis.size % n == 0]
        rows = min(divisors, key=lambda n: _overhead(axis.size, n) + 2 / n, default=1)
        if builder.try_move(Opt(OptOps.ATTENTION_BACKWARD, axis.axis, rows)):
            return True
    return False


def _split_into_shares(builder: RecipeBuilder) -> None:
    """Split row blocks without outer loops into shares, each of which packs the common operands."""
    (axis,) = builder.nest.outer
    cores, must_divide = builder.target.cores, builder.nest.may_alias
    limit = max(MIN_BLOCKS_PER_SHARE, -(-axis.size // (SHARES_PER_CORE * cores)))
    if limit < axis.size:
        amount = balanced_block_size(axis.size, limit, cores, must_divide, PACKING_COST)
        builder.try_move(Opt(OptOps.TILE, axis.axis, amount))


def _block_innermost(builder: RecipeBuilder, axis: UOp) -> bool:
    """ROW_BLOCK; with ONLINE_SOFTMAX if too few rows fit the cache otherwise."""
    if _rows_in_cache(builder) < MIN_BLOCK_ROWS and _strip_mine_softmax(builder, axis):
        return True
    limit = max(MIN_BLOCK_ROWS, min(MAX_BLOCK_ROWS, _rows_in_cache(builder)))
    return builder.try_move(Opt(OptOps.ROW_BLOCK, axis.axis, _rows_per_block(builder, limit)))


def _strip_mine_softmax(builder: RecipeBuilder, axis: UOp) -> bool:
    """ROW_BLOCK and ONLINE_SOFTMAX; nothing is changed if the blocks do not fit the cache
    either.
    """
    before, limit = builder.nest, MAX_ONLINE_ROWS
    if len(before.outer) == 1:  # cores take shares of the row blocks
        limit = max(
            MIN_BLOCK_ROWS, min(limit, axis.size // (MIN_BLOCKS_PER_SHARE * builder.target.cores))
        )
    rows = _rows_per_block(builder, limit)
    if builder.try_move(Opt(OptOps.ROW_BLOCK, axis.axis, rows)):
        for maximum in [node for node in builder.binders(Ops.REDUCE) if node.arg is Ops.MAX]:
            softmax_axis = maximum.bound[-1]
            limit = (
                builder.target.l2_bytes // 2 * softmax_axis.size // max(_scratch_bytes(builder), 1)
            )
            amount = _softmax_block(builder, softmax_axis.size, limit)
            if builder.try_move(Opt(OptOps.ONLINE_SOFTMAX, softmax_axis.axis, amount)):
                if _scratch_bytes(builder) < builder.target.l2_bytes:
                    return True
                break  # other scratch keeps its full length
    builder.nest = before
    return False


def _softmax_block(builder: RecipeBuilder, size: int, limit: int) -> int:
    """The block size for a softmax axis: as large as `limit` allows, preferably a divisor."""
    whole = max(MASK_ALIGNMENT, limit // MASK_ALIGNMENT * MASK_ALIGNMENT)
    for amount in range(whole, whole // MAX_BLOCK_SHRINK, -MASK_ALIGNMENT):
        if size % amount == 0:
            return amount
    alignment = MASK_ALIGNMENT if builder.nest.mask_bounds else TILE_COLUMNS
    blocks = -(-size // whole)
    return -(-size // blocks // alignment) * alignment


def _has_products(builder: RecipeBuilder) -> bool:
    """True if one of several statements per row is a product with an operand that all rows
    share.
    """
    rows = builder.nest.outer[-1]
    for reduce in builder.binders(Ops.REDUCE):
        loads = builder.loads(reduce)
        has_rows = [rows in index.ranges for index in loads]
        has_columns = not reduce.ranges <= set(builder.nest.outer)
        if reduce.arg is Ops.ADD and len(loads) == 2 and sum(has_rows) == 1 and has_columns:
            return True
    return False


def _rows_in_cache(builder: RecipeBuilder) -> int:
    """The number of rows whose scratch fits half of L2."""
    return builder.target.l2_bytes // 2 // max(_scratch_bytes(builder), 1)


def _scratch_bytes(builder: RecipeBuilder) -> int:
    """The bytes of all scratch: of one row, or of a block once rows are blocked."""
    return int(sum(prod(s.arg) * s.dtype.itemsize for s in builder.binders(Ops.STAGE)))


def _rows_per_block(builder: RecipeBuilder, limit: int) -> int:
    """The number of rows up to `limit` that wastes least in partial blocks and tiles."""
    size = builder.nest.outer[-1].size
    counts = list(range(min(size, limit // 2 or 1), min(size, limit) + 1))
    if builder.nest.may_alias:
        counts = [n for n in counts if size % n == 0] or [1]
    return min(counts, key=lambda n: _overhead(size, n) + 2 / n)


def _overhead(size: int, rows: int) -> float:
    """Rows computed, in whole blocks and tiles, relative to the rows needed."""
    return -(-size // rows) * -(-rows // TILE_ROWS) * TILE_ROWS / size


def _next_product(builder: RecipeBuilder, tried: set[int]) -> Contraction | None:
    """The next matrix product whose columns have no tile yet."""
    for step in builder.binders(Ops.STAGE) + builder.binders(Ops.STORE):
        loops = [r for r in step.bound if r.kind is AxisKind.LOOP]
        columns = [r for r in loops if written_stride(step, r) == 1 and r.axis not in tried]
        for reduce in step.value.toposort(stop=_is_statement):
            if reduce.op is not Ops.REDUCE or reduce.arg is not Ops.ADD or not columns:
                continue
            loads = builder.loads(reduce)
            if len(loads) != 2:
                continue
            for left, right in (loads, loads[::-1]):
                rows = [r for r in loops if r in left.ranges and r not in right.ranges]
                wide = [r for r in columns if r in right.ranges and r not in left.ranges]
                if rows and wide:
                    return Contraction(reduce, rows[-1], wide[0], left, right)
    return None


def _is_statement(node: UOp) -> bool:
    return node.op in (Ops.STAGE, Ops.STORE)
