"""CapturedTensor: memory of outside tensors that a captured function reads or writes."""

from __future__ import annotations

from collections.abc import Iterable
from weakref import ref

from glassgrad.base.fast_dataclasses import slotted
from glassgrad.base.origin import Origin
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.memory.storage import Storage
from glassgrad.memory.view import View
from glassgrad.tensor.core import TensorCore, live_tensors
from glassgrad.tensor.jit.references import UNSHARED_COUNT, references_to_node
from glassgrad.tensor.lazy.buffer_versions import OVERWRITTEN
from glassgrad.tensor.lazy.realize import realize
from glassgrad.tensor.lazy.views import ViewGroup, root_storage, set_contents

BUFFER = Ops.BUFFER


@slotted
class CapturedTensor:
    """Memory that outside tensors hold. Replays read its contents of the moment."""

    storage: Storage
    holders: list[ref[TensorCore]]
    is_written: bool

    def is_held(self) -> bool:
        """True if all holders still hold this memory. A holder that moved may be the one that the
        function reads, and without any holder it is unknown what the function reads now.
        """
        here = moved = False
        for held in self.holders:
            if (tensor := held()) is not None:
                if tensor.uop.op is not BUFFER:
                    realize([tensor])
                is_here = tensor.uop.op is BUFFER and tensor.uop.arg.storage is self.storage
                here, moved = here or is_here, moved or not is_here
        return here and not moved

    def renew_version(self, done: set[ViewGroup]) -> None:
        for held in self.holders:
            if (tensor := held()) is not None and tensor.uop.arg.storage is self.storage:
                renew_version(tensor, done)


def renew_version(tensor: TensorCore, done: set[ViewGroup]) -> None:
    """Give a tensor whose memory was written a new buffer version.

    That is skipped if nothing else refers to the old version. Views of one base share one new
    version; `done` are the groups that have theirs.
    """
    whole = tensor._view_group
    if whole is not None and whole.uop.op is BUFFER:
        if whole not in done:
            done.add(whole)
            OVERWRITTEN.update(_windows(whole))
            whole.set_contents(_next_version(whole.uop))
        return
    if references_to_node(tensor) > UNSHARED_COUNT:
        set_contents(tensor, _next_version(tensor.uop))


def _windows(whole: ViewGroup) -> list[View]:
    """The windows on the memory of a base value that its views hold."""
    root = root_storage(whole.uop.arg.storage)
    seen = [t.uop.arg for t in whole.tensors() if t.uop.op is BUFFER]
    return [view for view in seen if root_storage(view.storage) is root]


def _next_version(uop: UOp) -> UOp:
    old: View = uop.arg
    OVERWRITTEN.add(old)
    return UOp(BUFFER, old.dtype, (), old.new_version())


def first_readers(nodes: Iterable[UOp]) -> dict[Storage, Origin | None]:
    """For each storage that these nodes read, the first line that reads it."""
    found: dict[Storage, Origin | None] = {}
    for node in nodes:
        for source in node.src:
            held = source if source.op is BUFFER else source.realized
            if held is not None:
                found.setdefault(held.arg.storage, node.origin)
    return found


def holders_by_storage() -> dict[Storage, list[ref[TensorCore]]]:
    """For each storage, the live tensors that hold it."""
    found: dict[Storage, list[ref[TensorCore]]] = {}
    for tensor in live_tensors():
        if tensor.uop.op is BUFFER:
            found.setdefault(tensor.uop.arg.storage, []).append(ref(tensor))
    return found
