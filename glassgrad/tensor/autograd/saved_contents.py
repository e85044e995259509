"""Contents that a write replaces and that a later gradient needs -> copies, made before the write.

`x *= k` overwrites the factor of the derivative by k. Until the write runs, gradients read the old
version. For afterwards, the written value, and every other lazy value made of the old version, is
rebuilt over a copy of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from weakref import WeakKeyDictionary, WeakSet

from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.uop import UOp
from glassgrad.tensor.autograd.history import Parameters, is_differentiable
from glassgrad.tensor.core import TensorCore, live_tensors
from glassgrad.tensor.lazy.buffer_versions import current_buffer, replaced_writes
from glassgrad.tensor.lazy.carried_state import ASSIGNED
from glassgrad.tensor.lazy.collect import uncomputed_nodes
from glassgrad.tensor.lazy.deferred import (
    expand_deferred,
    redirect_holders,
    redirect_readers,
    with_sources,
)
from glassgrad.tensor.lazy.unrealized import unrealized_holders
from glassgrad.tensor.lazy.views import ViewGroup

ASSIGN, CONTIGUOUS, GATHER, WHERE = Ops.ASSIGN, Ops.CONTIGUOUS, Ops.GATHER, Ops.WHERE
REDUCE, ADD, DEFERRED = Ops.REDUCE, Ops.ADD, Ops.DEFERRED
SAME_SIZE = OpGroup.MOVEMENT - {GATHER, Ops.EXPAND, Ops.WINDOW}
LINEAR = (OpGroup.MOVEMENT - {GATHER}) | {
    ADD, Ops.SUB, Ops.NEG, Ops.CAST, Ops.BITCAST, Ops.DETACH, Ops.COPY, CONTIGUOUS, ASSIGN,
}  # fmt: skip
VERSIONS = frozenset((Ops.BUFFER, ASSIGN))
# Tells this copy from other copies of the same contents, which may be written to.
SAVED_COPY = "saved"
NUMBER = attrgetter("number")
CHECKED_WRITES: WeakSet[UOp] = WeakSet()  # writes that need no further check
# Copy -> the tensor that holds it until it is computed
SAVED_HOLDERS: WeakKeyDictionary[UOp, TensorCore] = WeakKeyDictionary()


def save_contents(lazy: Iterable[TensorCore | ViewGroup]) -> None:
    """Rebuild pending writes and other lazy values over copies of old contents that gradients will
    need.
    """
    parameters = Parameters()
    holders = _new_writes(lazy)
    CHECKED_WRITES.update(holders)
    writes = sorted(holders, key=NUMBER)  # oldest first, so that each is rebuilt once
    others = [not _is_trained(holders[write]) for write in writes]
    for i, write in enumerate(writes):
        if _needs_contents(write, parameters):
            old, value = write.src
            changed = {write: with_sources(write, (old, _with_copies(old, value)))}
            changed |= replaced_writes()  # other writes that the value was made of
            redirect_readers(changed)
            CHECKED_WRITES.update([made for made in changed.values() if made.op is ASSIGN])
            writes[i:] = [changed.get(later, later) for later in writes[i:]]
    replaced = [write.src[0] for write, is_other in zip(writes, others, strict=True) if is_other]
    for old in dict.fromkeys(replaced):
        newest = replaced_writes().get(old, old)  # saving for one version rebuilds later ones
        _save_for_readers(newest, parameters)


def _new_writes(lazy: Iterable[TensorCore | ViewGroup]) -> dict[UOp, TensorCore | ViewGroup]:
    """The pending, unchecked writes that gradients may flow through, with their holders."""
    found: dict[UOp, TensorCore | ViewGroup] = {}
    for holder in lazy:
        node = holder.uop
        if node.op is ASSIGN and is_differentiable(holder):
            while node.op is ASSIGN and current_buffer(node) is None:
                if node not in CHECKED_WRITES:
                    found.setdefault(node, holder)
                node = node.src[0]
    return found


def _is_trained(holder: TensorCore | ViewGroup) -> bool:
    """True for parameters: after a step of an optimiser nobody asks for gradients of older
    values.
    """
    if isinstance(holder, ViewGroup) or not holder.is_param:
        return False
    return holder._requires_grad is True or not any(
        tensor._requires_grad for tensor in live_tensors()
    )


def _needs_contents(write: UOp, parameters: Parameters) -> bool:
    """True if a gradient will need the contents that the write replaces."""
    return _are_needed(_reads(*write.src), parameters)


def _are_needed(reads: dict[UOp, None], parameters: Parameters) -> bool:
    """True if the derivatives of nodes made of old contents depend on those contents."""
    return any(_needs_value(node, reads) and parameters.are_behind(node) for node in reads)


def _save_for_readers(old: UOp, parameters: Parameters) -> None:
    """Rebuild lazy values over a copy of a version that a write replaces, if their derivatives need
    it. The copy is held by a tensor, so that it is made before the write.
    """
    reads: dict[UOp, None] = {}
    for node in uncomputed_nodes([holder.uop for holder in unrealized_holders()]):
        if _is_version(node, old):
            reads[node] = None
        elif current_buffer(node) is None and not (
            node.op is ASSIGN and _is_version(node.src[0], old)
        ):
            if not reads.keys().isdisjoint(node.src):
                reads[node] = None
    if not _are_needed(reads, parameters):
        return
    if any(node.op is DEFERRED and node.arg.sees_graph for node in reads):
        # Expand deferred gradients first: what they differentiate must be rebuilt with them.
        _save_for_readers(expand_deferred().get(old, old), parameters)
        return
    copy = UOp(CONTIGUOUS, old.dtype, (old,), SAVED_COPY)
    copy.origin = copy.origin or old.origin
    versions = {node: copy for node in reads if _is_version(node, old)}
    changed: dict[UOp, UOp] = {}
    for node in reads:
        if node not in versions:
            src = [changed.get(source) or versions.get(source, source) for source in node.src]
            changed[node] = with_sources(node, tuple(src))
    CHECKED_WRITES.update([made for made in changed.values() if made.op is ASSIGN])
    redirect_holders(changed)
    if replaced := replaced_writes():
        redirect_readers(replaced)
    SAVED_HOLDERS[copy] = TensorCore._wrap_raw(copy)


def pending_copies() -> list[UOp]:
    """The copies of contents that pending writes are made of and that are not computed yet."""
    copies = [node for node in list(ASSIGNED) if node.op is CONTIGUOUS and node.arg == SAVED_COPY]
    return sorted([copy for copy in copies if copy.realized is None], key=NUMBER)


def _reads(old: UOp, value: UOp) -> dict[UOp, None]:
    """The nodes of a value that are made of old contents."""
    found: dict[UOp, None] = {}
    for node in uncomputed_nodes((value,)):
        reads_old = current_buffer(node) is None and not found.keys().isdisjoint(node.src)
        if reads_old or _is_version(node, old):
            found[node] = None
    return found


def _is_version(node: UOp, old: UOp) -> bool:
    """True if a node is this version of a buffer. An operation whose value lies there is not: it
    can be recomputed, and gradients flow through it.
    """
    if node is old:
        return True
    held = current_buffer(node) if node.op in VERSIONS else None
    return held is not None and held is current_buffer(old)


def _needs_value(node: UOp, reads: dict[UOp, None]) -> bool:
    """True if the derivative of an operation may depend on the old contents that it reads."""
    if node.op in LINEAR or not node.src or (node.op is REDUCE and node.arg[0] is ADD):
        return False
    if node.op is WHERE:
        return node.src[0] in reads
    return node.op is not GATHER or node.src[1] in reads


def _with_copies(old: UOp, value: UOp) -> UOp:
    """The value rebuilt over copies of the parts of the old contents that it reads."""
    parts: set[UOp] = set()
    done: dict[UOp, UOp] = {}
    for node in uncomputed_nodes((value,)):
        if _is_version(node, old) or (node.op in SAME_SIZE and node.src[0] in parts):
            parts.add(node)
            done[node] = copy = UOp(CONTIGUOUS, node.dtype, (node,), SAVED_COPY)
            copy.origin = copy.origin or node.origin
        elif current_buffer(node) is None and not done.keys().isdisjoint(node.src):
            src = tuple([done.get(source, source) for source in node.src])
            done[node] = with_sources(node, src)
    ASSIGNED.update([done[part] for part in parts])
    return done[value]
