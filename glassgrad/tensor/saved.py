"""Contents that a write replaces and that a later gradient needs -> copies, made before the write.

`x *= k` overwrites what the derivative with respect to k consists of. As long as the write has not
happened, gradients read the old version; afterwards they read the copy, which the value that was
written is made of instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from weakref import WeakSet

from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.uop import UOp
from glassgrad.tensor.carried import UPDATED
from glassgrad.tensor.collect import walk
from glassgrad.tensor.core import Core
from glassgrad.tensor.history import Parameters, is_differentiable
from glassgrad.tensor.later import read_instead, rebuilt
from glassgrad.tensor.versions import current
from glassgrad.tensor.views import Whole

ASSIGN, CONTIGUOUS, GATHER, WHERE = Ops.ASSIGN, Ops.CONTIGUOUS, Ops.GATHER, Ops.WHERE
REDUCE, ADD = Ops.REDUCE, Ops.ADD
SAME_SIZE = OpGroup.MOVEMENT - {GATHER, Ops.EXPAND, Ops.WINDOW}
LINEAR = (OpGroup.MOVEMENT - {GATHER}) | {
    ADD, Ops.SUB, Ops.NEG, Ops.CAST, Ops.BITCAST, Ops.DETACH, Ops.COPY, CONTIGUOUS, ASSIGN,
}  # fmt: skip
SAVED = "saved"  # no other copy of the same contents is the same node: others may write to theirs
NUMBER = attrgetter("number")
CHECKED: WeakSet[UOp] = WeakSet()  # writes whose values were looked at


def save_contents(lazy: Iterable[Core | Whole]) -> None:
    """Let the values of pending writes read copies of old contents that gradients will need."""
    parameters = Parameters()
    writes = _new_writes(lazy)
    CHECKED.update(writes)
    waiting = [write for write in writes if _needs_contents(write, parameters)]
    for i, write in enumerate(waiting):
        old, value = write.src
        changed = {write: rebuilt(write, (old, _with_copies(old, value)))}
        read_instead(changed)
        CHECKED.update([made for made in changed.values() if made.op is ASSIGN])
        waiting[i + 1 :] = [changed.get(later, later) for later in waiting[i + 1 :]]


def _new_writes(lazy: Iterable[Core | Whole]) -> list[UOp]:
    """The writes that did not happen yet, that gradients may flow through, and that are not checked
    yet, first ones first.
    """
    found: set[UOp] = set()
    for holder in lazy:
        node = holder.uop
        if node.op is ASSIGN and is_differentiable(holder):
            while node.op is ASSIGN and current(node) is None:
                if node not in CHECKED:
                    found.add(node)
                node = node.src[0]
    return sorted(found, key=NUMBER)


def _needs_contents(write: UOp, parameters: Parameters) -> bool:
    """Whether a gradient will need what the write replaces."""
    reads = _reads(*write.src)
    return any(_needs_value(node, reads) and parameters.are_behind(node) for node in reads)


def _reads(old: UOp, value: UOp) -> dict[UOp, None]:
    """The nodes of a value that are made of old contents."""
    found: dict[UOp, None] = {}
    for node in walk((value,)):
        if _is(node, old) or (current(node) is None and not found.keys().isdisjoint(node.src)):
            found[node] = None
    return found


def _is(node: UOp, old: UOp) -> bool:
    held = current(node)
    return node is old or (held is not None and held is current(old))


def _needs_value(node: UOp, reads: dict[UOp, None]) -> bool:
    """Whether the derivative of an operation may consist of what it reads there."""
    if node.op in LINEAR or not node.src or (node.op is REDUCE and node.arg[0] is ADD):
        return False
    if node.op is WHERE:
        return node.src[0] in reads
    return node.op is not GATHER or node.src[1] in reads


def _with_copies(old: UOp, value: UOp) -> UOp:
    """The value, made of copies of those parts of the old contents that it reads."""
    parts: set[UOp] = set()
    done: dict[UOp, UOp] = {}
    for node in walk((value,)):
        if _is(node, old) or (node.op in SAME_SIZE and node.src[0] in parts):
            parts.add(node)
            done[node] = copy = UOp(CONTIGUOUS, node.dtype, (node,), SAVED)
            copy.origin = copy.origin or node.origin
        elif current(node) is None and not done.keys().isdisjoint(node.src):
            src = tuple([done.get(source, source) for source in node.src])
            done[node] = rebuilt(node, src)
    UPDATED.update([done[part] for part in parts])
    return done[value]
