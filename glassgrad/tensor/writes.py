"""a place and a value -> the place's next version, at once where memory is seen more than once.

A write waits until somebody asks for it, and its readers are ordered by the versions of its buffer.
Where other storages have bytes in common with it, or where the place is a file, there are no such
versions. There program order is kept by the clock: what was made before the write and still needs
what was there is computed, the write is done, and whoever reads the memory later finds it done.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, cast

from glassgrad.base.origin import Origin
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.ir.window import file_window
from glassgrad.memory.allocator import is_file
from glassgrad.memory.sharing import SEEN, touch
from glassgrad.memory.storage import Storage
from glassgrad.tensor.core import Core, living
from glassgrad.tensor.realize import compute, in_memory, realize, walk, writable, written
from glassgrad.tensor.record import record
from glassgrad.tensor.versions import WRITERS, current, is_part

ASSIGN, BUFFER, CONTIGUOUS, DETACH = Ops.ASSIGN, Ops.BUFFER, Ops.CONTIGUOUS, Ops.DETACH
Step = tuple[Ops, Any]


def place_of(uop: UOp) -> UOp | None:
    """The buffer that a write to this value goes to; None if it is nowhere, or may not be written.

    Parts of a file are places in it; for parts of other tensors see `part_of`.
    """
    part = None if uop.op is BUFFER else file_window(uop)
    if part is None or part.readonly:
        return writable(uop)
    return UOp(BUFFER, uop.dtype, (), part)


def write(
    tensor: Core,
    target: UOp,
    value: UOp,
    chain: tuple[Any, ...] = (),
    origin: Origin | None = None,
) -> None:
    """Let a tensor hold the target after a value was written into it."""
    storage = storage_of(target)
    others = SEEN.sharing(storage)
    if not others and not is_file(storage.device):
        tensor.uop = written(target, value, chain, origin)
        return
    value = _settled({storage, *others}, value)
    tensor.uop = written(current(target) or target, value, chain, origin)
    realize((tensor,))


class Part(NamedTuple):
    """A tensor that is a part of others, as a slice or a transposition is."""

    owners: list[Core]  # who hold the whole
    chain: list[Step]  # the way from there to the part

    def write(self, value: UOp, steps: Sequence[Step] = ()) -> UOp:
        """Write to the part, or to a part of it; what the part is then. All owners see it."""
        first = self.owners[0]
        target = writable(first.uop)
        assert target is not None, first.uop
        write(first, target, value, (*self.chain, *steps))
        uop = first.uop
        for owner in self.owners:
            owner.uop = uop
        for op, arg in self.chain:
            uop = record(op, uop.dtype, (uop,), arg)
        return uop


def part_of(tensor: Core) -> Part | None:
    """What a tensor is a part of, if that is in memory and can be written.

    A part of what was overwritten since is none: it keeps what was there.
    """
    base, chain = tensor.uop, list[Step]()
    while is_part(base):
        if base.op is not DETACH:
            chain.insert(0, (base.op, base.arg))
        base = base.src[0]
    if base is tensor.uop or writable(base) is None or file_window(tensor.uop) is not None:
        return None
    held = current(base) or base
    owners = [one for one in living() if (current(one.uop) or one.uop) is held]
    return Part(owners, chain) if owners else None


def settle(storage: Storage) -> None:
    """Memory is looked at that a write may be waiting for: it is done now."""
    touched = [write for write in _waiting() if _meet(storage_of(write), storage)]
    compute([Core._of(write) for write in touched], kept=frozenset())


def _waiting() -> list[UOp]:
    """The writes that did not happen yet."""
    if not WRITERS:
        return []
    # Iterating a WeakKeyDictionary itself fails when another thread adds to it.
    held = list(cast(Any, WRITERS).data.values())
    return [write for one in held if (write := one()) is not None and current(write) is None]


def _meet(one: Storage, other: Storage) -> bool:
    return one.is_allocated() and other.is_allocated() and touch(one, other)


def storage_of(target: UOp) -> Storage:
    """Where a chain of writes ends."""
    while target.op is ASSIGN:
        target = target.src[0]
    return cast(Storage, target.arg.storage)


def _settled(storages: set[Storage], value: UOp) -> UOp:
    """Compute whatever still needs what these storages hold; the value comes back apart of them."""
    tensors = living()
    reads = _readers(walk([value, *[tensor.uop for tensor in tensors]]), storages)
    readers = [tensor for tensor in tensors if tensor.uop in reads]
    early = [tensor for tensor in readers if in_memory(tensor.uop) is None]
    kept = frozenset(tensor.uop for tensor in early if _has_gradient(tensor.uop))
    early += [_copy(tensor) for tensor in readers if _is_moved(tensor.uop)]
    if value in reads:
        aside = Core._of(UOp(CONTIGUOUS, value.dtype, (value,)))
        compute([*early, aside], kept)
        return cast(UOp, current(aside.uop))
    compute(early, kept)
    return value


def _has_gradient(uop: UOp) -> bool:
    return uop.op is not ASSIGN and uop.dtype.kind == "float"


def _is_moved(uop: UOp) -> bool:
    """Whether this is a window on a file that only stands for a copy of what is in it."""
    held = current(uop)
    return held is not None and isinstance(held.arg.storage.owner, Storage)


def _copy(tensor: Core) -> Core:
    tensor.uop = UOp(CONTIGUOUS, tensor.uop.dtype, (tensor.uop,))
    return tensor


def _readers(nodes: Iterable[UOp], storages: set[Storage]) -> set[UOp]:
    """The nodes whose value depends on what these storages hold."""
    reads: set[UOp] = set()
    for node in nodes:
        held = current(node)
        is_there = held is not None and held.arg.storage in storages
        if is_there or (held is None and not reads.isdisjoint(node.src)):
            reads.add(node)
    return reads
