"""Which elements do stores write? Proved to be the same before and after loop moves.

The addresses that a store writes are digits of a mixed-radix number (ir/value_sets.py): equal
digits are equal sets, however loops were split, joined, padded or reordered.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from glassgrad.ir.divmod import conditions_of
from glassgrad.ir.facts import NOTHING
from glassgrad.ir.linear import Linear, flat
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.uop import UOp
from glassgrad.ir.value_sets import Steps, Unproved, counted, joined, parts_of

CONST, RANGE, STORE = Ops.CONST, Ops.RANGE, Ops.STORE
GRID = frozenset((AxisKind.GLOBAL, AxisKind.LOCAL, AxisKind.GROUP))
COUNTED = frozenset((Ops.SPECIAL, RANGE, Ops.END, STORE))
STEPS_OF_POINTERS = frozenset((Ops.INDEX, Ops.AFTER))


class Digit(NamedTuple):
    """0, unit, 2·unit, … (size - 1)·unit; a size that is known only at launch is a UOp."""

    unit: int
    size: int | UOp


class Footprint(NamedTuple):
    """The addresses that a store writes: `first` plus any sum of values of the digits."""

    first: int
    digits: frozenset[Digit]
    start: frozenset[tuple[UOp, int]] = (
        frozenset()
    )  # added to `first` at launch; by 0: decides gates


class Written(NamedTuple):
    """A footprint, and whether every address in it is written by one iteration only."""

    footprint: Footprint
    is_once: bool


def full(shape: tuple[int, ...], strides: tuple[int, ...]) -> Footprint:
    """All elements of a buffer."""
    parts = [counted(n).times(s) for n, s in zip(shape, strides, strict=True) if s]
    return _footprint(0, parts).footprint


def written(store: UOp, at_most: bool = False) -> Written:
    """What a STORE writes; Unproved if that cannot be said.

    `at_most` takes sizes that are known only at launch as large as they can be.
    """
    index, loops = store.src[0], store.bound
    if not index.ranges <= set(loops):
        raise Unproved("a loop that an index counts with is not there")
    address = flat(index.indices, param_of(store).arg.strides)
    moving = NOTHING.union(*[atom.ranges for atom in address.terms])
    for loop in loops:
        size = loop.src[0]
        if size.op is not CONST and (size.ranges or loop not in moving):
            raise Unproved("how often a loop runs depends on another loop")
    found = _of(address, conditions_of(index.gate), at_most)
    repeats = any(loop not in moving and loop.size > 1 for loop in loops)
    return found._replace(is_once=False) if repeats else found


def param_of(store: UOp) -> UOp:
    """The argument of the kernel that a STORE writes to."""
    buffer = store.buffer
    while buffer.op is Ops.STORE:
        buffer = buffer.buffer
    return buffer


# ---------------------------------------------------------------------- sums


def _of(address: Linear, conditions: list[UOp], at_most: bool) -> Written:
    """Terms that are known only at launch apart from those that are sets of integers."""
    open_digits: set[Digit] = set()
    start: set[tuple[UOp, int]] = set()
    closed: dict[UOp, int] = {}
    for atom, factor in address.terms.items():
        if not atom.ranges:
            start.add((atom, factor))
        elif at_most or all(r.src[0].op is CONST for r in atom.ranges):
            closed[atom] = factor
        elif atom.op is RANGE and not any(atom in c.ranges for c in conditions):
            open_digits.add(Digit(factor, atom.src[0]))
        else:
            raise Unproved("a loop whose size is known only at launch is divided")
    closed_conditions = []
    for condition in conditions:  # a loop move does not change which values a variable may have
        variables = [node for node in condition.toposort() if node.op is Ops.VARIABLE]
        start |= {(variable, 0) for variable in variables}
        closed_conditions += [] if variables else [condition]
    found = _footprint(address.constant, parts_of(Linear(closed, 0), closed_conditions))
    if not open_digits and not start:
        return found
    first, digits, _ = found.footprint
    return Written(Footprint(first, digits | open_digits, frozenset(start)), found.is_once)


def _footprint(constant: int, parts: list[Steps]) -> Written:
    digits_of = joined(parts)
    if not all(part.is_dense for part in digits_of):
        raise Unproved("elements between those that are written may be left out")
    is_once, reach = True, 0
    for part in digits_of:
        is_once = is_once and part.is_once and part.unit > reach
        reach += part.high - part.low
    digits = frozenset([Digit(p.unit, (p.high - p.low) // p.unit + 1) for p in digits_of])
    return Written(Footprint(constant + sum(p.low for p in digits_of), digits), is_once)


# ---------------------------------------------------------------------- kernels


class CoverageError(AssertionError):
    """Loop moves have changed which elements a kernel writes: a bug of a move."""


def uncovered(body: UOp) -> dict[UOp, str]:
    """The arguments that a kernel stores to, but maybe not to all of their elements; and why.

    Combining with what is there (a STORE with an op) writes nothing that was not there before.
    """
    missing: dict[UOp, str] = {}
    for store in body.src:
        if store.op is not STORE:
            continue
        param = param_of(store)
        if missing.get(param) != "":
            is_plain = store.arg is None
            missing[param] = _what_is_missing(store, param) if is_plain else "nothing is stored"
    return {param: why for param, why in missing.items() if why}


def _what_is_missing(store: UOp, param: UOp) -> str:
    index, shape = store.src[0], param.arg.shape
    if index.src[1:] == store.bound and tuple([r.size for r in store.bound]) == shape:
        return ""  # most kernels store like this
    try:
        found = written(store, at_most=True).footprint
    except Unproved as unproved:
        return str(unproved)
    return "" if found == full(shape, param.arg.strides) else "some are left out"


def check_coverage(before: UOp, after: UOp, rewrites: bool = False) -> None:
    """A CoverageError unless a kernel writes the same elements after loop moves as before.

    `rewrites` says that what is stored may be read again: then no element is stored twice.
    """
    problem = difference(before, after, rewrites)
    if problem is not None:
        raise CoverageError(f"after loop moves the kernel writes other elements: {problem}")


def difference(before: UOp, after: UOp, rewrites: bool = False) -> str | None:
    """What the stores of a kernel after loop moves write otherwise than before; None if nothing."""
    if before is after:
        return None
    wanted, found = _by_slot(before), _by_slot(after)
    params = frozenset([param_of(store) for stores in found.values() for store in stores])
    for slot in wanted.keys() | found.keys():
        one, two = wanted.get(slot, []), found.get(slot, [])
        if [s.src[0] for s in one] == [s.src[0] for s in two] and _loops(one) == _loops(two):
            continue
        try:
            problem = _slot_difference(one, two, params if rewrites else NOTHING)
        except Unproved as unproved:
            problem = str(unproved)
        if problem is not None:
            return f"argument {slot}: {problem}"
    return None


def _by_slot(body: UOp) -> dict[int, list[UOp]]:
    found: dict[int, list[UOp]] = {}
    for store in dict.fromkeys(body.src):  # the same node twice is one line of a program
        if store.op is STORE:
            found.setdefault(param_of(store).arg.slot, []).append(store)
    return found


def _loops(stores: list[UOp]) -> list[object]:
    return [(store.bound, store.arg) for store in stores]


def _slot_difference(before: list[UOp], after: list[UOp], rewritten: frozenset[UOp]) -> str | None:
    """For the stores to one argument; `rewritten` are those that are read and written."""
    wanted, found = _in_order(before, NOTHING), _in_order(after, rewritten)
    if not found and wanted:
        return "nothing is stored"
    if found != wanted:
        return "other elements are stored"
    combined = [_combination(store) for store in before if store.arg is not None]
    if combined and combined != [_combination(store) for store in after if store.arg is not None]:
        return "values are combined with what is there more or less often"
    is_combined = not combined and any(store.arg is not None for store in after)
    return _uninitialised(after) if is_combined else None


def _in_order(stores: list[UOp], rewritten: frozenset[UOp]) -> list[Footprint]:
    """What plain stores write; to write the same elements once more changes nothing."""
    found: list[Footprint] = []
    for store in stores:
        if store.arg is None:
            footprint, is_once = written(store)
            if not is_once and not rewritten.isdisjoint(
                store.value.toposort() if rewritten else ()
            ):
                raise Unproved("elements that are read may be stored twice")
            if not found or found[-1] != footprint:
                found.append(footprint)
    return found


def _combination(store: UOp) -> tuple[Ops, int, frozenset[UOp]]:
    """How a store combines, and how often."""
    sizes = [loop.src[0] for loop in store.bound]
    if any(size.ranges for size in sizes):
        raise Unproved("how often a loop runs depends on another loop")
    opened = frozenset([size for size in sizes if size.op is not CONST])
    return store.arg, prod([size.arg for size in sizes if size.op is CONST]), opened


def _uninitialised(stores: list[UOp]) -> str | None:
    """Sums that a move keeps in memory begin with a plain store to all of them."""
    ready: set[Footprint] = set()
    for store in stores:
        footprint = written(store).footprint
        if store.arg is None:
            ready.add(footprint)
        elif footprint not in ready:
            return "values are combined with what was never stored"
    return None


# ---------------------------------------------------------------------- programs


def check_stores(body: UOp, program: Sequence[UOp]) -> None:
    """A CoverageError unless the instructions store as many elements as the loops of a nest do.

    Arguments that are stored to under a condition, or in loops whose sizes are known only at
    launch, are left out: how often their instructions run is not in the list.
    """
    lines = [line for line in program if line.op in COUNTED]
    wanted = _counts_of_nest(body, _threads(body, lines))
    found = _counts_of_program(lines) if wanted else {}
    for slot, (least, most) in wanted.items():
        if not least <= found.get(slot, 0) <= most:
            raise CoverageError(
                f"the loops store {most} elements to argument {slot} of the kernel, "
                f"its instructions {found.get(slot, 0)}"
            )


def _threads(body: UOp, program: Sequence[UOp]) -> list[UOp]:
    """The axes of a launch grid: threads that a store does not count with all do the same."""
    if not any(node.op is Ops.SPECIAL for node in program):
        return []
    return [node for node in body.toposort() if node.op is RANGE and node.kind in GRID]


def _counts_of_nest(body: UOp, threads: list[UOp]) -> dict[int, tuple[int, int]]:
    """How many elements are stored to each argument; at least those of different stores, since the
    same value that is stored twice to the same index may be one instruction.
    """
    counts: dict[int, tuple[int, int]] = {}
    unknown: set[int] = set()
    for slot, stores in _by_slot(body).items():
        indices: set[UOp] = set()
        for store in stores:
            loops = (*store.bound, *[r for r in threads if r not in store.bound])
            if store.src[0].gate is not None or any(r.src[0].op is not CONST for r in loops):
                unknown.add(slot)
            least, most = counts.get(slot, (0, 0))
            count = prod([r.size for r in loops])
            counts[slot] = (least if store.src[0] in indices else least + count, most + count)
            indices.add(store.src[0])
    return {slot: count for slot, count in counts.items() if slot not in unknown}


def _counts_of_program(program: Sequence[UOp]) -> dict[int, int]:
    counts: dict[int, int] = {}
    around = prod([node.arg[1] for node in program if node.op is Ops.SPECIAL])
    for node in program:
        op = node.op
        if op is RANGE:
            around *= node.src[0].vmax
        elif op is Ops.END:
            around //= node.src[0].src[0].vmax
        elif op is STORE:
            pointer = node.src[0]
            while pointer.op in STEPS_OF_POINTERS:
                pointer = pointer.src[0]
            if pointer.op is Ops.PARAM:
                slot = pointer.arg.slot
                counts[slot] = counts.get(slot, 0) + around * node.src[1].dtype.count
    return counts
