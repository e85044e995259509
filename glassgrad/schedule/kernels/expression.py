"""A graph value at some indices -> a scalar expression under ranges, every load gated."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from glassgrad.base.dtype import dtypes
from glassgrad.ir.divmod import FALSE, all_of
from glassgrad.ir.facts import NOTHING, substitute
from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.uop import UOp, const
from glassgrad.schedule.kernels.movement import Conditions, Indices, gathered, move, stretch

INDEX, GATHER, CONST, IOTA, LOAD = Ops.INDEX, Ops.GATHER, Ops.CONST, Ops.IOTA, Ops.LOAD
BIND = Ops.BIND
VARIABLE, PAD, WINDOW_ADJOINT, RANGE = Ops.VARIABLE, Ops.PAD, Ops.WINDOW_ADJOINT, Ops.RANGE
ELEMENTWISE, CHECK, SCAN = OpGroup.ELEMENTWISE, Ops.CHECK, Ops.SCAN
GUARDED = frozenset((PAD, WINDOW_ADJOINT, GATHER))


class Place(NamedTuple):
    """A graph value at some indices; it is only asked for where the conditions hold."""

    node: UOp
    indices: Indices
    conditions: Conditions


Read = Callable[[UOp, Indices, UOp | None], UOp]
Cell = Callable[[UOp], tuple[int, int]]


class Expressions:
    """Builds expressions; values for which `is_read` holds come from `read` instead.

    `cell` says where a CHECK of the graph reports to: a slot of the kernel, and a number there.
    """

    def __init__(self, is_read: Callable[[UOp], bool], read: Read, cell: Cell) -> None:
        self.is_read = is_read
        self.read = read
        self.cell = cell
        self.done: dict[Place, UOp] = {}
        self.atoms: dict[UOp, list[Place]] = {}
        self.gates: dict[UOp, frozenset[UOp]] = {}

    def build(self, node: UOp, indices: Indices, opened: bool = False) -> UOp:
        """The expression for node at indices; `opened`: compute it even if it is read."""
        root = Place(node, indices, ())
        if opened:
            below = self._below(root)
            self._walk(below)
            return self._make(root, below)
        self._walk([root])
        return self.done[root]

    def _walk(self, places: list[Place]) -> None:
        """Build these places, sources first, without recursion."""
        done = self.done
        stack: list[tuple[Place, list[Place] | None]] = [(place, None) for place in places[::-1]]
        while stack:
            place, below = stack.pop()
            if place in done:
                continue
            is_leaf = self.is_read(place.node)
            if below is not None:
                done[place] = self._load(place, below) if is_leaf else self._make(place, below)
                continue
            below = self._atoms(place) if is_leaf else self._below(place)
            stack.append((place, below))
            stack.extend([(source, None) for source in reversed(below) if source not in done])

    def _below(self, place: Place) -> list[Place]:
        """The places that the value at this place is computed from."""
        node, indices, conditions = place
        op = node.op
        if FALSE in conditions:
            return []
        if op in ELEMENTWISE:
            shape = node.shape
            return [
                Place(source, stretch(indices, shape, source.shape), conditions)
                for source in node.src
            ]
        if op is SCAN:
            is_alone = indices[node.arg[1]].op is not RANGE  # an axis of one element
            needed = node.src[:1] if is_alone else node.src
            return [Place(source, indices, conditions) for source in needed]
        if op is CHECK:
            source = Place(node.src[0], indices, conditions)
            return [source, *self._atoms(source)] if conditions else [source]
        if op is GATHER:
            moved, more = gathered(node, indices, all_of(conditions))
            source = Place(node.src[0], moved, _both(conditions, more))
            return [source, *self._atoms(source)]
        if op is CONST or op is VARIABLE or op is BIND:
            return []
        if op is IOTA:
            return self._atoms(place)
        moved, more = move(node, indices)
        source = Place(node.src[0], moved, _both(conditions, more))
        return [source, *self._atoms(source)] if more else [source]

    def _atoms(self, place: Place) -> list[Place]:
        """The graph values that occur inside of indices: those of gathers."""
        found: dict[Place, None] = {}
        for expression in (*place.indices, *place.conditions):
            if expression.op is CONST or expression.op is RANGE:
                continue
            atoms = self.atoms.get(expression)
            if atoms is None:
                nodes = expression.toposort(stop=_is_atom)
                atoms = self.atoms[expression] = [_atom_place(n) for n in nodes if _is_atom(n)]
            found |= dict.fromkeys(atoms)
        return list(found)

    def _resolved(self, place: Place, below: list[Place]) -> tuple[Indices, Conditions]:
        """Indices and conditions with the values of gathers put in."""
        if not below:
            return place.indices, place.conditions
        values = {_place_atom(atom): self.done[atom].cast(dtypes.index) for atom in below}
        indices = tuple([substitute(index, values) for index in place.indices])
        return indices, tuple([substitute(condition, values) for condition in place.conditions])

    def _load(self, place: Place, below: list[Place]) -> UOp:
        if FALSE in place.conditions:
            return const(0, place.node.dtype)
        indices, conditions = self._resolved(place, below)
        return self.read(place.node, indices, all_of(conditions))

    def _make(self, place: Place, below: list[Place]) -> UOp:
        node = place.node
        if FALSE in place.conditions:
            return const(0, node.dtype)
        if node.op in ELEMENTWISE:
            return UOp(
                node.op, node.dtype, tuple([self.done[source] for source in below]), node.arg
            )
        if node.op is SCAN:
            return self._scan(place, below)
        if node.op is CHECK:
            return self._check(place, below)
        if node.op is CONST or node.op is VARIABLE:
            return node
        if node.op is BIND:
            return node.src[0]
        if node.op is IOTA:
            return self._resolved(place, below)[0][0].cast(node.dtype)
        value = self.done[below[0]]
        if node.op not in GUARDED or value.op is LOAD:
            return value
        return self._guard(place, below[0], value)

    def _scan(self, place: Place, below: list[Place]) -> UOp:
        """Along a range of its kernel; where there is none, nothing comes before the element."""
        op, axis = place.node.arg
        values, along = [self.done[source] for source in below], place.indices[axis]
        if along.op is not RANGE:
            return values[0]
        return UOp(SCAN, place.node.dtype, (*values, along), op)

    def _check(self, place: Place, below: list[Place]) -> UOp:
        """Where nobody asks for an index, whatever stands there is no mistake."""
        node, value = place.node, self.done[below[0]]
        gate = all_of(self._resolved(place, below[1:])[1])
        if gate is not None:
            value = gate.where(value, value.const_like(0))
        return UOp(CHECK, node.dtype, (value,), (node.arg[0], *self.cell(node)))

    def _guard(self, place: Place, source: Place, value: UOp) -> UOp:
        """Outside of what is padded there are zeros; a load that is gated gives them by itself."""
        more = tuple([c for c in source.conditions if c not in place.conditions])
        if not more:
            return value
        inner = source._replace(conditions=more)
        gate = all_of(self._resolved(inner, self._atoms(inner))[1])
        if gate is None:
            return value
        if gate in self._gates_under(value):
            value = _opened(value, gate)
        return gate.where(value, const(0, value.dtype))

    def _gates_under(self, value: UOp) -> frozenset[UOp]:
        """The gates of all loads in an expression; each of its nodes is looked at once."""
        known = self.gates
        for node in value.toposort(stop=known.__contains__):
            if node not in known:
                gate = node.src[0].gate if node.op is LOAD else None
                own = NOTHING if gate is None else frozenset((gate,))
                is_last = _is_in_order(node)
                known[node] = own.union(*[] if is_last else [known[n] for n in node.src])
        return known[value]


def _opened(value: UOp, gate: UOp) -> UOp:
    """x[i, j if j < 5] · w[i if j < 5]  ->  x[i, j if j < 5] · w[i], where j < 5 is asked anyway

    A place that no range of the gate moves is there whether the gate is open or not.
    """
    opened: dict[UOp, UOp] = {}
    for node in value.toposort(stop=_is_in_order):
        if node.op is LOAD and node.src[0].gate is gate:
            buffer, *indices = node.src[0].src[:-1]
            if all(gate.ranges.isdisjoint(index.ranges) for index in indices):
                opened[node] = buffer.index(*indices).load()
    return substitute(value, opened) if opened else value


def _is_in_order(node: UOp) -> bool:
    return node.op is SCAN or node.op is CHECK


def _both(conditions: Conditions, more: Conditions) -> Conditions:
    return conditions if not more else tuple(dict.fromkeys(conditions + more))


def _is_atom(node: UOp) -> bool:
    return node.op is INDEX


def _atom_place(atom: UOp) -> Place:
    gate = atom.gate
    return Place(atom.src[0], atom.indices, () if gate is None else (gate,))


def _place_atom(place: Place) -> UOp:
    gate = all_of(place.conditions)
    rest = place.indices if gate is None else (*place.indices, gate)
    return UOp(INDEX, dtypes.index, (place.node, *rest))
