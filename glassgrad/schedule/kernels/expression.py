"""A graph value at some indices -> a scalar expression under ranges, with gated loads."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from glassgrad.base.dtype import dtypes
from glassgrad.ir.divmod import FALSE, conjunction
from glassgrad.ir.facts import NO_RANGES, substitute
from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.uop import UOp, const
from glassgrad.schedule.movement import (
    Conditions,
    Indices,
    broadcast_indices,
    gather_indices,
    move,
)

INDEX, GATHER, CONST, IOTA, LOAD = Ops.INDEX, Ops.GATHER, Ops.CONST, Ops.IOTA, Ops.LOAD
BIND = Ops.BIND
VARIABLE, PAD, WINDOW_ADJOINT, RANGE = Ops.VARIABLE, Ops.PAD, Ops.WINDOW_ADJOINT, Ops.RANGE
ELEMENTWISE, CHECK, SCAN = OpGroup.ELEMENTWISE, Ops.CHECK, Ops.SCAN
GUARDED = frozenset((PAD, WINDOW_ADJOINT, GATHER))


class Access(NamedTuple):
    """A graph value at some indices; it is only read where the conditions hold."""

    node: UOp
    indices: Indices
    conditions: Conditions


Read = Callable[[UOp, Indices, UOp | None], UOp]
ErrorCell = Callable[[UOp], tuple[int, int]]


class Expressions:
    """Builds expressions; values for which `is_read` holds come from `read` instead.

    `error_cell` gives the slot and the number that a CHECK of the graph reports to.
    """

    def __init__(self, is_read: Callable[[UOp], bool], read: Read, error_cell: ErrorCell) -> None:
        self.is_read = is_read
        self.read = read
        self.error_cell = error_cell
        self.built: dict[Access, UOp] = {}
        self.atom_cache: dict[UOp, list[Access]] = {}
        self.gates: dict[UOp, frozenset[UOp]] = {}

    def build(self, node: UOp, indices: Indices, is_inlined: bool = False) -> UOp:
        """The expression for node at indices; `is_inlined`: compute it even if it is read."""
        root = Access(node, indices, ())
        if is_inlined:
            sources = self._sources(root)
            self._build_all(sources)
            return self._build_node(root, sources)
        self._build_all([root])
        return self.built[root]

    def _build_all(self, accesses: list[Access]) -> None:
        """Build these accesses, sources first, without recursion."""
        built = self.built
        stack: list[tuple[Access, list[Access] | None]] = [
            (access, None) for access in accesses[::-1]
        ]
        while stack:
            access, sources = stack.pop()
            if access in built:
                continue
            is_leaf = self.is_read(access.node)
            if sources is not None:
                built[access] = (
                    self._load(access, sources) if is_leaf else self._build_node(access, sources)
                )
                continue
            sources = self._index_atoms(access) if is_leaf else self._sources(access)
            stack.append((access, sources))
            stack.extend([(source, None) for source in reversed(sources) if source not in built])

    def _sources(self, access: Access) -> list[Access]:
        """The accesses that the value is computed from."""
        node, indices, conditions = access
        op = node.op
        if FALSE in conditions:
            return []
        if op in ELEMENTWISE:
            shape = node.shape
            return [
                Access(source, broadcast_indices(indices, shape, source.shape), conditions)
                for source in node.src
            ]
        if op is SCAN:
            is_alone = indices[node.arg[1]].op is not RANGE  # an axis of one element
            needed = node.src[:1] if is_alone else node.src
            return [Access(source, indices, conditions) for source in needed]
        if op is CHECK:
            source = Access(node.src[0], indices, conditions)
            return [source, *self._index_atoms(source)] if conditions else [source]
        if op is GATHER:
            moved, more = gather_indices(node, indices, conjunction(conditions))
            source = Access(node.src[0], moved, _union(conditions, more))
            return [source, *self._index_atoms(source)]
        if op is CONST or op is VARIABLE or op is BIND:
            return []
        if op is IOTA:
            return self._index_atoms(access)
        moved, more = move(node, indices)
        source = Access(node.src[0], moved, _union(conditions, more))
        return [source, *self._index_atoms(source)] if more else [source]

    def _index_atoms(self, access: Access) -> list[Access]:
        """The graph values that occur inside of indices: those of gathers."""
        found: dict[Access, None] = {}
        for expression in (*access.indices, *access.conditions):
            if expression.op is CONST or expression.op is RANGE:
                continue
            atoms = self.atom_cache.get(expression)
            if atoms is None:
                nodes = expression.toposort(stop=_is_atom)
                atoms = self.atom_cache[expression] = [
                    _access_of_atom(n) for n in nodes if _is_atom(n)
                ]
            found |= dict.fromkeys(atoms)
        return list(found)

    def _resolved(self, access: Access, sources: list[Access]) -> tuple[Indices, Conditions]:
        """Indices and conditions with the values of gathers substituted."""
        if not sources:
            return access.indices, access.conditions
        values = {_atom_of_access(atom): self.built[atom].cast(dtypes.index) for atom in sources}
        indices = tuple([substitute(index, values) for index in access.indices])
        return indices, tuple([substitute(condition, values) for condition in access.conditions])

    def _load(self, access: Access, sources: list[Access]) -> UOp:
        if FALSE in access.conditions:
            return const(0, access.node.dtype)
        indices, conditions = self._resolved(access, sources)
        return self.read(access.node, indices, conjunction(conditions))

    def _build_node(self, access: Access, sources: list[Access]) -> UOp:
        node = access.node
        if FALSE in access.conditions:
            return const(0, node.dtype)
        if node.op in ELEMENTWISE:
            return UOp(
                node.op, node.dtype, tuple([self.built[source] for source in sources]), node.arg
            )
        if node.op is SCAN:
            return self._scan(access, sources)
        if node.op is CHECK:
            return self._check(access, sources)
        if node.op is CONST or node.op is VARIABLE:
            return node
        if node.op is BIND:
            return node.src[0]
        if node.op is IOTA:
            return self._resolved(access, sources)[0][0].cast(node.dtype)
        value = self.built[sources[0]]
        if node.op not in GUARDED or value.op is LOAD:
            return value
        return self._guard(access, sources[0], value)

    def _scan(self, access: Access, sources: list[Access]) -> UOp:
        """A SCAN along a range of its kernel; without one, just the element."""
        op, axis = access.node.arg
        values, along = [self.built[source] for source in sources], access.indices[axis]
        if along.op is not RANGE:
            return values[0]
        return UOp(SCAN, access.node.dtype, (*values, along), op)

    def _check(self, access: Access, sources: list[Access]) -> UOp:
        """The CHECK; where its conditions do not hold, the index counts as valid."""
        node, value = access.node, self.built[sources[0]]
        gate = conjunction(self._resolved(access, sources[1:])[1])
        if gate is not None:
            value = gate.where(value, value.const_like(0))
        return UOp(CHECK, node.dtype, (value,), (node.arg[0], *self.error_cell(node)))

    def _guard(self, access: Access, source: Access, value: UOp) -> UOp:
        """The value inside of padding, else 0; a gated load gives 0 by itself."""
        more = tuple([c for c in source.conditions if c not in access.conditions])
        if not more:
            return value
        inner = source._replace(conditions=more)
        gate = conjunction(self._resolved(inner, self._index_atoms(inner))[1])
        if gate is None:
            return value
        if gate in self._gates_under(value):
            value = _drop_gate(value, gate)
        return gate.where(value, const(0, value.dtype))

    def _gates_under(self, value: UOp) -> frozenset[UOp]:
        """The gates of all loads in an expression, cached per node."""
        known = self.gates
        for node in value.toposort(stop=known.__contains__):
            if node not in known:
                gate = node.src[0].gate if node.op is LOAD else None
                own = NO_RANGES if gate is None else frozenset((gate,))
                is_sequential = _is_sequential(node)
                known[node] = own.union(*[] if is_sequential else [known[n] for n in node.src])
        return known[value]


def _drop_gate(value: UOp, gate: UOp) -> UOp:
    """x[i, j if j < 5] · w[i if j < 5]  ->  x[i, j if j < 5] · w[i], if the product is gated anyway

    An access whose indices do not depend on the gate's ranges is valid whether the gate is open or
    not.
    """
    ungated: dict[UOp, UOp] = {}
    for node in value.toposort(stop=_is_sequential):
        if node.op is LOAD and node.src[0].gate is gate:
            buffer, *indices = node.src[0].src[:-1]
            if all(gate.ranges.isdisjoint(index.ranges) for index in indices):
                ungated[node] = buffer.index(*indices).load()
    return substitute(value, ungated) if ungated else value


def _is_sequential(node: UOp) -> bool:
    return node.op is SCAN or node.op is CHECK


def _union(conditions: Conditions, more: Conditions) -> Conditions:
    return conditions if not more else tuple(dict.fromkeys(conditions + more))


def _is_atom(node: UOp) -> bool:
    return node.op is INDEX


def _access_of_atom(atom: UOp) -> Access:
    gate = atom.gate
    return Access(atom.src[0], atom.indices, () if gate is None else (gate,))


def _atom_of_access(access: Access) -> UOp:
    gate = conjunction(access.conditions)
    rest = access.indices if gate is None else (*access.indices, gate)
    return UOp(INDEX, dtypes.index, (access.node, *rest))
