"""Strategy for sums accumulated in memory: column sums, and products of a few rows with a matrix.

The matrix is streamed once in memory order, and the sums of a stretch of its columns stay in cache.
"""

from __future__ import annotations

from glassgrad.base.fast_dataclasses import frozen
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.strides import stride
from glassgrad.ir.uop import UOp
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.strategies.shared.cores import divide_outer_loop, is_balanced
from glassgrad.loops.strategies.shared.recipe_builder import RecipeBuilder
from glassgrad.loops.strategies.shared.register_tile import REFERENCE_REGISTERS
from glassgrad.loops.strategies.shared.vectorize import vectorize

UNROLLED_ROWS = range(8, 3, -1)  # rows added in registers before their sum goes to memory
LOOP_ROWS = 16  # the same with a loop over the rows
LOOP_VECTORS = 2  # vectors of columns per iteration then: neighbours share cache lines
MIN_ACCUMULATIONS = 8  # accumulations into memory, at least
MIN_COLUMNS = 64  # columns of a block, at least
MAX_RESULTS_PER_PASS = 8  # results that share a pass over the matrix: one register each
MAX_PASSES = 2  # passes over the matrix for more results
# rows of a float sum: every accumulation in memory rounds, so errors grow with the rows
MAX_FLOAT_ROWS = 1 << 14


@frozen
class ColumnSum:
    """A reduction, the loop over results that share its input, and the columns it is contiguous
    along.
    """

    reduce: UOp
    results: UOp | None
    columns: UOp

    @property
    def results_per_pass(self) -> int:
        """How many results share one pass over the input."""
        return 1 if self.results is None else _results_per_pass(self.results)


def column_sum_strategy(builder: RecipeBuilder) -> bool:
    """Shape sums accumulated in memory; False, with nothing changed, if the nest has none."""
    reduced = accumulate_columns(builder)
    if reduced is None:
        return False
    vectorize(builder, reduced)
    divide_outer_loop(builder)
    return True


def accumulate_columns(builder: RecipeBuilder) -> set[int] | None:
    """Accumulate column sums in memory: the axes of reductions that stay loops.

    None, with nothing changed, if the nest has no such sum.
    """
    found = _find(builder)
    if found is None:
        return None
    in_loop = _accumulate_in_loop(builder, found)
    return _accumulate_unrolled(builder, found) if in_loop is None else in_loop


def _accumulate_unrolled(builder: RecipeBuilder, found: ColumnSum) -> set[int] | None:
    """A few unrolled rows per iteration, whose factors stay in registers."""
    (axis,) = found.reduce.bound
    tile = _column_block(builder, found, builder.target.l2_bytes // 4, 1)
    rows = next(n for n in UNROLLED_ROWS if axis.size % n == 0)
    if not _accumulate(builder, found, tile, rows):
        return None
    (added,) = builder.binders(Ops.REDUCE)
    builder.try_move(Opt(OptOps.UNROLL, added.bound[0].axis, rows))
    return set()


def _accumulate_in_loop(builder: RecipeBuilder, found: ColumnSum) -> set[int] | None:
    """More rows per iteration in a loop, for targets whose registers cannot hold the factors of
    unrolled rows.
    """
    (axis,), target = found.reduce.bound, builder.target
    width = LOOP_VECTORS * builder.lanes(found.reduce)
    tile = _column_block(builder, found, target.l1_bytes, width)
    fits_registers = (
        found.results_per_pass * UNROLLED_ROWS[0] <= target.registers
        or target.registers <= REFERENCE_REGISTERS
    )
    if fits_registers or axis.size % LOOP_ROWS or tile % width:
        return None
    if not _accumulate(builder, found, tile, LOOP_ROWS):
        return None
    (added,) = builder.binders(Ops.REDUCE)
    (store,) = [binder for binder in builder.binders(Ops.STORE) if binder.value is added]
    builder.try_move(Opt(OptOps.UPCAST, store.bound[-1].axis, width))
    return {added.bound[0].axis}


def _accumulate(builder: RecipeBuilder, found: ColumnSum, tile: int, rows: int) -> bool:
    """ACCUMULATE `rows` at a time, in blocks of `tile` columns."""
    moves = [Opt(OptOps.ACCUMULATE, found.reduce.bound[0].axis, rows)]
    if tile < found.columns.size:
        moves.insert(0, Opt(OptOps.TILE, found.columns.axis, tile))
    if found.results is not None:
        moves.insert(0, Opt(OptOps.UPCAST, found.results.axis, found.results_per_pass))
    return builder.try_moves(moves)


def _find(builder: RecipeBuilder) -> ColumnSum | None:
    reduces, outer = builder.binders(Ops.REDUCE), builder.nest.outer
    if len(reduces) != 1 or len(reduces[0].bound) != 1 or not outer:
        return None
    (reduce,), columns = reduces, outer[-1]
    (axis,) = reduce.bound
    wide = [index for index in builder.loads(reduce) if columns in index.ranges]
    if not wide or any(stride(index, columns) != 1 or stride(index, axis) == 1 for index in wide):
        return None
    is_even = any(axis.size % n == 0 for n in UNROLLED_ROWS)
    if (
        not is_even
        or axis.size < MIN_ACCUMULATIONS * UNROLLED_ROWS[0]
        or columns.size < MIN_COLUMNS
    ):
        return None
    if axis.size > MAX_FLOAT_ROWS and reduce.dtype.kind == "float":
        return None
    shared = [r for r in outer[:-1] if all(r not in index.ranges for index in wide)]
    if not shared:
        return ColumnSum(reduce, None, columns)
    is_large = axis.size * columns.size * reduce.dtype.itemsize > builder.target.l2_bytes
    is_plain = shared[0].kind is AxisKind.LOOP and shared[0].src[0].is_const
    is_skinny = len(outer) == 2 and shared[0].size <= MAX_PASSES * _results_per_pass(shared[0])
    return ColumnSum(reduce, shared[0], columns) if is_large and is_plain and is_skinny else None


def _results_per_pass(results: UOp) -> int:
    """The most results that share a pass; only divisors, as nothing may be added twice."""
    return max(n for n in range(1, MAX_RESULTS_PER_PASS + 1) if results.size % n == 0)


def _column_block(builder: RecipeBuilder, found: ColumnSum, cache_bytes: int, width: int) -> int:
    """The columns per block: as many as have their sums in `cache_bytes`, in equal multiples of a
    width, balanced among cores.
    """
    columns, cores = found.columns.size, builder.target.cores
    loops = [r for r in builder.nest.outer[:-1] if r.size > MAX_RESULTS_PER_PASS]
    columns_in_cache = cache_bytes // found.reduce.dtype.itemsize // found.results_per_pass
    limit = min(columns_in_cache, columns if loops else -(-columns // cores))
    counts = [n for n in range(1, columns // MIN_COLUMNS + 1) if columns % (n * width) == 0]
    counts_in_cache = [n for n in counts if columns // n <= limit]
    balanced = [n for n in counts_in_cache if loops or is_balanced(n, cores)]
    return columns // next(iter(balanced or counts_in_cache), 1)
