"""slices of buffers -> windows on their memory: where a slice begins is an argument of the launch.

`X[i : i + 100]` is the same graph for every i if the slice is a buffer of its own, which lies
somewhere in the memory of X. So for the time of a computation, slices of what is in memory are
taken for such windows: one plan and one set of kernels serve all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp, note
from glassgrad.ir.window import MOVEMENTS, window_of
from glassgrad.memory.allocator import is_file
from glassgrad.memory.storage import Storage
from glassgrad.tensor.lazy.buffer_versions import OVERWRITTEN

BUFFER = Ops.BUFFER
MAX_WINDOWS = 4  # on one storage: each is an argument of every kernel that reads it


class SliceWindows:
    """The slices that stand for windows during one computation."""

    def __init__(self) -> None:
        self.found: dict[UOp, UOp] = {}  # slice -> the buffer that it stands for
        self.tried: set[UOp] = set()

    def open(self, slices: Iterable[UOp]) -> bool:
        """Let slices of buffers stand for windows; whether there was a new one."""
        new = [node for node in slices if node not in self.tried]
        self.tried.update(new)
        before = len(self.found)
        for node in new:
            base = _base_buffer(node)
            if base is not None and (view := window_of(node)) is not None:
                self.found[node] = window = UOp(BUFFER, node.dtype, (), view)
                note(node, window)
        return len(self.found) > before

    def close(self, storages: Iterable[Storage] | None = None) -> None:
        """Let slices, or only those of these storages, be slices again."""
        gone = None if storages is None else set(storages)
        for node, window in list(self.found.items()):
            if gone is None or window.arg.storage in gone:
                del self.found[node]
                if node.realized is window:  # and was not computed into memory of its own
                    node.realized = None

    def ambiguous(self, leaves: Iterable[UOp]) -> set[Storage]:
        """The storages whose slices cannot be windows: these buffers of a graph read or write them
        in another way, or there are many slices.
        """
        own = {window: window.arg.storage for window in self.found.values()}
        storages = set(own.values())
        others = {leaf.arg.storage for leaf in leaves if leaf not in own}
        counts = Counter(leaf.arg.storage for leaf in leaves if leaf in own)
        many = {storage for storage, count in counts.items() if count > MAX_WINDOWS}
        return (storages & others) | many


def _base_buffer(node: UOp) -> UOp | None:
    """The buffer that a slice is cut from, if gradients do not flow on to it."""
    while node.realized is None and node.op in MOVEMENTS and len(node.src) == 1:
        node = node.src[0]
    if node.op is not BUFFER or node.history is not None or 0 in node.shape:
        return None
    return None if is_file(node.arg.device) or node.arg in OVERWRITTEN else node
