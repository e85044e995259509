"""Choose the loop to divide among cores: balanced parts, and enough work to wake the cores."""

from __future__ import annotations

from math import prod

from glassgrad.ir.ops import AxisKind
from glassgrad.loops.nest import is_scanned, next_axis_number
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.strategies.shared.recipe_builder import RecipeBuilder

PARTS_PER_CORE, MIN_PARTS_PER_CORE = 16, 4  # parts of a kernel for load balance
# multiples of Target.core_work_ns that pay for packing a block once per core
NESTED_WORK_RATIO = 64
MIN_TILES_PER_PART = 8  # row tiles per part, so that packing a block pays
BLOCK_START_COST = 0.25  # cost of starting a block, in tiles
ITERATION_NS = 0.15  # estimated time of an iteration of an inner loop
PRODUCT_NS = 0.03  # estimated time of one product in a register tile


def divide_tiles(builder: RecipeBuilder, preferred: list[int]) -> None:
    """Divide the first of these axes with enough iterations among cores.

    The order of `preferred` is such that dividing the first packs no panel twice.
    """
    if not _has_enough_work(builder):
        return
    loops = {r.axis: r for r in builder.nest.outer if r.kind is AxisKind.LOOP}
    for number in preferred:
        size = loops[number].size if number in loops else 1
        if size > 1 and is_balanced(size, builder.target.cores):
            builder.try_move(Opt(OptOps.CORE, number))
            return


def divide_heads(builder: RecipeBuilder, heads: list[int], fallback: list[int]) -> None:
    """Divide the first two loops, whose iterations are independent, for dynamic load balance; else
    one of `fallback`.
    """
    sizes = {r.axis: r.size for r in builder.nest.outer if r.kind is AxisKind.LOOP}
    numbers = [number for number in heads[:2] if number in sizes]
    has_enough_parts = is_balanced(prod(sizes[number] for number in numbers), builder.target.cores)
    if len(numbers) == 2 and has_enough_parts and _has_enough_work(builder):
        builder.try_moves([Opt(OptOps.CORE, number) for number in numbers])
    else:
        divide_tiles(builder, fallback)


def divide_nested(builder: RecipeBuilder, outside: int, inside: int) -> int | None:
    """Divide the inner loop of every outer block among cores, and return the axis number of the
    loop over a part, or None.

    There are enough parts for all cores even if there are few outer blocks. Every core packs the
    operand of each block it takes part in.
    """
    loops = {r.axis: r.size for r in builder.nest.outer if r.kind is AxisKind.LOOP}
    if (
        not _has_enough_work(builder, NESTED_WORK_RATIO)
        or outside not in loops
        or inside not in loops
    ):
        return None
    blocks, size, number = loops[outside], loops[inside], next_axis_number(builder.nest)
    cores = builder.target.cores
    for parts in (
        (PARTS_PER_CORE,) if is_balanced(blocks, cores) else (PARTS_PER_CORE, MIN_PARTS_PER_CORE)
    ):
        wanted = -(-parts * cores // blocks)
        fitting = [
            n for n in range(MIN_TILES_PER_PART, size) if size % n == 0 and size // n >= wanted
        ]
        if fitting and wanted > 1:
            tiling = Opt(OptOps.TILE, inside, fitting[-1])
            both = [Opt(OptOps.CORE, outside), Opt(OptOps.CORE, inside)]
            return number if builder.try_moves([tiling, *both]) else None
    return None


def _has_enough_work(builder: RecipeBuilder, times: int = 1) -> bool:
    """True if the nest's work is at least `times` what pays for waking a second core."""
    target = builder.target
    return (
        target.cores > 1 and builder.inner_iterations() * PRODUCT_NS >= times * target.core_work_ns
    )


def is_balanced(size: int, cores: int) -> bool:
    """True if this many blocks keep all cores equally busy."""
    return size % cores == 0 or size >= 4 * cores


def block_size(
    size: int, limit: int, must_divide: bool, start_cost: float = BLOCK_START_COST
) -> int:
    """The block size with the fewest blocks whose overlapping tail repeats little."""
    amounts = [n for n in range(1, limit + 1) if not (must_divide and size % n)]
    return _fastest_amount(size, amounts, 1, start_cost)


def balanced_block_size(
    size: int, limit: int, cores: int, must_divide: bool, start_cost: float = BLOCK_START_COST
) -> int:
    """`block_size` with blocks that divide evenly among cores, if there are such."""
    amounts = [n for n in range(1, limit + 1) if is_balanced(-(-size // n), cores)]
    amounts = [n for n in amounts if not (must_divide and size % n)]
    if amounts and 3 * amounts[-1] >= limit:
        return _fastest_amount(size, amounts, cores, start_cost)
    return block_size(size, limit, must_divide, start_cost)


def _fastest_amount(size: int, amounts: list[int], cores: int, start_cost: float) -> int:
    """The block size with which the cores finish an axis first."""

    def time(amount: int) -> float:
        blocks = -(-size // amount)
        return -(-blocks // cores) * (amount + start_cost)

    return min(amounts, key=lambda amount: (time(amount), -amount))


def divide_outer_loop(builder: RecipeBuilder) -> None:
    """Divide the outermost loop with enough iterations among cores, if the nest has enough work."""
    target = builder.target
    if target.cores < 2 or builder.inner_iterations() * ITERATION_NS < target.core_work_ns:
        return
    loops = [r for r in builder.nest.outer if r.kind is AxisKind.LOOP]
    loops = [r for r in loops if not is_scanned(builder.nest, r)]
    wide = [r for r in loops if r.size >= 4 * target.cores] or [r for r in loops if r.size > 1]
    if wide:
        builder.try_move(Opt(OptOps.CORE, wide[0].axis))
