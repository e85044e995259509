"""Graphs -> keys: equal structure shares a plan, equal kernels share code."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

from glassgrad.base.config import BEAM, NOOPT, VERIFY
from glassgrad.base.errors import ShapeError
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Launch
from glassgrad.ir.uop import UOp
from glassgrad.memory.storage import Storage

if TYPE_CHECKING:
    from glassgrad.engine.plan.plan import Plan

T = TypeVar("T")
ASSIGN, BUFFER, COPY, CUSTOM, BIND = Ops.ASSIGN, Ops.BUFFER, Ops.COPY, Ops.CUSTOM, Ops.BIND


class Cache(Generic[T]):
    """A least-recently-used cache."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.clear_count = 0  # calls of clear()
        self.entries: OrderedDict[Any, T] = OrderedDict()
        self.lock = Lock()

    def get(self, key: Any) -> T | None:
        with self.lock:
            value = self.entries.get(key)
            if value is not None:
                self.entries.move_to_end(key)
            return value

    def __setitem__(self, key: Any, value: T) -> None:
        with self.lock:
            self.entries[key] = value
            if len(self.entries) > self.capacity:
                self.entries.popitem(last=False)

    def __len__(self) -> int:
        return len(self.entries)

    def clear(self) -> None:
        with self.lock:
            self.clear_count += 1
            self.entries.clear()


KERNELS: Cache[Launch] = Cache(4096)
PLANS: Cache[Plan] = Cache(256)


class Signature(NamedTuple):
    """What one walk over a graph finds.

    The key is equal for graphs of equal structure; leaves are the buffers in order of appearance,
    copies the COPY nodes, values those of variables.
    """

    key: tuple[Any, ...]
    leaves: list[UOp]
    copies: list[UOp]
    values: dict[UOp, int]


def signature(roots: Sequence[UOp]) -> Signature:
    """Sources first. A buffer's entry is its dtype, its layout and the number of its storage in
    this graph; never its address, its version or its offset, which are arguments of the launch.
    """
    numbers: dict[UOp, int] = {}
    storages: dict[int, int] = {}
    entries: list[Any] = []
    leaves: list[UOp] = []
    copies: list[UOp] = []
    values: dict[UOp, int] = {}
    writes: list[UOp] = []
    stack = list(reversed(roots))
    while stack:
        node = stack[-1]
        if node in numbers:
            stack.pop()
            continue
        op = node.op
        if op is BUFFER:
            stack.pop()
            view = node.arg
            storage = storages.setdefault(id(view.storage), len(storages))
            numbers[node] = len(entries)
            entries.append((node.dtype, view.shape, view.strides, storage))
            leaves.append(node)
            continue
        below: tuple[UOp, ...] = node.src if node.realized is None else (node.realized,)
        if op is CUSTOM:  # a custom gradient does not change the value
            below = below[:1]
        height = len(stack)
        for source in below[::-1]:
            if source not in numbers:
                stack.append(source)
        if len(stack) > height:
            continue
        stack.pop()
        if node.realized is not None or op is CUSTOM:
            numbers[node] = numbers[below[0]]
            continue
        numbers[node] = len(entries)
        if op is BIND:
            if values.setdefault(node.src[0], node.arg) != node.arg:
                raise _conflicting_values(node, values[node.src[0]])
            entries.append(node.src[0].arg)
            continue
        sources = tuple([numbers[source] for source in below])
        # Floats by their bits: 0.0 differs from -0.0, and nan equals nan.
        arg = node.arg.hex() if type(node.arg) is float else node.arg
        entries.append((op, node.dtype, arg, sources))
        if op in (COPY, ASSIGN):
            (copies if op is COPY else writes).append(node)
    entries += _overlaps(leaves, {_storage(write) for write in writes})
    ends = tuple([numbers[root] for root in roots])
    key = (NOOPT.value, BEAM.value, VERIFY.was_changed and VERIFY.value, ends, *entries)
    return Signature(key, leaves, copies, values)


def _storage(write: UOp) -> Storage:
    """The storage that a chain of writes ends in."""
    while write.op is not BUFFER:
        write = write.src[0] if write.realized is None else write.realized
    return cast(Storage, write.arg.storage)


def _overlaps(leaves: Sequence[UOp], written: set[Storage]) -> list[tuple[int, int]]:
    """The relative offsets of buffers in storages that are written to, as these may overlap."""
    first: dict[Storage, int] = {}
    entries = []
    for number, leaf in enumerate(leaves if written else ()):
        if leaf.arg.storage in written:
            start = first.setdefault(leaf.arg.storage, leaf.arg.offset)
            entries.append((number, leaf.arg.offset - start))
    return entries


def _conflicting_values(node: UOp, other: int) -> ShapeError:
    name = node.src[0].arg[0]
    return ShapeError(
        f"variable {name} is bound to {other} and to {node.arg} in one expression",
        hint="realize() the result with the first value, or use two variables",
    )


def clear() -> None:
    """Drop all plans and kernels in memory."""
    PLANS.clear()
    KERNELS.clear()
