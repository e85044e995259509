"""Slices of buffers -> windows on their memory, so that their offsets are launch arguments.

`X[i : i + 100]` is the same graph for every i if the slice is a BUFFER that lies in the memory of
X. So during a computation slices of realized values are replaced by such windows: one plan and one
set of kernels serve all offsets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp, set_realized
from glassgrad.ir.window import MOVEMENTS, window_of
from glassgrad.memory.allocator import is_file
from glassgrad.memory.storage import Storage
from glassgrad.tensor.lazy.buffer_versions import OVERWRITTEN

BUFFER = Ops.BUFFER
MAX_WINDOWS = 4  # per storage: each is an argument of every kernel that reads it


class SliceWindows:
    """The slices that are replaced by windows during one computation."""

    def __init__(self) -> None:
        self.found: dict[UOp, UOp] = {}  # slice -> window
        self.tried: set[UOp] = set()

    def open(self, slices: Iterable[UOp]) -> bool:
        """Replace slices of buffers by windows; True if there was a new one."""
        new = [node for node in slices if node not in self.tried]
        self.tried.update(new)
        before = len(self.found)
        for node in new:
            base = _base_buffer(node)
            if base is not None and (view := window_of(node)) is not None:
                self.found[node] = window = UOp(BUFFER, node.dtype, (), view)
                set_realized(node, window)
        return len(self.found) > before

    def close(self, storages: Iterable[Storage] | None = None) -> None:
        """Undo the replacement for all slices, or for those of these storages."""
        gone = None if storages is None else set(storages)
        for node, window in list(self.found.items()):
            if gone is None or window.arg.storage in gone:
                del self.found[node]
                if node.realized is window:  # else it was computed into memory of its own
                    node.realized = None

    def ambiguous(self, leaves: Iterable[UOp]) -> set[Storage]:
        """Storages whose slices cannot be windows: they are also read or written as a whole, or
        have more than MAX_WINDOWS slices.
        """
        own = {window: window.arg.storage for window in self.found.values()}
        storages = set(own.values())
        others = {leaf.arg.storage for leaf in leaves if leaf not in own}
        counts = Counter(leaf.arg.storage for leaf in leaves if leaf in own)
        many = {storage for storage, count in counts.items() if count > MAX_WINDOWS}
        return (storages & others) | many


def _base_buffer(node: UOp) -> UOp | None:
    """The buffer that a slice is cut from, if no gradient flows to it."""
    while node.realized is None and node.op in MOVEMENTS and len(node.src) == 1:
        node = node.src[0]
    if node.op is not BUFFER or node.history is not None or 0 in node.shape:
        return None
    return None if is_file(node.arg.device) or node.arg in OVERWRITTEN else node
