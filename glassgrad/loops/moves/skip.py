"""SKIP: steps of a sum that only add zeros are left out, as those that see what is around an image.

In sum(x[i + k - 1] * w[k]), with x 0 outside, the first place sees no k = 0, and the last one not
the last k. A loop over k begins and ends where some place of a tile sees something; if no other
loop counts, the load says which places are there: steps that are written out leave out the others.

0 times anything counts as 0, as in any convolution that skips.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.divmod import all_of, conditions_of, floordiv, is_limit
from glassgrad.ir.linear import ZERO, Linear, add, build, linear, maximum, minimum, scale, sub
from glassgrad.ir.ops import Ops
from glassgrad.ir.reindex import reindex
from glassgrad.ir.staged import added_over, carried_over
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.uop import UOp, const, make_range
from glassgrad.loops.nest import exchange, only_sum
from glassgrad.loops.opts import IllegalMove

FACTORS = frozenset((Ops.MUL, Ops.CAST, Ops.LOAD))  # of a product: it is 0 where one of them is


class Seen(NamedTuple):
    """The steps of an axis that may add something."""

    begin: UOp
    end: UOp


def skip(nest: Nest, axis: UOp, arg: Any, target: Target) -> Nest:
    """for k in 3: s += x[i + k - 1] * w[k]  ->  for k from 1 - i on, up to n - i: s += …"""
    reduce = only_sum(nest, axis)
    loads = _factors(reduce.value)
    loops = frozenset([r for r in reduce.ranges if not r.kind.is_unrolled])
    steps = Seen(ZERO, const(axis.size))
    for load in loads:
        for condition in _conditions(load):
            steps = _shorter(steps, condition, axis, loops)
    if steps == (ZERO, const(axis.size)):
        return _with_gates(nest, axis, loads)
    count = maximum(sub(steps.end, steps.begin), ZERO)
    short = make_range(axis.axis, count, axis.kind)
    return exchange(nest, axis, (short,), add(steps.begin, short))


def _factors(value: UOp) -> list[UOp]:
    """The loads that a product is made of; if one is 0, the product is."""
    nodes = value.toposort(stop=lambda node: node.op not in FACTORS or node.op is Ops.LOAD)
    return [node for node in nodes if node.op is Ops.LOAD]


def _conditions(load: UOp) -> list[UOp]:
    """What holds wherever a load gives anything but 0; scratch has what was written there."""
    index, buffer = load.src[0], load.src[0].src[0]
    found = conditions_of(index.gate)
    if buffer.op is Ops.STAGE and not added_over(buffer) and not carried_over(buffer):
        pairs = zip(buffer.places, index.indices, strict=True)
        places = {place: read for place, read in pairs if place.op is Ops.RANGE}
        for source in _factors(buffer.value):
            for condition in _conditions(source):
                if condition.ranges & set(buffer.bound) <= places.keys():
                    found.append(reindex(condition, places))
    return found


def share_seen(index: UOp, steps: UOp) -> float:
    """In how many of all steps of an axis a load sees something, on average over all places."""
    unseen = 0.0
    for condition in conditions_of(index.gate):
        if steps not in condition.ranges or not is_limit(condition):
            continue
        terms, constant = linear(sub(*condition.src))
        rest = build(Linear({a: c for a, c in terms.items() if a is not steps}, constant))
        places = rest.vmax + 1 - rest.vmin
        for k in range(steps.size):
            seen = -terms.get(steps, 0) * k - rest.vmin  # places with rest + factor·k < 0
            unseen += (places - min(max(seen, 0), places)) / places / steps.size
    return 1 - unseen


# ---------------------------------------------------------------------- loops that are shorter


def _shorter(steps: Seen, condition: UOp, axis: UOp, loops: frozenset[UOp]) -> Seen:
    """Without the steps at both ends that fulfil a condition nowhere, in no iteration of loops
    inside of these.
    """
    if not is_limit(condition):
        return steps
    left, right = condition.src
    terms, constant = linear(left)
    own = [atom for atom in terms if axis in atom.ranges]
    step = _run_length(own[0], axis) if len(own) == 1 else None
    if step is None:
        return steps
    factor = terms[own[0]]
    others = Linear({a: c for a, c in terms.items() if a is not own[0]}, constant)
    least = _least(build(others), loops)
    if least is None:
        return steps
    room = sub(right, least)  # factor·atom < room
    if factor > 0:
        end = scale(floordiv(add(room, factor - 1), factor), step)
        return Seen(steps.begin, minimum(steps.end, end))
    begin = scale(add(floordiv(scale(room, -1), -factor), 1), step)
    return Seen(maximum(steps.begin, begin), steps.end)


def _run_length(atom: UOp, axis: UOp) -> int | None:
    """How many steps of the axis an atom counts as one."""
    if atom is axis:
        return 1
    is_run = atom.op is Ops.FLOORDIV and atom.src[0] is axis and atom.src[1].is_const
    return atom.src[1].arg if is_run else None


def _least(value: UOp, loops: frozenset[UOp], sign: int = 1) -> UOp | None:
    """The smallest value in one iteration of these loops; the largest, if the sign is -1."""
    terms, constant = linear(value)
    total = const(constant)
    for atom, factor in terms.items():
        found = _least_atom(atom, loops, sign if factor > 0 else -sign)
        if found is None:
            return None
        total = add(total, scale(found, factor))
    return total


def _least_atom(atom: UOp, loops: frozenset[UOp], sign: int) -> UOp | None:
    if atom.ranges <= loops:
        return atom
    if atom.op is Ops.RANGE:
        return const(atom.vmin if sign > 0 else atom.vmax)
    if atom.op is Ops.FLOORDIV and atom.src[1].is_const:
        inner = _least(atom.src[0], loops, sign)
        return None if inner is None else floordiv(inner, atom.src[1].arg)
    return None


# ---------------------------------------------------------------------- steps that are written out


def _with_gates(nest: Nest, axis: UOp, loads: list[UOp]) -> Nest:
    """x[i + k]  ->  x[i + k] if it is there, where i is written out as well"""
    changes: dict[UOp, UOp] = {}
    for load in loads:
        index = load.src[0]
        known = [c for c in _conditions(load) if axis in c.ranges and _is_written_out(c, axis)]
        if known:
            gate = all_of((*conditions_of(index.gate), *known))
            changes[load] = index.src[0].index(*index.indices, gate=gate).load()
    if not changes:
        raise IllegalMove("no step of this axis is known to add nothing")
    return replace(nest, body=nest.body.substitute(changes))


def _is_written_out(condition: UOp, axis: UOp) -> bool:
    return all(r is axis or r.kind.is_unrolled for r in condition.ranges)
