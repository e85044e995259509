"""Values to compute -> GraphKey: the structure of their graph, taken in one walk.

What is computed together, in which order and with which plan depends only on the structure of the
graph and on which live tensors read which of its nodes. So where a loop computes the same again,
the keys are equal and the cached step runs (tensor/memo/step_cache.py): nothing is collected,
rebuilt or planned.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Any

from glassgrad.base.config import BEAM, NOOPT, VERIFY
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.tensor.autograd.gradient import Derivative
from glassgrad.tensor.lazy.buffer_versions import OVERWRITTEN, current_buffer, target_storage

BUFFER, CONST, ASSIGN, COPY = Ops.BUFFER, Ops.CONST, Ops.ASSIGN, Ops.COPY
DETACH, CUSTOM, BIND, DEFERRED = Ops.DETACH, Ops.CUSTOM, Ops.BIND, Ops.DEFERRED
SHRINK = Ops.SHRINK
SPECIAL_OPS = frozenset((ASSIGN, COPY, DETACH, CUSTOM, BIND, DEFERRED))
IN_MEMORY = "held"  # marks a node whose value is in the buffer that follows


class GraphKey:
    """A graph as a key: its nodes in the order of a walk, with a number for each repeated node.

    `numbers` has the nodes in order, `leaves` are the buffers among them.
    """

    __slots__ = (
        "graphs",
        "has_holders",
        "has_key",
        "has_writes",
        "held",
        "leaves",
        "numbers",
        "parts",
        "slices",
        "storages",
        "written",
    )  # fmt: skip

    def __init__(self) -> None:
        self.numbers: dict[UOp, int] = {}
        self.leaves: list[UOp] = []
        self.has_writes = False
        self.has_holders = False
        self.has_key = True  # not with bound variables or copies between devices
        self.parts: list[Any] = []
        self.storages: dict[int, int] = {}
        self.held: set[UOp] = set()  # nodes whose values are in memory
        self.graphs: list[UOp] = []  # nodes whose graphs gradients differentiate
        self.slices: list[UOp] = []
        self.written: set[int] = set()  # numbers of storages that are written

    def add(self, roots: Iterable[UOp]) -> None:
        """Append everything under these roots to the key."""
        stack = list(roots)
        parts, numbers = self.parts, self.numbers
        parts.append(len(stack))
        write, take, put = parts.append, stack.pop, stack.extend
        while stack:
            node = take()
            number = numbers.get(node)
            if number is not None:
                write(number)
                continue
            numbers[node] = len(numbers)
            op = node.op
            if op is BUFFER:
                self._write_buffer(node)
            elif node.realized is not None and current_buffer(node) is not None:
                write(IN_MEMORY)
                self.held.add(node)
                stack.append(node.realized)
            elif op is CONST:  # constants are interned, and the key keeps the node alive
                write(node)
            else:
                if op in SPECIAL_OPS:
                    self._write_special(node)
                elif op is SHRINK:
                    self.slices.append(node)
                    write((op, node.dtype, node.arg, len(node.src)))
                else:
                    write((op, node.dtype, node.arg, len(node.src)))
                put(node.src)

    def _write_buffer(self, node: UOp) -> None:
        """Append a buffer: its layout and the number of its storage. Its offset is a launch
        argument.
        """
        view, storages = node.arg, self.storages
        storage = view.storage
        number = storages.setdefault(id(storage), len(storages))
        self.parts.append((node.dtype, view.shape, view.strides, number, storage.device))
        self.leaves.append(node)

    def _write_special(self, node: UOp) -> None:
        """Append a node of SPECIAL_OPS, of which other parts matter than op, dtype and arg."""
        op, arg = node.op, node.arg
        if op is DEFERRED:
            if arg.sees_graph:
                self.graphs.append(node.src[0])
        elif op is DETACH:  # not which name makes it unique
            arg = arg is None
        elif op is CUSTOM:  # the gradients of other rules are in the graph
            arg = arg if isinstance(arg, Derivative) else None
        elif op is ASSIGN:
            self.has_writes = True
            storage = target_storage(node)
            self.written.add(self.storages.setdefault(id(storage), len(self.storages)))
        else:
            self.has_key = False
        self.parts.append((op, node.dtype, arg, len(node.src)))

    def add_holders(self, values: Sequence[UOp]) -> None:
        """Append the nodes that live tensors hold. Values in memory matter only if they may be
        written.
        """
        self.has_holders = True
        lazy: list[UOp] = []
        buffers: list[UOp] = []
        for value in values:  # thousands, most of them buffers
            held = value if value.op is BUFFER else current_buffer(value)
            if held is None:
                lazy.append(value)
            else:
                buffers.append(held)
        self.add(lazy)
        self.parts.append(tuple([self.numbers[held] for held in buffers if held in self.numbers]))

    def add_graphs(self, windows: Container[UOp]) -> None:
        """Append the graphs that deferred gradients differentiate, in memory or not; no gradient
        flows through slice windows.
        """
        seen: set[UOp] = set()
        stack = list(self.graphs) if self.held else []
        while stack:
            node = stack.pop()
            if node in seen or node in windows:
                continue
            seen.add(node)
            if node in self.held:
                self.parts.append(self.numbers[node])
                self._write_special(node) if node.op in SPECIAL_OPS else self.parts.append(
                    (node.op, node.dtype, node.arg, len(node.src))
                )
                self.add(node.src)
            stack.extend(node.src)

    def key(self) -> tuple[Any, ...]:
        """The key: equal if everything is equal that decides how to compute the first values."""
        settings = (NOOPT.value, BEAM.value, VERIFY.was_changed and VERIFY.value)
        return (*settings, *self._overlaps(), *self.parts)

    def _overlaps(self) -> list[tuple[int, int]]:
        """Relative offsets of buffers in written storages, which may overlap."""
        first: dict[int, int] = {}
        found = []
        for leaf in self.leaves if self.written else ():
            number = self.storages[id(leaf.arg.storage)]
            if number in self.written:
                start = first.setdefault(number, leaf.arg.offset)
                found.append((number, leaf.arg.offset - start))
        return found

    def is_intact(self) -> bool:
        """True if no leaf was overwritten by a replay."""
        return not OVERWRITTEN or not any(leaf.arg in OVERWRITTEN for leaf in self.leaves)
