"""SKIP_ZEROS: skip the steps of a sum that add only zeros, such as those that read padding.

In sum(x[i + k - 1] * w[k]) with x zero outside, the first output needs no k = 0 and the last one
not the last k. The loop over k starts and ends where some element of the tile reads data. If only
unrolled axes matter, the load gets a gate instead, which removes single unrolled steps.

0 times anything counts as 0, as in any convolution that skips padding.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.divmod import conjunction, conjuncts, floordiv, is_upper_bound
from glassgrad.ir.linear import ZERO, Linear, add, build, linear, maximum, minimum, scale, sub
from glassgrad.ir.ops import Ops
from glassgrad.ir.reindex import reindex
from glassgrad.ir.staged import accumulated_loops, carried_loops
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.uop import UOp, const, make_range
from glassgrad.loops.nest import only_sum, substitute_axis
from glassgrad.loops.opts import IllegalMove

# ops through which a zero load makes the product zero
FACTOR_OPS = frozenset((Ops.MUL, Ops.CAST, Ops.LOAD))


class StepRange(NamedTuple):
    """The steps of an axis that may add something."""

    begin: UOp
    end: UOp


def skip_zeros(nest: Nest, axis: UOp, arg: Any, target: Target) -> Nest:
    """for k in 3: s += x[i + k - 1] * w[k]  ->  for k from 1 - i to n - i: s += …"""
    reduce = only_sum(nest, axis)
    loads = _factors(reduce.value)
    loops = frozenset([r for r in reduce.ranges if not r.kind.is_unrolled])
    steps = StepRange(ZERO, const(axis.size))
    for load in loads:
        for condition in _conditions(load):
            steps = _tighten(steps, condition, axis, loops)
    if steps == (ZERO, const(axis.size)):
        return _gate_unrolled_steps(nest, axis, loads)
    count = maximum(sub(steps.end, steps.begin), ZERO)
    short = make_range(axis.axis, count, axis.kind)
    return substitute_axis(nest, axis, (short,), add(steps.begin, short))


def _factors(value: UOp) -> list[UOp]:
    """The loads multiplied in a product; the product is 0 if one of them is."""
    nodes = value.toposort(stop=lambda node: node.op not in FACTOR_OPS or node.op is Ops.LOAD)
    return [node for node in nodes if node.op is Ops.LOAD]


def _conditions(load: UOp) -> list[UOp]:
    """The conditions under which a load is not 0; for scratch, those of the copied load."""
    index, buffer = load.src[0], load.src[0].src[0]
    found = conjuncts(index.gate)
    if buffer.op is Ops.STAGE and not accumulated_loops(buffer) and not carried_loops(buffer):
        pairs = zip(buffer.scratch_indices, index.indices, strict=True)
        indices = {written: read for written, read in pairs if written.op is Ops.RANGE}
        for source in _factors(buffer.value):
            for condition in _conditions(source):
                if condition.ranges & set(buffer.bound) <= indices.keys():
                    found.append(reindex(condition, indices))
    return found


def fraction_unmasked(index: UOp, axis: UOp) -> float:
    """The fraction of (output, step) pairs for which a load is inside the buffer, as a mean over
    outputs.
    """
    masked = 0.0
    for condition in conjuncts(index.gate):
        if axis not in condition.ranges or not is_upper_bound(condition):
            continue
        terms, constant = linear(sub(*condition.src))
        rest = build(Linear({a: c for a, c in terms.items() if a is not axis}, constant))
        outputs = rest.vmax + 1 - rest.vmin
        for step in range(axis.size):
            unmasked = -terms.get(axis, 0) * step - rest.vmin  # outputs with rest + factor·step < 0
            masked += (outputs - min(max(unmasked, 0), outputs)) / outputs / axis.size
    return 1 - masked


# ---------------------------------------------------------------------- shorter loops


def _tighten(steps: StepRange, condition: UOp, axis: UOp, loops: frozenset[UOp]) -> StepRange:
    """Drop the steps at both ends that violate a condition for every value of the loops inside of
    `loops`.
    """
    if not is_upper_bound(condition):
        return steps
    left, right = condition.src
    terms, constant = linear(left)
    own = [atom for atom in terms if axis in atom.ranges]
    unit = _steps_per_unit(own[0], axis) if len(own) == 1 else None
    if unit is None:
        return steps
    factor = terms[own[0]]
    others = Linear({a: c for a, c in terms.items() if a is not own[0]}, constant)
    smallest = _minimum(build(others), loops)
    if smallest is None:
        return steps
    room = sub(right, smallest)  # factor·atom < room
    if factor > 0:
        end = scale(floordiv(add(room, factor - 1), factor), unit)
        return StepRange(steps.begin, minimum(steps.end, end))
    begin = scale(add(floordiv(scale(room, -1), -factor), 1), unit)
    return StepRange(maximum(steps.begin, begin), steps.end)


def _steps_per_unit(atom: UOp, axis: UOp) -> int | None:
    """How many steps of the axis change the atom by one: n for axis // n."""
    if atom is axis:
        return 1
    is_run = atom.op is Ops.FLOORDIV and atom.src[0] is axis and atom.src[1].is_const
    return atom.src[1].arg if is_run else None


def _minimum(value: UOp, loops: frozenset[UOp], sign: int = 1) -> UOp | None:
    """The smallest value over all ranges but `loops`; the largest if `sign` is -1."""
    terms, constant = linear(value)
    total = const(constant)
    for atom, factor in terms.items():
        found = _minimum_of_atom(atom, loops, sign if factor > 0 else -sign)
        if found is None:
            return None
        total = add(total, scale(found, factor))
    return total


def _minimum_of_atom(atom: UOp, loops: frozenset[UOp], sign: int) -> UOp | None:
    if atom.ranges <= loops:
        return atom
    if atom.op is Ops.RANGE:
        return const(atom.vmin if sign > 0 else atom.vmax)
    if atom.op is Ops.FLOORDIV and atom.src[1].is_const:
        inner = _minimum(atom.src[0], loops, sign)
        return None if inner is None else floordiv(inner, atom.src[1].arg)
    return None


# ---------------------------------------------------------------------- unrolled steps


def _gate_unrolled_steps(nest: Nest, axis: UOp, loads: list[UOp]) -> Nest:
    """x[i + k]  ->  x[i + k] gated by its bounds, for unrolled i"""
    changes: dict[UOp, UOp] = {}
    for load in loads:
        index = load.src[0]
        static = [c for c in _conditions(load) if axis in c.ranges and _is_unrolled(c, axis)]
        if static:
            gate = conjunction((*conjuncts(index.gate), *static))
            changes[load] = index.src[0].index(*index.indices, gate=gate).load()
    if not changes:
        raise IllegalMove("no step of this axis is known to add only zeros")
    return replace(nest, body=nest.body.substitute(changes))


def _is_unrolled(condition: UOp, axis: UOp) -> bool:
    return all(r is axis or r.kind.is_unrolled for r in condition.ranges)
