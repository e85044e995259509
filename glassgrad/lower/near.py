"""What is needed behind a long sum is asked for before it: which places get a PREFETCH.

A tile of a matrix product reads and writes a few lines of memory when its sums are done, each of
them in another row: nothing has brought them near, and a core would wait for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from glassgrad.ir.linear import Linear
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Target
from glassgrad.ir.uop import UOp
from glassgrad.lower.scope import loops_of
from glassgrad.lower.streaming import divisor

LONG = 64  # steps of a sum that take as long as memory


def needed_behind_sums(stores: list[UOp], target: Target) -> dict[UOp, bool]:
    """INDEXes that are far away until long sums are done -> are they written to?

    What is stored together waits together: also what needs no sum itself.
    """
    if target.has_threads:
        return {}  # others have work while one waits
    values = [store.src[1].toposort(stop=_is_computed_before) for store in stores]
    nodes = [node for own in values for node in own]
    if not any(_is_long(node) or _is_kept(node) for node in nodes):
        return {}
    found = {node.src[0]: False for node in nodes if node.op is Ops.LOAD}
    found |= {store.src[0]: True for store in stores}
    return {index: is_written for index, is_written in found.items() if is_far(index, target)}


def lines_of(
    place: Linear, itemsize: int, steps: Sequence[Mapping[UOp, int]], target: Target
) -> Sequence[Mapping[UOp, int]]:
    """Those of the steps that reach another line of memory than all before them."""
    away = {atom: factor for atom, factor in place.terms.items() if atom not in steps[0]}
    if divisor(Linear(away, place.constant)) * itemsize % target.line_bytes:
        return steps  # lines may begin anywhere
    found: dict[int, Mapping[UOp, int]] = {}
    for step in steps:
        offset = sum([factor * step.get(atom, 0) for atom, factor in place.terms.items()])
        found.setdefault(offset * itemsize // target.line_bytes, step)
    return list(found.values())


def loops_behind_sums(stores: list[UOp]) -> tuple[UOp, ...]:
    """The innermost loops of stores, if their long sums are all in scratch when these begin."""
    sums = [node for store in stores for node in store.src[1].toposort() if _is_kept(node)]
    inside = {r for kept in sums for r in kept.ranges}
    found: list[UOp] = []
    for r in reversed(loops_of(stores[0].bound) if sums else ()):
        if r in inside:
            break
        found.append(r)
    return tuple(found[::-1])


def _is_kept(node: UOp) -> bool:
    """Is it scratch for the sums of a tile?"""
    if node.op is not Ops.STAGE or not _is_long(node.src[0]):
        return False
    return all(r.kind.is_unrolled for r in node.bound)


def _is_computed_before(node: UOp) -> bool:
    return node.op in (Ops.REDUCE, Ops.STAGE)


def _is_long(node: UOp) -> bool:
    if node.op is not Ops.REDUCE:
        return False
    return any(r.kind is AxisKind.REDUCE and r.size >= LONG for r in node.bound)


def is_far(index: UOp, target: Target) -> bool:
    """Is it a place in memory that is too large for the near caches, and read in any case?"""
    buffer = index.src[0]
    if buffer.op is not Ops.PARAM or index.gate is not None:
        return False
    nbytes: int = buffer.arg.numel * buffer.dtype.itemsize
    return nbytes > target.l2_bytes
