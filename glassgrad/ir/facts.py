"""Facts that follow from a node's sources: free ranges and integer bounds; and rebuilding nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from glassgrad.base.dtype import ConstType, DType, dtypes
from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.uop import UOp, toposort

NO_RANGES: frozenset[UOp] = frozenset()
RANGE = Ops.RANGE
BINDS_RANGES = frozenset((Ops.REDUCE, Ops.STAGE, Ops.STORE))


def identity(op: Ops, dtype: DType) -> ConstType:
    """The neutral element of a reduction, which its accumulator starts from."""
    if op is Ops.MAX:
        return dtypes.min(dtype)
    if op is Ops.MIN:
        return dtypes.max(dtype)
    return 1 if op is Ops.MUL else 0


def free_ranges(root: UOp) -> frozenset[UOp]:
    """The `ranges` of a node; also computed for every node under it."""
    for node in toposort((root,), stop=lambda found: found._ranges is not None):
        if node._ranges is not None:
            continue
        if node.op is RANGE:
            node._ranges = node.src[0].ranges | {node}
        elif not node.src:
            node._ranges = NO_RANGES
        elif node.op in BINDS_RANGES:
            free = NO_RANGES.union(*(source._ranges or NO_RANGES for source in node.src))
            node._ranges = free.difference(node.bound)
        elif len(node.src) == 1:
            node._ranges = node.src[0]._ranges
        else:
            node._ranges = NO_RANGES.union(*[source._ranges or NO_RANGES for source in node.src])
    return root._ranges or NO_RANGES


def rebuilt(node: UOp, done: Mapping[UOp, UOp]) -> UOp:
    """The node over its sources' replacements; the node itself if they are unchanged."""
    for source in node.src:
        if done[source] is not source:
            src = tuple([done[source] for source in node.src])
            return UOp(node.op, node.dtype, src, node.arg)
    return node


def with_sources(node: UOp, src: tuple[UOp, ...]) -> UOp:
    return UOp(node.op, node.dtype, src, node.arg)


def substitute(
    root: UOp,
    changes: dict[UOp, UOp],
    rebuild: Callable[[UOp, tuple[UOp, ...]], UOp] = with_sources,
) -> UOp:
    """The expression with some nodes replaced; what replaces them is not searched again.

    `rebuild` makes a node over other sources, and may simplify it.
    """
    done = dict(changes)
    for node in toposort((root,), stop=done.__contains__):
        if node in done or done.keys().isdisjoint(node.src):
            continue
        src = tuple([done.get(source, source) for source in node.src])
        if src != node.src:
            done[node] = rebuild(node, src)
    return done.get(root, root)


def find_bounds(root: UOp) -> tuple[Any, Any]:
    """The `bounds` of a node; also computed for the elementwise ops under it."""
    found: tuple[Any, Any] = (None, None)
    for node in toposort((root,), stop=_has_no_bounds_to_find):
        found = node._bounds or bounds(node)
        node._bounds = found
    return found  # the root is last


def _has_no_bounds_to_find(node: UOp) -> bool:
    if node._bounds is not None or node.dtype.kind == "float":
        return True
    return node.op not in OpGroup.POINTWISE


def bounds(node: UOp) -> tuple[Any, Any]:
    """(smallest, largest) possible value of an integer or bool expression."""
    if node.op is Ops.CONST:
        return node.arg, node.arg
    if node.op is Ops.RANGE:
        return 0, max(node.src[0].vmax - 1, 0)
    if node.op is Ops.VARIABLE:
        return node.arg[1], node.arg[2]
    if node.op is Ops.SPECIAL:
        return 0, node.arg[1] - 1
    is_whole = node.op in OpGroup.POINTWISE and node.dtype.kind != "float"
    found = _alu_bounds(node) if is_whole else None
    if found is None:
        return dtypes.min(node.dtype), dtypes.max(node.dtype)
    smallest, largest = found
    if smallest < dtypes.min(node.dtype) or largest > dtypes.max(node.dtype):  # it may wrap
        return dtypes.min(node.dtype), dtypes.max(node.dtype)
    return smallest, largest


def _checked_bounds(low: int, high: int, size: int) -> tuple[int, int]:
    """Bounds of a CHECK, which is 0 where its index is out of bounds. On an axis of one element it
    is not constant if it may be out of bounds, or the check would vanish.
    """
    if 0 <= low and high < size:
        return low, high
    return 0, max(min(high, size - 1), 1)


def _alu_bounds(node: UOp) -> tuple[Any, Any] | None:
    if node.src[0].dtype.kind == "float":
        return None
    low, high = node.src[0].bounds
    if node.op is Ops.CAST:
        return low, high
    if node.op is Ops.CHECK:
        return _checked_bounds(low, high, node.arg[0])
    if node.op is Ops.NEG:
        return -high, -low
    if node.op is Ops.WHERE:
        return min(node.src[1].vmin, node.src[2].vmin), max(node.src[1].vmax, node.src[2].vmax)
    if len(node.src) != 2:
        return None
    return _binary_bounds(node.op, low, high, *node.src[1].bounds)


def _binary_bounds(op: Ops, low: int, high: int, low2: int, high2: int) -> tuple[Any, Any] | None:
    """Bounds of x op y for low ≤ x ≤ high and low2 ≤ y ≤ high2."""
    if op is Ops.ADD:
        return low + low2, high + high2
    if op is Ops.SUB:
        return low - high2, high - low2
    if op is Ops.MUL:
        corners = (low * low2, low * high2, high * low2, high * high2)
        return min(corners), max(corners)
    if op is Ops.MAX:
        return max(low, low2), max(high, high2)
    if op is Ops.MIN:
        return min(low, low2), min(high, high2)
    if op in (Ops.FLOORDIV, Ops.CDIV) and low2 > 0 and (low >= 0 or op is Ops.FLOORDIV):
        corners = (low // low2, low // high2, high // low2, high // high2)
        return min(corners), max(corners)
    if op is Ops.FLOORMOD and low2 > 0:
        fits = low >= 0 and high < low2
        return (low, high) if fits else (0, high2 - 1)
    if op is Ops.CMPLT:
        return high < low2, low < high2
    if op is Ops.CMPEQ:
        return low == high == low2 == high2, not (high < low2 or high2 < low)
    if op is Ops.CMPNE:
        return high < low2 or high2 < low, not low == high == low2 == high2
    return _bit_bounds(op, low, high, low2, high2)


def _bit_bounds(op: Ops, low: int, high: int, low2: int, high2: int) -> tuple[Any, Any] | None:
    if op is Ops.AND:
        if high is True or high is False:
            return low and low2, high and high2
        return (0, min(high, high2)) if low >= 0 and low2 >= 0 else None
    if op is Ops.OR and isinstance(high, bool):
        return low or low2, high or high2
    if op is Ops.SHR and low >= 0 and 0 <= low2 and high2 < 64:
        return low >> high2, high >> low2
    if op is Ops.SHL and low >= 0 and 0 <= low2 and high2 < 64:
        return low << low2, high << high2
    return None
