"""Two axes become one: those that move together, as in a copy of a 4x4 matrix, which is a loop over
16 elements; and others where that is asked for (the JOIN move).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

from glassgrad.ir.divmod import floordiv, mod
from glassgrad.ir.facts import NOTHING
from glassgrad.ir.linear import flat
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.strides import strides_of
from glassgrad.ir.uop import UOp, make_range
from glassgrad.loops.nest import blocks_of, exchange, find_axis, is_scanned, nodes_of
from glassgrad.loops.opts import IllegalMove

NUMBERS = frozenset((Ops.CAST, Ops.CMPLT, Ops.CMPEQ, Ops.CMPNE))


def merge_axes(nest: Nest) -> Nest:
    """Join neighbouring loops as long as any can be joined."""
    while (pair := _joinable(nest)) is not None:
        nest = _join(nest, *pair)
    return nest


def join(nest: Nest, axis: UOp, other: Any, target: Target) -> Nest:
    """for a: for b: y[a, b] = …  ->  for i: y[i // n, i % n] = …, which tiles of any size fit"""
    second = find_axis(nest, other)
    is_plain = {axis.kind, second.kind} <= {AxisKind.LOOP, AxisKind.REDUCE}
    lists = [nest.outer, *[block.bound for block in blocks_of(nest.body)]]
    if axis is second or axis.kind is not second.kind or not is_plain:
        raise IllegalMove("only two plain loops are joined")
    if not second.src[0].is_const or is_scanned(nest, axis) or is_scanned(nest, second):
        raise IllegalMove("the size of an axis is not constant, or its steps are done in order")
    if not _always_neighbours(lists, (axis, second)):
        raise IllegalMove("the second loop does not always follow the first")
    return _join(nest, axis, second)


def _join(nest: Nest, first: UOp, second: UOp) -> Nest:
    """for a: for b: x[a·n + b]  ->  for i: x[i], with a = i // n and b = i % n"""
    size = second.size
    joined = make_range(first.axis, first.size * size, first.kind)
    nest = exchange(nest, second, (), mod(joined, size))
    return exchange(nest, first, (joined,), floordiv(joined, size))


def _joinable(nest: Nest) -> tuple[UOp, UOp] | None:
    lists = [block.bound for block in blocks_of(nest.body)]
    users = _users(nodes_of(nest.body))
    for bound in lists:
        for pair in pairwise(bound):
            if _always_neighbours(lists, pair) and _move_together(users, pair, nest):
                return pair
    return None


def _users(nodes: tuple[UOp, ...]) -> dict[UOp, list[UOp]]:
    """For every axis: the addresses that depend on it, and what uses it as a number."""
    users: dict[UOp, list[UOp]] = {}
    for node in nodes:
        found = node.ranges if node.op is Ops.INDEX else _used_as_numbers(node)
        for axis in found:
            users.setdefault(axis, []).append(node)
    return users


def _always_neighbours(lists: list[tuple[UOp, ...]], pair: tuple[UOp, ...]) -> bool:
    first, second = pair
    for bound in lists:
        if first in bound or second in bound:
            at = bound.index(first) if first in bound else -1
            if at < 0 or bound[at + 1 : at + 2] != (second,):
                return False
    return True


def _move_together(users: dict[UOp, list[UOp]], pair: tuple[UOp, ...], nest: Nest) -> bool:
    """Does every address see only a·n + b, and nothing else see a or b?"""
    first, second = pair
    if (first in nest.outer) != (second in nest.outer):
        return False
    if not (first.src[0].is_const and second.src[0].is_const):
        return False
    return all(
        user.op is Ops.INDEX and _address_fits(user, first, second)
        for axis in pair
        for user in users.get(axis, ())
    )


def _address_fits(index: UOp, first: UOp, second: UOp) -> bool:
    gate = index.gate
    if gate is not None and not {first, second}.isdisjoint(gate.ranges):
        return False
    if index.src[0].op is not Ops.PARAM and not {first, second}.isdisjoint(
        frozenset[UOp]().union(*(i.ranges for i in index.indices))
    ):
        return index.src[0].op is Ops.STORE and _linear_fits(index, first, second)
    return _linear_fits(index, first, second) if strides_of(index.src[0]) else True


def _linear_fits(index: UOp, first: UOp, second: UOp) -> bool:
    terms = _terms(index)
    if any(atom not in (first, second) and atom.ranges & {first, second} for atom in terms):
        return False
    return terms.get(first, 0) == terms.get(second, 0) * second.size


@lru_cache(maxsize=256)
def _terms(index: UOp) -> Mapping[UOp, int]:
    """How far each axis moves an address: asked for once for every pair of axes."""
    return flat(index.indices, strides_of(index.src[0])).terms


def _used_as_numbers(node: UOp) -> frozenset[UOp]:
    """The axes that are used as numbers here: in a stage's place, a cast, a comparison."""
    if node.op is Ops.STAGE:
        return NOTHING.union(*[index.ranges for index in node.places])
    is_number = node.op in NUMBERS and node.src[0].dtype.kind == "index"
    return node.ranges if is_number else NOTHING
