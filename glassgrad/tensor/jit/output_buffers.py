"""OutputBuffer, Output: what a replay hands out, in memory that nobody looks at."""

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
    """A view, without the storage; variables may decide its shape."""

    dtype: DType
    shape: Ints
    strides: Ints
    offset: int

    def on(self, storage: Storage, values: Bound) -> UOp:
        """The buffer that is seen through it."""
        shape = concrete(self.shape, values)
        return UOp(BUFFER, self.dtype, (), View(storage, self.dtype, shape, *self[2:]))


class OutputBlock:
    """Memory that was handed out once; again, when nobody can see it any more.

    `idle` is how many refer to it when nobody does who would mind.
    """

    __slots__ = ("idle", "nodes", "values")

    def __init__(self, nodes: list[UOp], values: Bound) -> None:
        self.nodes = nodes
        self.values = values  # that decided the shapes
        self.idle = self.references()

    @classmethod
    def new(cls, like: Storage, windows: list[BufferWindow], values: Bound) -> OutputBlock:
        """Memory of this size, which is not allocated yet."""
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
        """How many refer to the buffers, their views and their storage: more than when it was made?

        Ours stay, so that the sum only grows if somebody else refers to one of them. It is only
        compared with an earlier one: what the interpreter counts for its own sake does not matter.
        """
        first = self.nodes[0]
        count = getrefcount(first) + getrefcount(first.arg) + getrefcount(first.arg.storage)
        if len(self.nodes) > 1:
            count += sum([getrefcount(node) + getrefcount(node.arg) for node in self.nodes])
        return count


MAX_SPARE_BLOCK_BYTES = 1 << 20  # of more than this, no second block is kept


class OutputBuffer:
    """Memory that a replay fills and hands out.

    Callers often hold the last result while they ask for the next one, so two blocks take turns.
    """

    def __init__(self, base: int, like: Storage, windows: list[BufferWindow]) -> None:
        self.base = base
        self.like = like
        self.windows = windows
        self.last: OutputBlock | None = None
        self.other: OutputBlock | None = None
        self.is_new = False

    def ready(self, replayed: Replay) -> list[UOp]:
        """The buffers to hand out, in memory that nobody looks at."""
        last = self.last
        if last is None or last.references() != last.idle or last.values != replayed.values:
            last = self._next(replayed.values)
            replayed.set_base(self.base, last.address)
        last.nodes[0].arg.storage.holder = None  # those who saw it are gone
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
        """Let the next replay fill what these tensors hold, one for each window, unless somebody
        else can see it by then.
        """
        found = OutputBlock([tensor.uop for tensor in holders], replayed.values)
        found.idle = OutputBlock.new(self.like, self.windows, replayed.values).idle + len(holders)
        self.last = found
        replayed.set_base(self.base, found.address)

    def settle(self) -> None:
        """Those who hold it now are the ones that get it again."""
        if self.is_new and self.last is not None:
            self.last.idle = self.last.references()
            self.is_new = False


class Output(NamedTuple):
    """How a returned tensor is found after a replay: an argument, the tensor itself, a window of
    an argument's memory, or a window of what was made.
    """

    argument: int | None = None
    tensor: TensorCore | None = None
    window: BufferWindow | None = None
    made: int = 0
    number: int = 0

    @property
    def is_first_made(self) -> bool:
        """True if it is just the first window of the first memory that was made."""
        return self.argument is None and self.tensor is None and not (self.made or self.number)

    def tensor_of(self, kind: Any, made: list[list[UOp]], arguments: Sequence[TensorCore]) -> Any:
        if self.tensor is not None:
            return self.tensor
        if self.argument is not None and self.window is None:
            return arguments[self.argument]
        return kind._wrap_raw(self.node_of(made, arguments))

    def node_of(self, made: list[list[UOp]], arguments: Sequence[TensorCore]) -> UOp:
        """The buffer of something that was made, or of an argument or a part of one."""
        if self.argument is None:
            return made[self.made][self.number]
        argument: UOp = arguments[self.argument].uop
        if self.window is None:
            return argument
        view: View = argument.arg
        moved = self.window._replace(offset=self.window.offset + view.offset)
        return moved.on(view.storage, UNBOUND)
