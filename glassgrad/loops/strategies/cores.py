"""Which loop is divided among cores: enough equal parts, and work that is worth waking them."""

from __future__ import annotations

from math import prod

from glassgrad.ir.ops import AxisKind
from glassgrad.loops.nest import next_number
from glassgrad.loops.opts import Opt, OptOps
from glassgrad.loops.strategies.recipe_builder import Draft

PARTS, FEWEST_PARTS = 16, 4  # of a kernel, for each core
LONG = 64  # times the work for a second core: parts of blocks are worth packing for
LEAST = 8  # tiles of rows in a part, for which a block is packed
BEGIN = 0.25  # tiles of a block that take as long as to begin with it
PRODUCT_NS = 0.03  # one product of a register tile, very roughly


def divide_tiles(draft: Draft, preferred: list[int]) -> None:
    """Cores take whole blocks of the first of these axes that has enough of them.

    Axes come in an order in which no panel is packed twice if the first is taken.
    """
    if not _is_worth(draft):
        return
    loops = {r.axis: r for r in draft.nest.outer if r.kind is AxisKind.LOOP}
    for number in preferred:
        size = loops[number].size if number in loops else 1
        if size > 1 and is_even(size, draft.target.cores):
            draft.attempt(Opt(OptOps.CORE, number))
            return


def divide_heads(draft: Draft, heads: list[int], around: list[int]) -> None:
    """Cores take steps of the first two loops, of which none shares anything with another: many
    small ones, so that what one core is late with, another does.
    """
    sizes = {r.axis: r.size for r in draft.nest.outer if r.kind is AxisKind.LOOP}
    both = [number for number in heads[:2] if number in sizes]
    is_enough = is_even(prod(sizes[number] for number in both), draft.target.cores)
    if len(both) == 2 and is_enough and _is_worth(draft):
        draft.attempt_together([Opt(OptOps.CORE, number) for number in both])
    else:
        divide_tiles(draft, around)


def divide_both(draft: Draft, outside: int, inside: int) -> int | None:
    """Cores take parts of the loop inside of every block outside: however few the blocks are, there
    is enough for all, and what one core is late with, another does. What is packed for a block is
    packed again by everyone who takes a part of it. The number of the loop over a part, if any.
    """
    loops = {r.axis: r.size for r in draft.nest.outer if r.kind is AxisKind.LOOP}
    if not _is_worth(draft, LONG) or outside not in loops or inside not in loops:
        return None
    blocks, size, number = loops[outside], loops[inside], next_number(draft.nest)
    cores = draft.target.cores
    for parts in (PARTS,) if is_even(blocks, cores) else (PARTS, FEWEST_PARTS):
        wanted = -(-parts * cores // blocks)
        fitting = [n for n in range(LEAST, size) if size % n == 0 and size // n >= wanted]
        if fitting and wanted > 1:
            cut = Opt(OptOps.TILE, inside, fitting[-1])
            both = [Opt(OptOps.CORE, outside), Opt(OptOps.CORE, inside)]
            return number if draft.attempt_together([cut, *both]) else None
    return None


def _is_worth(draft: Draft, times: int = 1) -> bool:
    """Is there so many times the work for which a second core is woken?"""
    target = draft.target
    return target.cores > 1 and draft.steps() * PRODUCT_NS >= times * target.core_work_ns


def is_even(size: int, cores: int) -> bool:
    """Do so many blocks keep all cores busy for about as long?"""
    return size % cores == 0 or size >= 4 * cores


def even_blocks(size: int, most: int, must_divide: bool, begin: float = BEGIN) -> int:
    """How many of an axis to take at a time: few blocks, of which the last one, which overlaps the
    one before, does little twice.
    """
    amounts = [n for n in range(1, most + 1) if not (must_divide and size % n)]
    return _soonest(size, amounts, 1, begin)


def shared_blocks(size: int, most: int, cores: int, must_divide: bool, begin: float = BEGIN) -> int:
    """The same, or fewer at a time: as many blocks for every core; the same if there are none."""
    fitting = [n for n in range(1, most + 1) if is_even(-(-size // n), cores)]
    fitting = [n for n in fitting if not (must_divide and size % n)]
    if fitting and 3 * fitting[-1] >= most:
        return _soonest(size, fitting, cores, begin)
    return even_blocks(size, most, must_divide, begin)


def _soonest(size: int, amounts: list[int], cores: int, begin: float) -> int:
    """With which of these amounts cores are done with an axis first."""

    def time(amount: int) -> float:
        blocks = -(-size // amount)
        return -(-blocks // cores) * (amount + begin)

    return min(amounts, key=lambda amount: (time(amount), -amount))
