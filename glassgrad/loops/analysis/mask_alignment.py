"""Pad loops over a masked axis to whole multiples of MASK_ALIGNMENT.

A row of 500 elements becomes a row of 512 whose last 12 are masked: gates keep loads in bounds, and
the mask hides the results. Aligned loops can end early (loops/analysis/mask_bounds.py), and whole
vectors divide them.
"""

from __future__ import annotations

from glassgrad.ir.divmod import less
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Nest
from glassgrad.ir.traverse import transform_nodes
from glassgrad.ir.uop import UOp, const, make_range
from glassgrad.loops.analysis.mask_bounds import MASK_ALIGNMENT, masked_loops
from glassgrad.loops.nest import nodes_of, substitute_axes

MIN_ALIGNED_BLOCKS = 3  # in shorter rows, padding costs more than ending early saves


def align_masked_loops(nest: Nest, row: UOp) -> Nest:
    """for j in 500: s[j] = x[j] seen from row i  ->  for j in 512: s[j] = x[j] if j < 500 else 0"""
    loops, distance = masked_loops(nest.body, row, 1, alignment=1)
    unaligned = [
        r for r in loops if r.size % MASK_ALIGNMENT and r.size > MIN_ALIGNED_BLOCKS * MASK_ALIGNMENT
    ]
    # the mask hides the padding from all rows
    unaligned = [r for r in unaligned if row.size - 1 + distance <= r.size]
    if not unaligned:
        return nest
    padded = {
        r: make_range(r.axis, -(-r.size // MASK_ALIGNMENT) * MASK_ALIGNMENT, r.kind)
        for r in unaligned
    }
    aligned = substitute_axes(nest, {r: ((wide,), wide) for r, wide in padded.items()})
    return _grow_scratch(aligned, {wide: r.size for r, wide in padded.items()})


def _grow_scratch(nest: Nest, sizes: dict[UOp, int]) -> Nest:
    """Enlarge scratch to the padded sizes; gate accesses to other memory."""

    def grow(node: UOp, rebuilt: UOp) -> UOp:
        if node.op is Ops.STAGE:
            pairs = zip(node.arg, node.scratch_indices, strict=True)
            return rebuilt.replace(arg=tuple([max(n, _padded_size(i, sizes)) for n, i in pairs]))
        return _gate_index(node, rebuilt, sizes) if node.op is Ops.INDEX else rebuilt

    body = transform_nodes(nodes_of(nest.body), grow)[nest.body]
    return Nest(body, nest.outer, nest.may_alias, nest.mask_bounds, nest.recipe)


def _padded_size(index: UOp, sizes: dict[UOp, int]) -> int:
    return index.size if index in sizes else 0


def _gate_index(before: UOp, index: UOp, sizes: dict[UOp, int]) -> UOp:
    """The INDEX, gated by the original sizes where it is not into grown scratch."""
    base = before.src[0]
    written = base.scratch_indices if base.op is Ops.STAGE else ()
    for number, read in enumerate(before.indices):
        if number < len(written) and written[number] in sizes:
            continue
        for r in [r for r in sizes if r in read.ranges]:
            valid = less(r, const(sizes[r]))
            gate = valid if index.gate is None else index.gate & valid
            index = index.src[0].index(*index.indices, gate=gate)
    return index
