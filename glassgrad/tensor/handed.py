"""Made, Output: what a replay hands out, in memory that nobody looks at."""

from __future__ import annotations

from collections.abc import Sequence
from sys import getrefcount
from typing import Any, NamedTuple

from glassgrad.base.dtype import DType
from glassgrad.engine.capture import Replay
from glassgrad.ir.ops import Ops
from glassgrad.ir.size import UNBOUND, Bound, concrete
from glassgrad.ir.uop import UOp
from glassgrad.memory.storage import Storage
from glassgrad.memory.view import View
from glassgrad.tensor.core import Core

BUFFER = Ops.BUFFER
Ints = tuple[int, ...]


class Window(NamedTuple):
    """A view, without the storage; variables may decide its shape."""

    dtype: DType
    shape: Ints
    strides: Ints
    offset: int

    def on(self, storage: Storage, values: Bound) -> UOp:
        """The buffer that is seen through it."""
        shape = concrete(self.shape, values)
        return UOp(BUFFER, self.dtype, (), View(storage, self.dtype, shape, *self[2:]))


class Made:
    """Memory that a replay fills and hands out; used again once nobody can see it any more."""

    def __init__(self, base: int, like: Storage, windows: list[Window]) -> None:
        self.base = base
        self.like = like
        self.windows = windows
        self.values: Bound = UNBOUND  # that decided the shapes
        self.idle: tuple[int, ...] = ()
        self.nodes: list[UOp] = []
        self.is_new = False

    def ready(self, replayed: Replay) -> list[UOp]:
        """The buffers to hand out, in memory that nobody looks at."""
        values = replayed.values
        if not self.nodes or self.values != values or self._references() != self.idle:
            self.values = values
            storage = Storage(self.like.device, self.like.size, self.like.dtype)
            replayed.point(self.base, storage.ensure_allocated(zeroed=False).address)
            self.nodes = [window.on(storage, values) for window in self.windows]
            del storage
            self.idle = self._references()
            self.is_new = True
        return self.nodes

    def settle(self) -> None:
        """Those who hold it now are the ones that get it again."""
        if self.is_new:
            self.idle = self._references()
            self.is_new = False

    def _references(self) -> tuple[int, ...]:
        """How many refer to each buffer, its view, its storage: more than when it was made?"""
        counts = [getrefcount(node) for node in self.nodes]
        counts += [getrefcount(node.arg) for node in self.nodes]
        return *counts, getrefcount(self.nodes[0].arg.storage)


class Output(NamedTuple):
    """How a returned tensor is found after a replay: an argument, the tensor itself, a window of
    an argument's memory, or a window of what was made.
    """

    argument: int | None = None
    tensor: Core | None = None
    window: Window | None = None
    made: int = 0
    number: int = 0

    @property
    def is_first_made(self) -> bool:
        """Whether it is just the first window of the first memory that was made."""
        return self.argument is None and self.tensor is None and not (self.made or self.number)

    def tensor_of(self, kind: Any, made: list[list[UOp]], arguments: Sequence[Core]) -> Any:
        if self.tensor is not None:
            return self.tensor
        if self.argument is None:
            return kind._of(made[self.made][self.number])
        if self.window is None:
            return arguments[self.argument]
        view: View = arguments[self.argument].uop.arg
        moved = self.window._replace(offset=self.window.offset + view.offset)
        return kind._of(moved.on(view.storage, UNBOUND))
