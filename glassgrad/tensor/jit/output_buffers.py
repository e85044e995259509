"""OutputBuffer, Output: the memory of the tensors that a replay returns."""

from __future__ import annotations

from collections.abc import Sequence
from sys import getrefcount
from typing import Any, NamedTuple

from glassgrad.base.dtype import DType
from glassgrad.engine.capture.replay import Replay
from glassgrad.ir.ops import Ops
from glassgrad.ir.size import UNBOUND, Bound, concrete
from glassgrad.ir.uop import UOp
from glassgrad.memory.storage import Storage
from glassgrad.memory.view import View
from glassgrad.tensor.core import TensorCore

BUFFER = Ops.BUFFER
Ints = tuple[int, ...]


class BufferWindow(NamedTuple):
    """A view without its storage; variables may decide its shape."""

    dtype: DType
    shape: Ints
    strides: Ints
    offset: int

    def on(self, storage: Storage, values: Bound) -> UOp:
        """The BUFFER node of this window on a storage."""
        shape = concrete(self.shape, values)
        return UOp(BUFFER, self.dtype, (), View(storage, self.dtype, shape, *self[2:]))


class OutputBlock:
    """A block of returned memory, reused once nothing outside refers to it.

    `idle` is the reference count without outside references.
    """

    __slots__ = ("idle", "nodes", "values")

    def __init__(self, nodes: list[UOp], values: Bound) -> None:
        self.nodes = nodes
        self.values = values  # of the variables in the shapes
        self.idle = self.references()

    @classmethod
    def new(cls, like: Storage, windows: list[BufferWindow], values: Bound) -> OutputBlock:
        """A block of the size of `like`, not allocated yet."""
        storage = Storage(like.device, like.size, like.dtype)
        nodes = [window.on(storage, values) for window in windows]
        del storage
        return cls(nodes, values)

    def allocate(self) -> OutputBlock:
        self.nodes[0].arg.storage.allocate(zeroed=False)
        return self

    @property
    def address(self) -> int:
        address: int = self.nodes[0].arg.storage.address
        return address

    def references(self) -> int:
        """The sum of the reference counts of the nodes, their views and their storage.

        Our own references stay, so the sum exceeds `idle` only if something outside refers to one
        of them. Counts are only compared with earlier counts of the same code, as interpreters
        count differently.
        """
        first = self.nodes[0]
        count = getrefcount(first) + getrefcount(first.arg) + getrefcount(first.arg.storage)
        if len(self.nodes) > 1:
            count += sum([getrefcount(node) + getrefcount(node.arg) for node in self.nodes])
        return count


MAX_SPARE_BLOCK_BYTES = 1 << 20  # larger outputs keep no second block


class OutputBuffer:
    """The memory of one output of a replay.

    Callers often hold the last result while they ask for the next one, so two blocks alternate.
    """

    def __init__(self, base: int, like: Storage, windows: list[BufferWindow]) -> None:
        self.base = base
        self.like = like
        self.windows = windows
        self.last: OutputBlock | None = None
        self.other: OutputBlock | None = None
        self.is_new = False

    def ready(self, replayed: Replay) -> list[UOp]:
        """The nodes of a block that nothing outside refers to."""
        last = self.last
        if last is None or last.references() != last.idle or last.values != replayed.values:
            last = self._next(replayed.values)
            replayed.set_base(self.base, last.address)
        last.nodes[0].arg.storage.holder = None  # no library shares it any more
        return last.nodes

    def _next(self, values: Bound) -> OutputBlock:
        found = self.other
        if found is None or found.references() != found.idle or found.values != values:
            found = OutputBlock.new(self.like, self.windows, values).allocate()
            self.is_new = True
        self.other = self.last if self.like.nbytes <= MAX_SPARE_BLOCK_BYTES else None
        self.last = found
        return found

    def adopt(self, holders: list[TensorCore], replayed: Replay) -> None:
        """Let the next replay refill the memory that these tensors hold, one for each window,
        unless something else refers to it by then.
        """
        found = OutputBlock([tensor.uop for tensor in holders], replayed.values)
        found.idle = OutputBlock.new(self.like, self.windows, replayed.values).idle + len(holders)
        self.last = found
        replayed.set_base(self.base, found.address)

    def settle(self) -> None:
        """Count the present references to a new block as its idle count."""
        if self.is_new and self.last is not None:
            self.last.idle = self.last.references()
            self.is_new = False


class Output(NamedTuple):
    """How to find a returned tensor after a replay: an argument, a fixed tensor, a window of an
    argument's memory, or a window of output memory.
    """

    argument: int | None = None
    tensor: TensorCore | None = None
    window: BufferWindow | None = None
    made: int = 0
    number: int = 0

    @property
    def is_first_made(self) -> bool:
        """True for the first window of the first output buffer."""
        return self.argument is None and self.tensor is None and not (self.made or self.number)

    def tensor_of(self, kind: Any, made: list[list[UOp]], arguments: Sequence[TensorCore]) -> Any:
        if self.tensor is not None:
            return self.tensor
        if self.argument is not None and self.window is None:
            return arguments[self.argument]
        return kind._wrap_raw(self.node_of(made, arguments))

    def node_of(self, made: list[list[UOp]], arguments: Sequence[TensorCore]) -> UOp:
        """The BUFFER node of an output, an argument, or a window of an argument."""
        if self.argument is None:
            return made[self.made][self.number]
        argument: UOp = arguments[self.argument].uop
        if self.window is None:
            return argument
        view: View = argument.arg
        moved = self.window._replace(offset=self.window.offset + view.offset)
        return moved.on(view.storage, UNBOUND)
