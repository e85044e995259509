"""Coalesce two loops into one: where addresses see only a·n + b, or where COALESCE asks for it.

A copy of a 4x4 matrix becomes one loop over 16 elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

from glassgrad.ir.divmod import floordiv, mod
from glassgrad.ir.facts import NO_RANGES
from glassgrad.ir.linear import flat
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.strides import strides_of
from glassgrad.ir.uop import UOp, make_range
from glassgrad.loops.nest import binders_of, find_axis, is_scanned, nodes_of, substitute_axis
from glassgrad.loops.opts import IllegalMove

NUMERIC_USES = frozenset((Ops.CAST, Ops.CMPLT, Ops.CMPEQ, Ops.CMPNE))


def coalesce_loops(nest: Nest) -> Nest:
    """Coalesce adjacent loops until no pair qualifies."""
    while (pair := _find_pair(nest)) is not None:
        nest = _coalesce(nest, *pair)
    return nest


def coalesce(nest: Nest, axis: UOp, other: Any, target: Target) -> Nest:
    """for a: for b: y[a, b] = …  ->  for i: y[i // n, i % n] = …

    Tiles of any size fit the longer loop.
    """
    second = find_axis(nest, other)
    is_plain = {axis.kind, second.kind} <= {AxisKind.LOOP, AxisKind.REDUCE}
    loop_lists = [nest.outer, *[binder.bound for binder in binders_of(nest.body)]]
    if axis is second or axis.kind is not second.kind or not is_plain:
        raise IllegalMove("COALESCE needs two plain loops of the same kind")
    if not second.src[0].is_const or is_scanned(nest, axis) or is_scanned(nest, second):
        raise IllegalMove("the inner size is not constant, or a scan runs over an axis")
    if not _are_always_adjacent(loop_lists, (axis, second)):
        raise IllegalMove("the two loops are not adjacent in every statement")
    return _coalesce(nest, axis, second)


def _coalesce(nest: Nest, first: UOp, second: UOp) -> Nest:
    """for a: for b: x[a·n + b]  ->  for i: x[i], with a = i // n and b = i % n"""
    size = second.size
    fused = make_range(first.axis, first.size * size, first.kind)
    nest = substitute_axis(nest, second, (), mod(fused, size))
    return substitute_axis(nest, first, (fused,), floordiv(fused, size))


def _find_pair(nest: Nest) -> tuple[UOp, UOp] | None:
    loop_lists = [binder.bound for binder in binders_of(nest.body)]
    users = _uses_of_axes(nodes_of(nest.body))
    for bound in loop_lists:
        for pair in pairwise(bound):
            if _are_always_adjacent(loop_lists, pair) and _have_common_stride(users, pair, nest):
                return pair
    return None


def _uses_of_axes(nodes: tuple[UOp, ...]) -> dict[UOp, list[UOp]]:
    """For every axis: the addresses that depend on it and the nodes that use it as a number."""
    users: dict[UOp, list[UOp]] = {}
    for node in nodes:
        found = node.ranges if node.op is Ops.INDEX else _numeric_axes(node)
        for axis in found:
            users.setdefault(axis, []).append(node)
    return users


def _are_always_adjacent(loop_lists: list[tuple[UOp, ...]], pair: tuple[UOp, ...]) -> bool:
    first, second = pair
    for bound in loop_lists:
        if first in bound or second in bound:
            at = bound.index(first) if first in bound else -1
            if at < 0 or bound[at + 1 : at + 2] != (second,):
                return False
    return True


def _have_common_stride(users: dict[UOp, list[UOp]], pair: tuple[UOp, ...], nest: Nest) -> bool:
    """True if every address depends on the two axes only as a·n + b, and nothing else uses them."""
    first, second = pair
    if (first in nest.outer) != (second in nest.outer):
        return False
    if not (first.src[0].is_const and second.src[0].is_const):
        return False
    return all(
        user.op is Ops.INDEX and _is_flat_address(user, first, second)
        for axis in pair
        for user in users.get(axis, ())
    )


def _is_flat_address(index: UOp, first: UOp, second: UOp) -> bool:
    gate = index.gate
    if gate is not None and not {first, second}.isdisjoint(gate.ranges):
        return False
    if index.src[0].op is not Ops.PARAM and not {first, second}.isdisjoint(
        frozenset[UOp]().union(*(i.ranges for i in index.indices))
    ):
        return index.src[0].op is Ops.STORE and _has_flat_strides(index, first, second)
    return _has_flat_strides(index, first, second) if strides_of(index.src[0]) else True


def _has_flat_strides(index: UOp, first: UOp, second: UOp) -> bool:
    terms = _address_terms(index)
    if any(atom not in (first, second) and atom.ranges & {first, second} for atom in terms):
        return False
    return terms.get(first, 0) == terms.get(second, 0) * second.size


@lru_cache(maxsize=256)
def _address_terms(index: UOp) -> Mapping[UOp, int]:
    """The stride of each axis in the flat address; cached because every pair of axes asks."""
    return flat(index.indices, strides_of(index.src[0])).terms


def _numeric_axes(node: UOp) -> frozenset[UOp]:
    """The axes used as numbers here: in the index of a STAGE, a cast or a comparison."""
    if node.op is Ops.STAGE:
        return NO_RANGES.union(*[index.ranges for index in node.scratch_indices])
    is_number = node.op in NUMERIC_USES and node.src[0].dtype.kind == "index"
    return node.ranges if is_number else NO_RANGES
