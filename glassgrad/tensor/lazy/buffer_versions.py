"""a value -> the buffer that holds it, and whether what that held was overwritten since."""

from __future__ import annotations

from typing import cast
from weakref import WeakKeyDictionary, WeakSet, ref

from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.memory.storage import Storage
from glassgrad.memory.view import View

ASSIGN, BUFFER, CONTIGUOUS = Ops.ASSIGN, Ops.BUFFER, Ops.CONTIGUOUS
OVERWRITTEN: WeakSet[View] = WeakSet()  # a View stands for one version of the contents
WRITERS: WeakKeyDictionary[UOp, ref[UOp]] = WeakKeyDictionary()  # version -> the write that ends it
PRESERVED: WeakKeyDictionary[UOp, ref[UOp]] = WeakKeyDictionary()  # old version -> its given copy
REPLACED_WRITES: WeakKeyDictionary[UOp, UOp] = WeakKeyDictionary()  # write -> its rebuilt node


PRESERVED_COPY = "given"  # a copy for a tensor that did not ask for one; it is nobody else's


def version_preserved_by(node: UOp) -> UOp | None:
    """The version that a given copy is of; None if the node is no such copy."""
    if node.op is not CONTIGUOUS or node.arg != PRESERVED_COPY:
        return None
    source: UOp = node.src[0]
    return source if source.op is BUFFER else source.realized


def note_preserved_copy(copy: UOp, held: UOp) -> None:
    """Remember where a given copy of a version is; other nodes are none."""
    if (version := version_preserved_by(copy)) is not None:
        PRESERVED[version] = ref(held)


def surviving_copy(version: UOp) -> UOp | None:
    """The buffer that contents which were overwritten were copied to, if it still holds them."""
    held = PRESERVED.get(version)
    found = None if held is None else held()
    if found is None or found.op is not BUFFER or found.arg in OVERWRITTEN:
        return None
    return found


def replace_write(write: UOp, made: UOp) -> None:
    """Only one of two nodes of the same write may be carried out. Another thread may just now be
    making something of the first: it will read the second instead.
    """
    WRITERS[made.src[0]] = ref(made)
    REPLACED_WRITES.pop(made, None)
    if made is not write:
        REPLACED_WRITES[write] = made


def replaced_writes() -> dict[UOp, UOp]:
    """What became of the writes that somebody still reads and that were replaced."""
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
    """Where a chain of writes ends."""
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
