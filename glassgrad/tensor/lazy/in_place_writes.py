"""A target and a value -> the next version of the target's buffer; at once if memory is aliased.

A write is recorded and runs on demand; buffer versions order it and its readers. There are no such
versions if other storages overlap the target's bytes or if the target is a file. Then program order
is kept by running at once: readers of the old contents are computed, the write runs, and later
readers of the memory find it done.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from glassgrad.base.origin import Origin
from glassgrad.engine.capture.recorder import Recorder, active_recorder
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.ir.window import file_window
from glassgrad.memory.allocator import is_file
from glassgrad.memory.sharing import SHARED_STORAGES, overlap
from glassgrad.memory.storage import Storage
from glassgrad.memory.view import View
from glassgrad.tensor.copies import copy_if_shared
from glassgrad.tensor.core import TensorCore, device_of, live_holders, live_tensors
from glassgrad.tensor.device_names import canonical_device
from glassgrad.tensor.lazy.buffer_versions import (
    OVERWRITTEN,
    WRITERS,
    current_buffer,
    existing_buffer,
    record_write,
    target_storage,
    writable_version,
)
from glassgrad.tensor.lazy.carried_state import ASSIGNED
from glassgrad.tensor.lazy.collect import uncomputed_nodes
from glassgrad.tensor.lazy.exclusive import exclusive
from glassgrad.tensor.lazy.realize import compute, proxy_tensor, realize
from glassgrad.tensor.lazy.unrealized import set_node
from glassgrad.tensor.lazy.views import (
    Step,
    Steps,
    ViewGroup,
    apply_steps,
    base_node,
    bitcast_node,
    refuse_overlapping_write,
    root_storage,
    view_steps,
)

ASSIGN, BUFFER, CONTIGUOUS, DETACH = Ops.ASSIGN, Ops.BUFFER, Ops.CONTIGUOUS, Ops.DETACH
BITCAST = Ops.BITCAST


@exclusive
def write(
    tensor: TensorCore, value: UOp, steps: Sequence[Step] = (), origin: Origin | None = None
) -> None:
    """Write a value to a tensor or to a part of it. All tensors that alias the elements see it."""
    if 0 in value.shape:  # a write of no elements has no kernel
        refuse_overlapping_write((*view_steps(tensor), *steps), tensor.shape)
        return
    if (part := _writable_file_part(tensor.uop)) is not None:
        after = _write_to_buffer(part, value, tuple(steps), origin)
        if view_steps(tensor):
            set_node(tensor, after)
        else:
            _set_group_contents(tensor, after)
        return
    before, chain = base_node(tensor), (*view_steps(tensor), *steps)
    if chain:
        refuse_overlapping_write(chain, tensor.shape)
        value, chain = _through_bitcasts(before, value, chain)
    target = _writable_target(tensor, before)
    if target is None and not chain:
        after = copy_if_shared(value)
        ASSIGNED.add(after)
    else:
        after = _write_to_buffer(target or _copy_to_writable(tensor), value, chain, origin)
    _set_group_contents(tensor, after)


@exclusive
def make_writable(tensor: TensorCore) -> UOp:
    """The buffer version that a write to this tensor replaces. A lazy value, or memory that this
    tensor may not write to, is copied to memory of its own first.
    """
    return _writable_target(tensor, base_node(tensor)) or _copy_to_writable(tensor)


def _copy_to_writable(tensor: TensorCore) -> UOp:
    before = base_node(tensor)
    device = device_of(before)
    if is_file(device) and current_buffer(before) is None:
        file = TensorCore._wrap_raw(before)
        realize((file,))
        _set_group_contents(tensor, file.uop)
        return make_writable(tensor)
    device = canonical_device(None) if is_file(device) else device
    view = View.empty(device, before.shape, before.dtype)
    target = record_write(UOp(BUFFER, before.dtype, (), view), before)
    _set_group_contents(tensor, target)
    return target


def _set_group_contents(tensor: TensorCore, uop: UOp) -> None:
    if tensor._view_group is None:
        set_node(tensor, uop)
    else:
        tensor._view_group.set_contents(uop)


def _writable_target(tensor: TensorCore, before: UOp) -> UOp | None:
    """The version that a write may replace: in memory, writable, and not shared with another
    owner.
    """
    target = writable_version(before)
    if target is None:
        return None
    holder = root_storage(target_storage(target)).holder
    if holder is not None and holder is not tensor._share_token:
        return None
    # Outside of captures the other tensor gets a copy instead; a captured function must not move
    # tensors that existed before.
    recorder = active_recorder()
    is_kept = recorder is not None and _is_held_before(recorder, tensor, target)
    return None if is_kept else target


def _is_held_before(recorder: Recorder, tensor: TensorCore, target: UOp) -> bool:
    """True if a tensor that existed before a captured call, and that does not alias this one, has
    the same value in this memory.
    """
    held, whole = current_buffer(target) or target, tensor._view_group
    return any(
        (current_buffer(other.uop) or other.uop) is held
        for other in live_tensors()
        if other is not tensor
        and (whole is None or other._view_group is not whole)
        and id(other) in recorder.preexisting
    )


def _writable_file_part(uop: UOp) -> UOp | None:
    """The window of a file that this value is, if the file may be written."""
    if uop.op is BUFFER and not is_file(uop.arg.storage.device):
        return None
    part = file_window(uop)
    return None if part is None or part.readonly else UOp(BUFFER, uop.dtype, (), part)


def _write_to_buffer(target: UOp, value: UOp, chain: Steps, origin: Origin | None) -> UOp:
    """The next version of a buffer; written at once where other storages overlap it."""
    storage = target_storage(target)
    others = SHARED_STORAGES.overlapping(storage)
    if not others and not is_file(storage.device):
        return record_write(target, value, chain, origin)
    value = _compute_readers_first({storage, *others}, value)
    done = proxy_tensor(record_write(current_buffer(target) or target, value, chain, origin))
    realize((done,))
    _renew_versions(others)
    return done.uop


def _renew_versions(storages: Iterable[Storage]) -> None:
    """Give new versions to storages whose bytes were written through an overlapping one."""
    old = [
        one for one in live_holders() if one.uop.op is BUFFER and one.uop.arg.storage in storages
    ]
    for holder in old:
        view = holder.uop.arg
        OVERWRITTEN.add(view)
        after = UOp(BUFFER, holder.uop.dtype, (), view.new_version())
        if isinstance(holder, ViewGroup):
            holder.set_contents(after)
        elif holder._view_group is None:
            set_node(holder, after)


def _through_bitcasts(whole: UOp, value: UOp, chain: Steps) -> tuple[UOp, Steps]:
    """A write to a bitcast view as a write in the dtype of the base value."""
    casts = [i for i, (op, _) in enumerate(chain) if op is BITCAST]
    while casts:
        last = casts.pop()
        before, after = chain[:last], chain[last + 1 :]
        source = apply_steps(whole, before)
        if chain[last][1].itemsize == source.dtype.itemsize:  # commutes with movement
            value, chain = bitcast_node(value, source.dtype), before + after
            continue
        if after:
            shown = TensorCore._wrap_raw(bitcast_node(source, chain[last][1]))
            write(shown, value, after)
            value = shown.uop
        value, chain = bitcast_node(value, source.dtype), before
    return value, tuple([step for step in chain if step[0] is not DETACH])


@exclusive
def finish_writes_to(storage: Storage) -> None:
    """Run the pending writes to memory that is about to be exported or read."""
    touched = [write for write in _pending_writes() if _overlap(target_storage(write), storage)]
    compute([TensorCore._from_uop(write) for write in touched])


def _pending_writes() -> list[UOp]:
    """The writes that have not run yet."""
    if not WRITERS:
        return []
    # Iterating a WeakKeyDictionary itself fails when another thread adds to it.
    held = list(cast(Any, WRITERS).data.values())
    return [write for one in held if (write := one()) is not None and current_buffer(write) is None]


def _overlap(one: Storage, other: Storage) -> bool:
    return one.is_allocated() and other.is_allocated() and overlap(one, other)


def _compute_readers_first(storages: set[Storage], value: UOp) -> UOp:
    """Compute every value that still reads the old contents of these storages. Returns the value to
    write, copied if it reads them.
    """
    held = live_holders()
    reads = _readers(uncomputed_nodes([value, *[holder.uop for holder in held]]), storages)
    early = [one for one in held if one.uop in reads and not _sees_writes(one, storages)]
    for holder in [one for one in early if existing_buffer(one.uop) is not None]:
        set_node(holder, UOp(CONTIGUOUS, holder.uop.dtype, (holder.uop,)))
    wanted = [
        holder if isinstance(holder, TensorCore) else TensorCore._wrap_raw(holder.uop)
        for holder in early
    ]
    if value in reads:
        aside = TensorCore._wrap_raw(UOp(CONTIGUOUS, value.dtype, (value,)))
        compute([*wanted, aside])
        return cast(UOp, current_buffer(aside.uop))
    compute(wanted)
    return value


def _sees_writes(holder: TensorCore | ViewGroup, storages: set[Storage]) -> bool:
    """True for aliased memory and views of it; False for copies of it."""
    whole = holder if isinstance(holder, ViewGroup) else holder._view_group
    held = current_buffer(holder.uop if whole is None else whole.uop)
    if held is None or held.arg.storage not in storages or _is_moved(held):
        return False
    owner = root_storage(held.arg.storage).holder
    seen_by = holder.tensors() if isinstance(holder, ViewGroup) else [holder]
    return owner is None or any(owner is tensor._share_token for tensor in seen_by)


def _is_moved(uop: UOp) -> bool:
    """True for a window of a file that stands for a copy of its contents."""
    held = current_buffer(uop)
    return held is not None and isinstance(held.arg.storage.owner, Storage)


def _readers(nodes: Iterable[UOp], storages: set[Storage]) -> set[UOp]:
    """The nodes whose value depends on the contents of these storages."""
    reads: set[UOp] = set()
    for node in nodes:
        held = current_buffer(node)
        is_there = held is not None and held.arg.storage in storages
        if is_there or (held is None and not reads.isdisjoint(node.src)):
            reads.add(node)
    return reads
