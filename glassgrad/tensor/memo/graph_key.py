"""values to compute -> Outline: one walk writes their structure down, to know them again.

What must be computed together, in which order and by which plan depends on the structure of the
graph alone, and on which of the living tensors are made of what. So where a loop computes the same
again, the outline is the same, and the course that the first time took is followed
(tensor/memo/step_cache.py): nothing is collected, rebuilt or planned.
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
IN_MEMORY = "held"  # a node whose value is in the buffer that follows


class GraphKey:
    """A graph as a key: its nodes in the order of a walk, and as a number where one is met again.

    `numbers` has the nodes in order, `leaves` are the buffers among them.
    """

    __slots__ = (
        "graphs", "has_holders", "has_writes", "held", "is_plain", "leaves", "numbers",
        "slices", "storages", "words", "written",
    )  # fmt: skip

    def __init__(self) -> None:
        self.numbers: dict[UOp, int] = {}
        self.leaves: list[UOp] = []
        self.has_writes = False
        self.has_holders = False
        self.is_plain = True  # values of variables and other devices are not written
        self.words: list[Any] = []
        self.storages: dict[int, int] = {}
        self.held: set[UOp] = set()  # nodes that are in memory
        self.graphs: list[UOp] = []  # nodes whose graph counts, not only their value
        self.slices: list[UOp] = []
        self.written: set[int] = set()  # storages, by their numbers

    def add(self, roots: Iterable[UOp]) -> None:
        """Write down everything under these."""
        stack = list(roots)
        words, numbers = self.words, self.numbers
        words.append(len(stack))
        write, take, put = words.append, stack.pop, stack.extend
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
            elif op is CONST:  # there is one node for each number, and the key keeps it
                write(node)
            else:
                if op in SPECIAL_OPS:
                    self._write_unusual(node)
                elif op is SHRINK:
                    self.slices.append(node)
                    write((op, node.dtype, node.arg, len(node.src)))
                else:
                    write((op, node.dtype, node.arg, len(node.src)))
                put(node.src)

    def _write_buffer(self, node: UOp) -> None:
        """Write where a buffer lies: which storage it is of those that are met. Where it begins
        there is an argument of the launch.
        """
        view, storages = node.arg, self.storages
        storage = view.storage
        number = storages.setdefault(id(storage), len(storages))
        self.words.append((node.dtype, view.shape, view.strides, number, storage.device))
        self.leaves.append(node)

    def _write_unusual(self, node: UOp) -> None:
        """Write a node of which something else counts than for most."""
        op, arg = node.op, node.arg
        if op is DEFERRED:
            if arg.sees_graph:
                self.graphs.append(node.src[0])
        elif op is DETACH:  # if it has a name, only that it has one
            arg = arg is None
        elif op is CUSTOM:  # other rules have made their gradients already
            arg = arg if isinstance(arg, Derivative) else None
        elif op is ASSIGN:
            self.has_writes = True
            storage = target_storage(node)
            self.written.add(self.storages.setdefault(id(storage), len(self.storages)))
        else:
            self.is_plain = False
        self.words.append((op, node.dtype, arg, len(node.src)))

    def add_holders(self, values: Sequence[UOp]) -> None:
        """Write down what living tensors hold. What is in memory matters if it may be written."""
        self.has_holders = True
        self.add([value for value in values if current_buffer(value) is None])
        buffers = [held for value in values if (held := current_buffer(value)) is not None]
        self.words.append(tuple([self.numbers[held] for held in buffers if held in self.numbers]))

    def add_graphs(self, windows: Container[UOp]) -> None:
        """Write down what gradients are gradients of, also where it is in memory; no gradient flows
        through windows.
        """
        seen: set[UOp] = set()
        stack = list(self.graphs) if self.held else []
        while stack:
            node = stack.pop()
            if node in seen or node in windows:
                continue
            seen.add(node)
            if node in self.held:
                self.words.append(self.numbers[node])
                self._write_unusual(node) if node.op in SPECIAL_OPS else self.words.append(
                    (node.op, node.dtype, node.arg, len(node.src))
                )
                self.add(node.src)
            stack.extend(node.src)

    def key(self) -> tuple[Any, ...]:
        """Equal where all is equal that decides on how to compute the first values."""
        settings = (NOOPT.value, BEAM.value, VERIFY.is_touched and VERIFY.value)
        return (*settings, *self._overlaps(), *self.words)

    def _overlaps(self) -> list[tuple[int, int]]:
        """Where in a storage that is written to its buffers begin: some may lie in each other."""
        first: dict[int, int] = {}
        found = []
        for leaf in self.leaves if self.written else ():
            number = self.storages[id(leaf.arg.storage)]
            if number in self.written:
                start = first.setdefault(number, leaf.arg.offset)
                found.append((number, leaf.arg.offset - start))
        return found

    def is_sound(self) -> bool:
        """Whether nothing of it was overwritten by a replay."""
        return not OVERWRITTEN or not any(leaf.arg in OVERWRITTEN for leaf in self.leaves)
