"""Which loop is divided among cores: enough equal parts, and work that is worth waking them."""

from __future__ import annotations

from glassgrad.ir.ops import AxisKind
from glassgrad.loops.draft import Draft
from glassgrad.loops.opts import Opt, OptOps

PRODUCT_NS = 0.03  # one product of a register tile, very roughly


def divide_tiles(draft: Draft, preferred: list[int]) -> None:
    """Cores take whole blocks of the first of these axes that has enough of them.

    Axes come in an order in which no panel is packed twice if the first is taken.
    """
    target = draft.target
    if target.cores < 2 or draft.steps() * PRODUCT_NS < target.core_work_ns:
        return
    loops = {r.axis: r for r in draft.nest.outer if r.kind is AxisKind.LOOP}
    for number in preferred:
        size = loops[number].size if number in loops else 1
        if size > 1 and is_even(size, target.cores):
            draft.attempt(Opt(OptOps.CORE, number))
            return


def is_even(size: int, cores: int) -> bool:
    """Do so many blocks keep all cores busy for about as long?"""
    return size % cores == 0 or size >= 4 * cores


def even_blocks(size: int, most: int, must_divide: bool) -> int:
    """How many of an axis to take at a time: blocks of one size, if nearly as large as allowed."""
    dividing = max(n for n in range(1, most + 1) if size % n == 0)
    if must_divide or 4 * dividing >= 3 * most:
        return dividing
    return -(-size // -(-size // most))  # as many blocks, of which the last one overlaps least


def shared_blocks(size: int, most: int, cores: int, must_divide: bool) -> int:
    """The same, or fewer at a time: as many blocks for every core; the same if there are none."""
    fitting = [n for n in range(1, most + 1) if is_even(-(-size // n), cores)]
    fitting = [n for n in fitting if not must_divide or size % n == 0]
    if fitting and 3 * fitting[-1] >= most:
        return -(-size // -(-size // fitting[-1]))  # as many blocks, which overlap least
    return even_blocks(size, most, must_divide)
