"""How many steps do reductions combine? Proved to be as many after loop moves as before.

Moves split a reduction: into loops in each other, into a main part and a rest, into parts that are
combined in memory (a STORE with an op), added up in scratch (a STAGE) or carried from block to
block (a SCAN). In all of these forms it combines as many terms of the same parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import NamedTuple

from glassgrad.ir.divmod import conditions_of
from glassgrad.ir.facts import NOTHING, identity
from glassgrad.ir.ops import Ops
from glassgrad.ir.staged import added_over, combined_by
from glassgrad.ir.uop import UOp, toposort
from glassgrad.ir.value_sets import MAX_ENUMERATED, Unproved, holding

CAST, CONST, LOAD, PARAM, RANGE = Ops.CAST, Ops.CONST, Ops.LOAD, Ops.PARAM, Ops.RANGE
REDUCE, SCAN, STAGE, STORE = Ops.REDUCE, Ops.SCAN, Ops.STAGE, Ops.STORE
COMBINING = frozenset((REDUCE, SCAN, STAGE, STORE))
SPLIT_BY = frozenset((Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN))  # a main part and a rest
MAX_PARTS = 10  # of reductions of one kind: how they belong together is tried, 2^10 ways

Loops = tuple[UOp, ...]


class Kind(NamedTuple):
    """Reductions that may be parts of one: by the same op, over the same parameters, and over
    results of as many others.
    """

    op: Ops
    slots: frozenset[int]
    dtype_kind: str
    depth: int


class Steps(NamedTuple):
    """How many terms are combined; the last of several blocks may reach beyond the end."""

    least: int
    most: int
    open_sizes: frozenset[UOp] = NOTHING  # of loops whose sizes are known only at launch


Counts = dict[Kind, list[Steps]]


def changed_steps(before: Iterable[UOp], after: Iterable[UOp]) -> str | None:
    """What reductions under some stores combine otherwise after loop moves; None if nothing.

    Loops that end where another one says, as masks have them, are not counted.
    """
    wanted, unknown = _counts(before, may_hide=True)
    found, open_ones = _counts(after)
    for kind in (wanted.keys() | found.keys()) - unknown - open_ones:
        one, two = wanted.get(kind, []), found.get(kind, [])
        if not one and any(kind.op is w.op and kind.slots < w.slots for w in wanted):
            continue  # what a product of bytes with an offset has too much
        if not _are_parts(two, set(one)):
            return f"{kind.op.name} combines {_shown(two)} steps instead of {_shown(one)}"
    return None


def _shown(found: Sequence[Steps]) -> str:
    return " and ".join([str(steps.most) for steps in found]) or "no"


def _counts(stores: Iterable[UOp], may_hide: bool = False) -> tuple[Counts, set[Kind]]:
    """The steps of every reduction under some stores, and the kinds that cannot be counted."""
    nodes = toposort(stores)
    slots = _slots_read(nodes)
    found: Counts = {}
    unknown: set[Kind] = set()
    in_order = frozenset([loop for node in nodes if node.op is SCAN for loop in node.bound])
    is_hiding = may_hide and any(map(_is_mask, nodes))
    reductions = _reductions(nodes)
    depths = _depths(nodes, reductions)
    for node, loops in reductions.items():
        kind = Kind(_op(node), slots[node], node.value.dtype.kind, depths[node])
        steps = None if is_hiding and _hides(node) else _steps(node, loops, in_order)
        if steps is None:
            unknown.add(kind)
        elif steps.most:
            found.setdefault(kind, []).append(steps)
    return found, unknown


def _slots_read(nodes: Sequence[UOp]) -> dict[UOp, frozenset[int]]:
    """The parameters that each node is computed from."""
    slots: dict[UOp, frozenset[int]] = {}
    for node in nodes:
        if node.op is PARAM:
            slots[node] = frozenset((node.arg.slot,))
        elif node.op is STORE:
            slots[node] = slots[node.value]
        else:
            slots[node] = frozenset().union(*[slots[source] for source in node.src])
    return slots


def _depths(nodes: Sequence[UOp], reductions: Mapping[UOp, Loops]) -> dict[UOp, int]:
    """How many reductions are over results of each other."""
    depths: dict[UOp, int] = {}
    for node in nodes:
        beneath = max([depths[source] for source in node.src], default=0)
        depths[node] = beneath + (node in reductions)
    return depths


# ---------------------------------------------------------------------- loops


def _reductions(nodes: Sequence[UOp]) -> dict[UOp, Loops]:
    """Each reduction with all loops that its terms come from: those of the parts that are combined
    elsewhere, too.
    """
    around: dict[UOp, Loops] = {}
    found: dict[UOp, Loops] = {}
    for node in reversed(nodes):
        if node.op not in COMBINING:
            continue
        inner, loops = _beneath(node)
        loops = (*around.get(node, ()), *loops)
        for part in inner:
            around[part] = max(around.get(part, ()), loops, key=_count)
        if not inner and node.op is not SCAN and loops:
            found[node] = loops
    return found


def _count(loops: Loops) -> int:
    return prod([int(loop.src[0].vmax) for loop in loops])


def _op(node: UOp) -> Ops:
    if node.op is STAGE:
        return Ops.ADD
    op: Ops = combined_by(node) if node.op is SCAN else node.arg
    return Ops.ADD if op is Ops.MULACC else op


def _beneath(node: UOp) -> tuple[list[UOp], Loops]:
    """The reductions whose results a node combines, or passes on; and the loops it does so in."""
    if node.op is STORE:
        loops = () if node.arg is None else tuple(set(node.bound) - node.src[0].ranges)
        return ([], ()) if node.arg is None else (_parts(node.value, node.arg), loops)
    if node.op is STAGE:
        loops = added_over(node)
        return _parts(node.value, Ops.ADD if loops else None), loops
    if node.op is SCAN:
        return _parts(node.value, _op(node)), node.bound
    shared = _shared(node)
    return ([], node.bound) if shared is None else shared


def _parts(value: UOp, op: Ops | None) -> list[UOp]:
    """The reductions by an op that a value is combined of; by any, if it is only passed on."""
    while value.op is CAST:
        value = value.src[0]
    if value.op is LOAD and value.buffer.op is STAGE:
        is_combined = added_over(value.buffer) or _parts(value.buffer.value, op)
        return [value.buffer] if is_combined else []
    if value.op in (REDUCE, SCAN):
        return [value] if op is None or _op(value) is op else []
    if value.op is op or (op is None and value.op in SPLIT_BY):
        parts = [_parts(source, value.op) for source in value.src]
        return [part for found in parts for part in found] if all(parts) else []
    return []


def _shared(reduce: UOp) -> tuple[list[UOp], Loops] | None:
    """Threads, or turns, that combined a part each: a part is all that one of them wrote."""
    value = reduce.value
    if value.op is Ops.WHERE and value.src[2].op is CONST:  # beyond the last of them is nothing
        value = value.src[1]
    if value.op is not LOAD or value.buffer.op is not STAGE:
        return None
    stage, bound = value.buffer, set(reduce.bound)
    if not _parts(stage.value, reduce.arg):
        return None
    loops: list[UOp] = []
    for place, at in zip(stage.places, value.src[0].indices, strict=True):
        if at.ranges and at.ranges <= bound and place.op is RANGE:
            loops.append(place)
        else:
            loops += bound & at.ranges
    return [stage], tuple(loops)


# ---------------------------------------------------------------------- steps


def _steps(node: UOp, loops: Loops, in_order: frozenset[UOp]) -> Steps | None:
    """How many terms come from these loops; None if that cannot be said."""
    sizes = [loop.src[0] for loop in loops]
    opened = frozenset([size for size in sizes if size.op is not CONST])
    if any(size.ranges for size in opened):
        return None
    found = _conditions(node)
    if found is None:
        return None
    found = [c for c in found if all(n.op is not LOAD for n in c.toposort())]  # others stay
    masks = [c for c in found if c.ranges <= set(loops)]
    if len(masks) < len(found) and loops != node.bound:
        own = [c for c in found if not c.ranges.isdisjoint(loops)]
        if len(own) > len(masks):  # of parts that are combined elsewhere, in other loops
            return None
    masked = NOTHING.union(*[mask.ranges for mask in masks])
    if any(loop.src[0].op is not CONST for loop in masked):
        return None
    rest = prod([loop.size for loop in loops if loop not in masked and loop.src[0].op is CONST])
    ordered = sorted(masked, key=lambda loop: loop.axis)
    if _count(tuple(ordered)) > MAX_ENUMERATED:
        return None
    try:
        most = rest * holding(masks, ordered)
    except Unproved:  # memory decides it, say
        return None
    blocks = _count(tuple([loop for loop in loops if loop in in_order]))
    return Steps(most - most // blocks + 1 if blocks > 1 else most, most, opened)


def _conditions(node: UOp) -> list[UOp] | None:
    """What must hold for a term to change anything; None where scratch has zeros, perhaps."""
    found: list[UOp] = []
    stack = [node.value]
    while stack:
        value = stack.pop()
        if value.op is Ops.WHERE and value.src[2].op is CONST:
            if value.src[2].arg == identity(_op(node), value.dtype):
                found += conditions_of(value.src[0])
                stack.append(value.src[1])
        elif value.op is CAST or (value.op is Ops.MUL and _op(node) is Ops.ADD):
            stack += value.src
        elif value.op is LOAD and _op(node) is Ops.ADD:
            found += conditions_of(value.src[0].gate)
            if value.buffer.op is STAGE and _has_gates(value.buffer):
                return None
    return list(dict.fromkeys(found))


def _hides(reduction: UOp) -> bool:
    return any(map(_is_mask, reduction.value.toposort()))


def _is_mask(node: UOp) -> bool:
    """Does it hide other steps of a loop at each step of another one? Loops may leave these out."""
    if node.op is not Ops.WHERE or node.src[2].op is not CONST or len(node.src[0].ranges) < 2:
        return False
    return all(found.op is not LOAD for found in node.src[0].toposort())


def _has_gates(stage: UOp) -> bool:
    nodes = stage.value.toposort()
    return any(node.op is LOAD and node.src[0].gate is not None for node in nodes)


# ---------------------------------------------------------------------- parts


def _are_parts(parts: Sequence[Steps], wanted: set[Steps]) -> bool:
    """Whether all parts, taken together in groups, are all of the wanted numbers."""
    done = wanted.intersection(parts)
    rest = [part for part in parts if part not in wanted]
    if not rest and done == wanted:
        return True
    return len(parts) > MAX_PARTS or _fill(list(parts), wanted, set())


def _fill(rest: list[Steps], wanted: set[Steps], done: set[Steps]) -> bool:
    """Take the first part and others that make a wanted number with it, and go on."""
    if not rest:
        return done == wanted
    first, others = rest[0], rest[1:]
    for chosen in range(1 << len(others)):
        group = [first, *[one for i, one in enumerate(others) if chosen >> i & 1]]
        left = [one for i, one in enumerate(others) if not chosen >> i & 1]
        least, most = sum(s.least for s in group), sum(s.most for s in group)
        for number in wanted:
            is_whole = least <= number.most <= most and number.open_sizes == first.open_sizes
            if is_whole and _fill(left, wanted, done | {number}):
                return True
    return False
