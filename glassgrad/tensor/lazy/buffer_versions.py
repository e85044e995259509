"""A value -> the buffer that holds it, and whether that buffer was overwritten since."""

from __future__ import annotations

from typing import Any, cast
from weakref import WeakKeyDictionary, WeakSet, ref

from glassgrad.base.origin import Origin
from glassgrad.ir.ops import Ops
from glassgrad.ir.shape import Sizes
from glassgrad.ir.size import bindings
from glassgrad.ir.uop import UOp, set_realized
from glassgrad.ir.window import file_window
from glassgrad.memory.storage import Storage
from glassgrad.memory.view import View
from glassgrad.tensor.record import bind_nodes, record

ASSIGN, BUFFER, CONTIGUOUS = Ops.ASSIGN, Ops.BUFFER, Ops.CONTIGUOUS
RESHAPE = Ops.RESHAPE
OVERWRITTEN: WeakSet[View] = WeakSet()  # a View object identifies one version
WRITERS: WeakKeyDictionary[UOp, ref[UOp]] = WeakKeyDictionary()  # version -> its next write
PRESERVED: WeakKeyDictionary[UOp, ref[UOp]] = WeakKeyDictionary()  # old version -> copy of it
REPLACED_WRITES: WeakKeyDictionary[UOp, UOp] = WeakKeyDictionary()  # write -> its rebuilt node


# Argument of the CONTIGUOUS that copies a version for tensors which hold it when it is overwritten.
PRESERVED_COPY = "given"


def version_preserved_by(node: UOp) -> UOp | None:
    """The buffer version that a preserved copy is of; None for any other node."""
    if node.op is not CONTIGUOUS or node.arg != PRESERVED_COPY:
        return None
    source: UOp = node.src[0]
    return source if source.op is BUFFER else source.realized


def note_preserved_copy(copy: UOp, held: UOp) -> None:
    """Record which node is the preserved copy of a version."""
    if (version := version_preserved_by(copy)) is not None:
        PRESERVED[version] = ref(held)


def surviving_copy(version: UOp) -> UOp | None:
    """The buffer that an overwritten version was copied to, if it still holds those contents."""
    held = PRESERVED.get(version)
    found = None if held is None else held()
    if found is None or found.op is not BUFFER or found.arg in OVERWRITTEN:
        return None
    return found


def replace_write(write: UOp, made: UOp) -> None:
    """Make `made` the node of a write instead of `write`: only one of the two may run. Another
    thread may still record uses of the old node; `replaced_writes` redirects them.
    """
    WRITERS[made.src[0]] = ref(made)
    REPLACED_WRITES.pop(made, None)
    if made is not write:
        REPLACED_WRITES[write] = made


def replaced_writes() -> dict[UOp, UOp]:
    """Rebuilt writes whose old nodes are still read: old node -> newest node."""
    found: dict[UOp, UOp] = {}
    if not REPLACED_WRITES.data:  # type: ignore[attr-defined]
        return found
    for write, made in list(REPLACED_WRITES.items()):
        last = made
        while (later := REPLACED_WRITES.get(last)) is not None:
            last = later
        found[write] = REPLACED_WRITES[write] = last
    return found


def target_storage(target: UOp) -> Storage:
    """The storage at the end of a chain of writes."""
    while target.op is ASSIGN:
        target = target.src[0]
    return cast(Storage, target.arg.storage)


def current_buffer(uop: UOp) -> UOp | None:
    """The buffer that holds this value, if it was computed and not overwritten since."""
    if uop.op is BUFFER:
        return uop
    held: UOp | None = uop.realized
    if held is not None and held.arg in OVERWRITTEN:
        held = uop.realized = None
    return held


def writable_version(uop: UOp) -> UOp | None:
    """The buffer version that a write to this value may replace; None if there is none.

    Only one write replaces a version. A second tensor that holds it gets memory of its own.
    """
    held = current_buffer(uop) or (uop if uop.op is ASSIGN else None)
    if held is None or (held.op is BUFFER and held.arg.readonly):
        return None
    writer = WRITERS.get(held)
    return held if writer is None or writer() is None else None


def record_write(
    target: UOp, value: UOp, chain: tuple[Any, ...] = (), origin: Origin | None = None
) -> UOp:
    """The next version of a target: an ASSIGN of the value to it."""
    if Sizes.exist and (values := bindings(chain)):  # the written window may depend on variables
        value = UOp(RESHAPE, value.dtype, (value, *bind_nodes(values)), value.shape)
    write = record(ASSIGN, target.dtype, (target, value), chain, origin)
    WRITERS[target] = ref(write)
    return write


def existing_buffer(uop: UOp) -> UOp | None:
    """The buffer that holds this value already, windows of files included."""
    held = current_buffer(uop)
    if held is None and (part := file_window(uop)) is not None:
        held = UOp(BUFFER, uop.dtype, (), part)
        set_realized(uop, held)
    return held
