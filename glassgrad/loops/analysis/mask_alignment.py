"""Loops over places that a mask hides from all rows beyond their end -> loops of whole grains.

A row of 500 places is a row of 512 of which it sees none of the last 12: memory is not touched
there, and whatever comes of them is hidden like everything behind the row. Loops of whole grains
can end early (loops/analysis/mask_bounds.py), and whole vectors divide them.
"""

from __future__ import annotations

from glassgrad.ir.divmod import less
from glassgrad.ir.facts import rebuilt
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Nest
from glassgrad.ir.uop import UOp, const, make_range
from glassgrad.loops.analysis.mask_bounds import GRAIN, hidden_loops
from glassgrad.loops.nest import exchange_all, nodes_of

FEWEST_GRAINS = 3  # in shorter rows, what is added is more than what is saved


def lengthen(nest: Nest, row: UOp) -> Nest:
    """for j in 500: s[j] = x[j] seen from row i  ->  for j in 512: s[j] = x[j] if j < 500 else 0"""
    loops, distance = hidden_loops(nest.body, row, 1, grain=1)
    short = [r for r in loops if r.size % GRAIN and r.size > FEWEST_GRAINS * GRAIN]
    short = [r for r in short if row.size - 1 + distance <= r.size]  # no row sees beyond the end
    if not short:
        return nest
    longer = {r: make_range(r.axis, -(-r.size // GRAIN) * GRAIN, r.kind) for r in short}
    changed = exchange_all(nest, {r: ((long,), long) for r, long in longer.items()})
    return _with_room(changed, {long: r.size for r, long in longer.items()})


def _with_room(nest: Nest, sizes: dict[UOp, int]) -> Nest:
    """Scratch has room for all places; other memory is left alone beyond what there is."""
    done: dict[UOp, UOp] = {}
    for node in nodes_of(nest.body):
        same = rebuilt(node, done)
        if node.op is Ops.STAGE:
            places = node.places
            shape = [max(n, _room(place, sizes)) for n, place in zip(node.arg, places, strict=True)]
            same = same.replace(arg=tuple(shape))
        elif node.op is Ops.INDEX:
            same = _guarded(node, same, sizes)
        done[node] = same
    return Nest(done[nest.body], nest.outer, nest.rewrites, nest.limits, nest.recipe)


def _room(place: UOp, sizes: dict[UOp, int]) -> int:
    return place.size if place in sizes else 0


def _guarded(before: UOp, index: UOp, sizes: dict[UOp, int]) -> UOp:
    """An INDEX that holds only for places that there are."""
    base = before.src[0]
    kept = base.places if base.op is Ops.STAGE else ()
    for number, place in enumerate(before.indices):
        if number < len(kept) and kept[number] in sizes:
            continue
        for r in [r for r in sizes if r in place.ranges]:
            valid = less(r, const(sizes[r]))
            gate = valid if index.gate is None else index.gate & valid
            index = index.src[0].index(*index.indices, gate=gate)
    return index
