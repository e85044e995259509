"""Movement of a buffer -> a strided View of its memory, where strides can express it; no copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.memory.allocator import is_file
from glassgrad.memory.view import View
from glassgrad.memory.window import Window, expanded, flipped, permuted, reshaped, shrunk, windowed

BUFFER, BITCAST = Ops.BUFFER, Ops.BITCAST
Movement = Callable[[Window, Any], Window | None]
MOVEMENTS: dict[Ops, Movement] = {
    Ops.RESHAPE: reshaped,
    Ops.PERMUTE: permuted,
    Ops.EXPAND: expanded,
    Ops.SHRINK: shrunk,
    Ops.FLIP: flipped,
    Ops.WINDOW: windowed,
    Ops.DETACH: lambda window, _: window,
    BITCAST: lambda window, _: window,  # items keep their size
}


def window_of(node: UOp) -> View | None:
    """The View of a node's elements in existing memory; None if they have none."""
    moves: list[UOp] = []
    while node.realized is None and node.op in MOVEMENTS and len(node.src) == 1:
        moves.append(node)
        node = node.src[0]
    held = node if node.op is BUFFER else node.realized
    if held is None:
        return None
    view: View = held.arg
    for move in reversed(moves):
        window = MOVEMENTS[move.op](view.window, move.arg)
        if window is None:
            return None
        view = View(view.storage, move.dtype, *window)
    return view


def file_window(node: UOp) -> View | None:
    """The part of a file that a node is; None if it is not in a file."""
    if node.realized is None and node.op is not BUFFER and node.op not in MOVEMENTS:
        return None
    view = window_of(node)
    return view if view is not None and is_file(view.device) else None
