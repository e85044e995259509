"""Coverage proofs: a kernel writes every element of its results, and loop moves keep it so.

The addresses of a store are a set of integers in mixed-radix form (ir/value_sets.py). Equal digits
are equal sets, however loops were split, coalesced, padded or reordered.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from glassgrad.ir.divmod import conjuncts
from glassgrad.ir.facts import NO_RANGES
from glassgrad.ir.linear import Linear, flat
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.uop import UOp
from glassgrad.ir.value_sets import IntegerSet, Unproved, interval, merge_sets, sets_of

CONST, RANGE, STORE = Ops.CONST, Ops.RANGE, Ops.STORE
GRID = frozenset((AxisKind.GLOBAL, AxisKind.LOCAL, AxisKind.GROUP))
COUNTED_OPS = frozenset((Ops.SPECIAL, RANGE, Ops.END, STORE))
POINTER_OPS = frozenset((Ops.INDEX, Ops.AFTER))


class Digit(NamedTuple):
    """0, unit, 2·unit, … (size - 1)·unit; a size only known at launch is a UOp."""

    unit: int
    size: int | UOp


class Footprint(NamedTuple):
    """The addresses of a store: `first` plus any sum of values of the digits."""

    first: int
    digits: frozenset[Digit]
    # atoms added to `first` at launch; with factor 0: used by gates
    start: frozenset[tuple[UOp, int]] = frozenset()


class Coverage(NamedTuple):
    """A footprint, and True if each of its addresses is written by one iteration only."""

    footprint: Footprint
    is_injective: bool


def whole_buffer(shape: tuple[int, ...], strides: tuple[int, ...]) -> Footprint:
    """The footprint of all elements of a buffer."""
    parts = [interval(n).times(s) for n, s in zip(shape, strides, strict=True) if s]
    return _footprint(0, parts).footprint


def coverage_of(store: UOp, at_largest: bool = False) -> Coverage:
    """What a STORE writes; raises Unproved if no rule tells.

    `at_largest` replaces sizes only known at launch by their largest value.
    """
    index, loops = store.src[0], store.bound
    if not index.ranges <= set(loops):
        raise Unproved("an index uses the range of a loop that does not enclose the store")
    address = flat(index.indices, param_of(store).arg.strides)
    moving = NO_RANGES.union(*[atom.ranges for atom in address.terms])
    for loop in loops:
        size = loop.src[0]
        if size.op is not CONST and (size.ranges or loop not in moving):
            raise Unproved("how often a loop runs depends on another loop")
    found = _address_coverage(address, conjuncts(index.gate), at_largest)
    repeats = any(loop not in moving and loop.size > 1 for loop in loops)
    return found._replace(is_injective=False) if repeats else found


def param_of(store: UOp) -> UOp:
    """The kernel argument that a STORE writes to."""
    buffer = store.buffer
    while buffer.op is Ops.STORE:
        buffer = buffer.buffer
    return buffer


# ---------------------------------------------------------------------- addresses


def _address_coverage(address: Linear, conditions: list[UOp], at_largest: bool) -> Coverage:
    """Separate terms only known at launch from those that are sets of integers."""
    open_digits: set[Digit] = set()
    start: set[tuple[UOp, int]] = set()
    closed: dict[UOp, int] = {}
    for atom, factor in address.terms.items():
        if not atom.ranges:
            start.add((atom, factor))
        elif at_largest or all(r.src[0].op is CONST for r in atom.ranges):
            closed[atom] = factor
        elif atom.op is RANGE and not any(atom in c.ranges for c in conditions):
            open_digits.add(Digit(factor, atom.src[0]))
        else:
            raise Unproved("a loop whose size is known only at launch is divided")
    closed_conditions = []
    for condition in conditions:  # loop moves do not change the values of a variable
        variables = [node for node in condition.toposort() if node.op is Ops.VARIABLE]
        start |= {(variable, 0) for variable in variables}
        closed_conditions += [] if variables else [condition]
    found = _footprint(address.constant, sets_of(Linear(closed, 0), closed_conditions))
    if not open_digits and not start:
        return found
    first, digits, _ = found.footprint
    return Coverage(Footprint(first, digits | open_digits, frozenset(start)), found.is_injective)


def _footprint(constant: int, parts: list[IntegerSet]) -> Coverage:
    digits_of = merge_sets(parts)
    if not all(part.is_dense for part in digits_of):
        raise Unproved("elements between those that are written may be left out")
    is_injective, reach = all(part.is_injective for part in parts), 0
    for part in digits_of:
        is_injective = is_injective and part.is_injective and part.unit > reach
        reach += part.high - part.low
    digits = frozenset([Digit(p.unit, (p.high - p.low) // p.unit + 1) for p in digits_of])
    return Coverage(Footprint(constant + sum([p.low for p in parts]), digits), is_injective)


# ---------------------------------------------------------------------- kernels


class CoverageError(AssertionError):
    """Loop moves changed which elements a kernel writes: a bug of a move."""


def uncovered(body: UOp) -> dict[UOp, str]:
    """The arguments that a kernel may not store to completely, and why.

    Combining with memory (a STORE with an op) initializes nothing.
    """
    missing: dict[UOp, str] = {}
    for store in body.src:
        if store.op is not STORE:
            continue
        param = param_of(store)
        if missing.get(param) != "":
            is_plain = store.arg is None
            missing[param] = _missing_elements(store, param) if is_plain else "nothing is stored"
    return {param: why for param, why in missing.items() if why}


def _missing_elements(store: UOp, param: UOp) -> str:
    index, shape = store.src[0], param.arg.shape
    if index.src[1:] == store.bound and tuple([r.size for r in store.bound]) == shape:
        return ""  # the common case
    try:
        found = coverage_of(store, at_largest=True).footprint
    except Unproved as unproved:
        return str(unproved)
    return "" if found == whole_buffer(shape, param.arg.strides) else "some are left out"


def check_coverage(before: UOp, after: UOp, may_alias: bool = False) -> None:
    """Raise CoverageError unless a kernel writes the same elements before and after loop moves.

    `may_alias`: stored elements may be read again, so no element may be stored twice.
    """
    problem = difference(before, after, may_alias)
    if problem is not None:
        raise CoverageError(f"after loop moves the kernel writes other elements: {problem}")


def difference(before: UOp, after: UOp, may_alias: bool = False) -> str | None:
    """How the stores of a kernel differ after loop moves; None if they do not."""
    if before is after:
        return None
    wanted, found = _by_slot(before), _by_slot(after)
    params = frozenset([param_of(store) for stores in found.values() for store in stores])
    for slot in wanted.keys() | found.keys():
        before_stores, after_stores = wanted.get(slot, []), found.get(slot, [])
        if [s.src[0] for s in before_stores] == [s.src[0] for s in after_stores] and _loops(
            before_stores
        ) == _loops(after_stores):
            continue
        try:
            problem = _slot_difference(
                before_stores, after_stores, params if may_alias else NO_RANGES
            )
        except Unproved as unproved:
            problem = str(unproved)
        if problem is not None:
            return f"argument {slot}: {problem}"
    return None


def _by_slot(body: UOp) -> dict[int, list[UOp]]:
    found: dict[int, list[UOp]] = {}
    for store in dict.fromkeys(body.src):  # equal nodes become one instruction
        if store.op is STORE:
            found.setdefault(param_of(store).arg.slot, []).append(store)
    return found


def _loops(stores: list[UOp]) -> list[object]:
    return [(store.bound, store.arg) for store in stores]


def _slot_difference(before: list[UOp], after: list[UOp], rewritten: frozenset[UOp]) -> str | None:
    """The difference of the stores to one argument; `rewritten` are arguments that are read and
    written.
    """
    wanted, found = _plain_footprints(before, NO_RANGES), _plain_footprints(after, rewritten)
    if not found and wanted:
        return "nothing is stored"
    if found != wanted:
        return "other elements are stored"
    combined = [_combining_count(store) for store in before if store.arg is not None]
    if combined and combined != [
        _combining_count(store) for store in after if store.arg is not None
    ]:
        return "values are combined with what is there more or less often"
    is_combined = not combined and any(store.arg is not None for store in after)
    return _combines_uninitialized(after) if is_combined else None


def _plain_footprints(stores: list[UOp], rewritten: frozenset[UOp]) -> list[Footprint]:
    """The footprints of plain stores, without immediate repetitions."""
    found: list[Footprint] = []
    for store in stores:
        if store.arg is None:
            footprint, is_injective = coverage_of(store)
            if not is_injective and not rewritten.isdisjoint(
                store.value.toposort() if rewritten else ()
            ):
                raise Unproved("elements that are read may be stored twice")
            if not found or found[-1] != footprint:
                found.append(footprint)
    return found


def _combining_count(store: UOp) -> tuple[Ops, int, frozenset[UOp]]:
    """How a store combines, and how often."""
    sizes = [loop.src[0] for loop in store.bound]
    if any(size.ranges for size in sizes):
        raise Unproved("how often a loop runs depends on another loop")
    opened = frozenset([size for size in sizes if size.op is not CONST])
    return store.arg, prod([size.arg for size in sizes if size.op is CONST]), opened


def _combines_uninitialized(stores: list[UOp]) -> str | None:
    """The error if sums accumulate in memory that no plain store has initialized."""
    ready: set[Footprint] = set()
    for store in stores:
        footprint = coverage_of(store).footprint
        if store.arg is None:
            ready.add(footprint)
        elif footprint not in ready:
            return "values are combined with what was never stored"
    return None


# ---------------------------------------------------------------------- programs


def check_stores(body: UOp, program: Sequence[UOp]) -> None:
    """Raise CoverageError unless the program stores as many elements as the loops of its nest.

    Arguments stored conditionally or in loops of dynamic size are skipped: their counts are not
    static.
    """
    lines = [line for line in program if line.op in COUNTED_OPS]
    wanted = _counts_of_nest(body, _threads(body, lines))
    found = _counts_of_program(lines) if wanted else {}
    for slot, (minimum, maximum) in wanted.items():
        if not minimum <= found.get(slot, 0) <= maximum:
            raise CoverageError(
                f"the loops store {maximum} elements to argument {slot} of the kernel, "
                f"its instructions {found.get(slot, 0)}"
            )


def _threads(body: UOp, program: Sequence[UOp]) -> list[UOp]:
    """The axes of the launch grid: threads that a store does not depend on all execute it."""
    if not any(node.op is Ops.SPECIAL for node in program):
        return []
    return [node for node in body.toposort() if node.op is RANGE and node.kind in GRID]


def _counts_of_nest(body: UOp, threads: list[UOp]) -> dict[int, tuple[int, int]]:
    """The minimum and maximum number of elements stored to each argument: equal stores may become
    one instruction.
    """
    counts: dict[int, tuple[int, int]] = {}
    unknown: set[int] = set()
    for slot, stores in _by_slot(body).items():
        indices: set[UOp] = set()
        for store in stores:
            loops = (*store.bound, *[r for r in threads if r not in store.bound])
            if store.src[0].gate is not None or any(r.src[0].op is not CONST for r in loops):
                unknown.add(slot)
            minimum, maximum = counts.get(slot, (0, 0))
            count = prod([r.size for r in loops])
            counts[slot] = (
                minimum if store.src[0] in indices else minimum + count,
                maximum + count,
            )
            indices.add(store.src[0])
    return {slot: count for slot, count in counts.items() if slot not in unknown}


def _counts_of_program(program: Sequence[UOp]) -> dict[int, int]:
    counts: dict[int, int] = {}
    iterations = prod([node.arg[1] for node in program if node.op is Ops.SPECIAL])
    for node in program:
        op = node.op
        if op is RANGE:
            iterations *= node.src[0].vmax
        elif op is Ops.END:
            iterations //= node.src[0].src[0].vmax
        elif op is STORE:
            pointer = node.src[0]
            while pointer.op in POINTER_OPS:
                pointer = pointer.src[0]
            if pointer.op is Ops.PARAM:
                slot = pointer.arg.slot
                counts[slot] = counts.get(slot, 0) + iterations * node.src[1].dtype.count
    return counts
