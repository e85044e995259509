"""UOp: the one node type of the graph: an op, a dtype, sources and an argument; immutable."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import count
from operator import attrgetter
from typing import Any
from weakref import ref

from glassgrad.base.dtype import ConstType, DType, dtypes, wrap
from glassgrad.ir.ops import AxisKind, OpGroup, Ops
from glassgrad.ir.shape import SHAPE_OF, Shape

_number = attrgetter("number")
Key = tuple[Ops, DType, tuple["UOp", ...], Any]


class _NodeRef(ref["UOp"]):
    """A weak reference that knows the key of its node in NODES."""

    __slots__ = ("key",)
    key: Key


NODES: dict[Key, _NodeRef] = {}
# Looking up an Enum member takes 100 ns on Python 3.11; a global takes 5.
CONST, INDEX, REDUCE, SCAN, STORE = Ops.CONST, Ops.INDEX, Ops.REDUCE, Ops.SCAN, Ops.STORE
COMPARISON = OpGroup.COMPARISON
_numbers = count()


def _drop_node(node_ref: ref[UOp]) -> None:
    key: Key = node_ref.key  # type: ignore[attr-defined]
    if NODES.get(key) is node_ref:
        gone = NODES.pop(key, node_ref)
        if gone is not node_ref:  # meanwhile another thread dropped it and registered a new node
            NODES.setdefault(key, gone)


def set_realized(node: UOp, buffer: UOp) -> None:
    """Set the buffer that holds a node's value, for all holders of the node. The same expression
    written again becomes another node: the memory that it reads may have changed meanwhile.
    """
    if node.op is CONST:  # a constant keeps its value
        return
    node.realized = buffer
    key = (node.op, node.dtype, node.src, node.arg)
    node_ref = NODES.get(key)
    if node_ref is not None and node_ref() is node:
        NODES.pop(key, None)


def next_number() -> int:
    """Nodes created later have larger numbers."""
    return next(_numbers)


def _key_arg(arg: Any) -> Any:
    """Distinguish floats by bits: 0.0 is not -0.0, and nan is nan."""
    if arg == 0.0:
        return "-0" if math.copysign(1.0, arg) < 0 else 0.0
    return arg if arg == arg else "nan"


class UOp:
    """One node of a graph. Two nodes with the same op, dtype, src and arg are the same object,
    until the value of one is computed: see `set_realized`.

    `shape` is the shape of the value in the graph and () in kernels and programs. `number` grows
    with creation, so sources have smaller numbers and sorting by it is a topological order.
    """

    __slots__ = (
        "__weakref__", "_bounds", "_linear", "_order", "_ranges", "arg", "dtype", "history",
        "number", "op", "origin", "parameters", "realized", "shape", "src",
    )  # fmt: skip

    op: Ops
    dtype: DType
    src: tuple[UOp, ...]
    arg: Any
    number: int
    shape: Shape
    origin: Any  # the user's line (base/origin.py)
    realized: Any  # the BUFFER node that holds this value, once computed
    history: Any  # of a BUFFER: the operation that computed it, if gradients may flow there
    parameters: Any  # weak references to the tensors that held it as a parameter
    _bounds: tuple[Any, Any] | None
    _ranges: frozenset[UOp] | None
    _linear: Any  # cache of ir/linear.py
    _order: tuple[Any, ...] | None

    def __new__(
        cls, op: Ops, dtype: DType = dtypes.void, src: tuple[UOp, ...] = (), arg: Any = None
    ) -> UOp:
        if op is CONST:
            arg = wrap(arg, dtype)
            key: Key = (op, dtype, src, _key_arg(arg) if type(arg) is float else arg)
        else:
            key = (op, dtype, src, arg)
        node_ref = NODES.get(key)
        if node_ref is not None and (found := node_ref()) is not None:
            return found
        node = object.__new__(cls)
        node.op = op
        node.dtype = dtype
        node.src = src
        node.arg = arg
        node.origin = node.realized = node.history = node.parameters = None
        node._bounds = node._ranges = node._linear = node._order = None
        node.shape = SHAPE_OF[op](node)
        node.number = next(_numbers)
        node_ref = _NodeRef(node, _drop_node)
        node_ref.key = key
        # Another thread may have created the same node meanwhile: the first one wins.
        while (other := NODES.setdefault(key, node_ref)) is not node_ref:
            if (winner := other()) is not None:
                return winner
            _drop_node(other)
        return node

    def __reduce__(self) -> tuple[Callable[..., UOp], tuple[Any, ...]]:
        return UOp, (self.op, self.dtype, self.src, self.arg)

    def __repr__(self) -> str:
        from glassgrad.ir.show import show

        return show(self)

    # ------------------------------------------------------------------ making other nodes

    def replace(self, **changes: Any) -> UOp:
        """The same node with some of op, dtype, src, arg changed."""
        fields = {"op": self.op, "dtype": self.dtype, "src": self.src, "arg": self.arg}
        return UOp(**(fields | changes))

    def alu(self, op: Ops, *others: UOp) -> UOp:
        """An elementwise op of this node and others; comparisons give bool."""
        if op in COMPARISON:
            return UOp(op, dtypes.bool.vec(self.dtype.count), (self, *others))
        return UOp(op, (others[-1] if others else self).dtype, (self, *others))

    def const_like(self, value: ConstType) -> UOp:
        """A scalar constant of this node's dtype."""
        return UOp(CONST, self.dtype, (), value)

    def _operand(self, value: UOp | ConstType) -> UOp:
        return value if isinstance(value, UOp) else self.const_like(value)

    def cast(self, dtype: DType) -> UOp:
        return self if dtype is self.dtype else UOp(Ops.CAST, dtype, (self,))

    def bitcast(self, dtype: DType) -> UOp:
        return self if dtype is self.dtype else UOp(Ops.BITCAST, dtype, (self,))

    def where(self, yes: UOp, no: UOp) -> UOp:
        return self.alu(Ops.WHERE, yes, no)

    def load(self) -> UOp:
        """The element at this INDEX."""
        return UOp(Ops.LOAD, self.dtype, (self,))

    def index(self, *indices: UOp, gate: UOp | None = None) -> UOp:
        """An INDEX of this buffer, STAGE or STORE."""
        src = (self, *indices) if gate is None else (self, *indices, gate)
        # A STORE has no value; reading it gives the stored value.
        dtype = self.src[1].dtype if self.op is Ops.STORE else self.dtype
        return UOp(INDEX, dtype, src)

    def __add__(self, other: UOp | ConstType) -> UOp:
        return self.alu(Ops.ADD, self._operand(other))

    def __sub__(self, other: UOp | ConstType) -> UOp:
        return self.alu(Ops.SUB, self._operand(other))

    def __mul__(self, other: UOp | ConstType) -> UOp:
        return self.alu(Ops.MUL, self._operand(other))

    def __floordiv__(self, other: UOp | ConstType) -> UOp:
        return self.alu(Ops.FLOORDIV, self._operand(other))

    def __mod__(self, other: UOp | ConstType) -> UOp:
        return self.alu(Ops.FLOORMOD, self._operand(other))

    def __and__(self, other: UOp | ConstType) -> UOp:
        return self.alu(Ops.AND, self._operand(other))

    def __or__(self, other: UOp | ConstType) -> UOp:
        return self.alu(Ops.OR, self._operand(other))

    def __xor__(self, other: UOp | ConstType) -> UOp:
        return self.alu(Ops.XOR, self._operand(other))

    def __lshift__(self, other: UOp | ConstType) -> UOp:
        return self.alu(Ops.SHL, self._operand(other))

    def __rshift__(self, other: UOp | ConstType) -> UOp:
        return self.alu(Ops.SHR, self._operand(other))

    def __neg__(self) -> UOp:
        return self.alu(Ops.NEG)

    def __lt__(self, other: UOp | ConstType) -> UOp:
        return self.alu(Ops.CMPLT, self._operand(other))

    def eq(self, other: UOp | ConstType) -> UOp:
        return self.alu(Ops.CMPEQ, self._operand(other))

    def ne(self, other: UOp | ConstType) -> UOp:
        return self.alu(Ops.CMPNE, self._operand(other))

    def maximum(self, other: UOp | ConstType) -> UOp:
        return self.alu(Ops.MAX, self._operand(other))

    def minimum(self, other: UOp | ConstType) -> UOp:
        return self.alu(Ops.MIN, self._operand(other))

    # ------------------------------------------------------------------ reading one node

    @property
    def is_const(self) -> bool:
        return self.op is CONST

    @property
    def buffer(self) -> UOp:
        """The buffer of an INDEX, LOAD or STORE of a kernel."""
        index = self if self.op is INDEX else self.src[0]
        return index.src[0]

    @property
    def gate(self) -> UOp | None:
        """The condition of an INDEX, if it has one."""
        last = self.src[-1]
        return last if last.dtype.kind == "bool" and len(self.src) > 1 else None

    @property
    def indices(self) -> tuple[UOp, ...]:
        """One index per axis of an INDEX."""
        return self.src[1:] if self.gate is None else self.src[1:-1]

    @property
    def bound(self) -> tuple[UOp, ...]:
        """The ranges that a REDUCE, SCAN, STORE or STAGE runs over, outermost first.

        The ranges of a SCAN remain free in it: it has a value at each of their steps.
        """
        op = self.op
        if op is REDUCE:
            return self.src[1:]
        if op is SCAN:
            return self.src[2 if self.arg is Ops.MULACC else 1 :]
        return self.src[2:] if op is STORE else self.src[1 + len(self.arg) :]

    @property
    def value(self) -> UOp:
        """The value a REDUCE, SCAN, STORE or STAGE computes at each step of its ranges."""
        return self.src[1] if self.op is STORE else self.src[0]

    @property
    def scratch_indices(self) -> tuple[UOp, ...]:
        """The indices a STAGE writes to: one per axis of its shape."""
        return self.src[1 : 1 + len(self.arg)]

    @property
    def kind(self) -> AxisKind:
        """The kind of a RANGE."""
        kind: AxisKind = self.arg[1]
        return kind

    @property
    def axis(self) -> int:
        """The axis number of a RANGE."""
        number: int = self.arg[0]
        return number

    @property
    def size(self) -> int:
        """The number of values of a RANGE; the largest possible if only known at launch."""
        bound = self.src[0]
        size: int = bound.arg if bound.op is CONST else bound.vmax
        return size

    # ------------------------------------------------------------------ facts, computed once

    @property
    def ranges(self) -> frozenset[UOp]:
        """The free ranges of this expression."""
        found = self._ranges
        if found is None:
            from glassgrad.ir.facts import free_ranges

            found = free_ranges(self)
        return found

    @property
    def bounds(self) -> tuple[Any, Any]:
        """The smallest and largest possible value of an integer expression."""
        found = self._bounds
        if found is None:
            from glassgrad.ir.facts import find_bounds

            found = find_bounds(self)
        return found

    @property
    def vmin(self) -> Any:
        return self.bounds[0]

    @property
    def vmax(self) -> Any:
        return self.bounds[1]

    # ------------------------------------------------------------------ walking

    def toposort(self, stop: Callable[[UOp], bool] | None = None) -> list[UOp]:
        """All nodes under this one, sources first, itself last. Nodes for which `stop` is true are
        leaves.
        """
        return toposort((self,), stop)

    def substitute(self, changes: dict[UOp, UOp]) -> UOp:
        """The expression with some nodes replaced."""
        from glassgrad.ir.facts import substitute

        return substitute(self, changes)


def toposort(roots: Iterable[UOp], stop: Callable[[UOp], bool] | None = None) -> list[UOp]:
    """All nodes under the roots, sources first."""
    found = list(dict.fromkeys(roots))
    seen = set(found)
    add, append = seen.add, found.append  # bound once: this is the hottest loop of the package
    for node in found:
        if stop is None or not stop(node):
            for source in node.src:
                if source not in seen:
                    add(source)
                    append(source)
    found.sort(key=_number)
    return found


def const(value: ConstType, dtype: DType = dtypes.index) -> UOp:
    return UOp(CONST, dtype, (), value)


def variable(name: str, smallest: int, largest: int) -> UOp:
    """An integer that is bound at launch."""
    return UOp(Ops.VARIABLE, dtypes.index, (), (name, smallest, largest))


def make_range(number: int, size: UOp | int, kind: AxisKind = AxisKind.LOOP) -> UOp:
    """0 ≤ i < size."""
    bound = size if isinstance(size, UOp) else const(size)
    return UOp(Ops.RANGE, dtypes.index, (bound,), (number, kind))
