"""PriorState: the state before a captured call; errors for effects that a replay would not have."""

from __future__ import annotations

from threading import get_ident
from typing import Any, NamedTuple
from weakref import WeakSet, ref

from glassgrad.base.errors import CaptureError
from glassgrad.engine.capture.recorder import Recorder
from glassgrad.ir.ops import Ops
from glassgrad.ir.size import Bound
from glassgrad.ir.uop import UOp, next_number
from glassgrad.memory.storage import Storage
from glassgrad.tensor.core import LIVE_TENSORS, TensorCore, TensorRef, live_tensors
from glassgrad.tensor.jit.captured_state import first_readers
from glassgrad.tensor.jit.pytree import hidden_tensors
from glassgrad.tensor.jit.trace import Trace
from glassgrad.tensor.ops.random import GENERATOR

BUFFER = Ops.BUFFER
Ints = tuple[int, ...]


class StoredValue(NamedTuple):
    """Weak references to a buffer and its storage."""

    node: ref[UOp]
    storage: ref[Storage]


class PriorState(NamedTuple):
    """The state before a call that is captured."""

    arguments: list[TensorCore]
    storages: list[Storage]  # of the arguments
    offsets: list[int]  # of the arguments in their storages
    first_number: int  # nodes made by the call have larger numbers
    random_numbers: int  # count of random numbers drawn so far
    keys: Any  # keys of the generator; manual_seed() replaces them
    values: Bound  # of variables among the arguments
    lazy: dict[TensorRef, UOp]  # nodes of live tensors that are not in memory
    # buffers of live tensors; weak, so that the call may free them
    stored: dict[TensorRef, StoredValue]
    gradients: dict[TensorRef, ref[TensorCore] | None]

    @classmethod
    def now(cls, arguments: list[TensorCore], values: Bound) -> PriorState:
        """A snapshot of everything that a call may change."""
        alive = [(held, found) for held in list(LIVE_TENSORS) if (found := held()) is not None]
        return cls(
            arguments,
            [tensor.uop.arg.storage for tensor in arguments],
            [tensor.uop.arg.offset for tensor in arguments],
            next_number(),
            GENERATOR.used,
            GENERATOR.keys,
            values,
            {held: found.uop for held, found in alive if found.uop.op is not BUFFER},
            {
                held: StoredValue(ref(found.uop), ref(found.uop.arg.storage))
                for held, found in alive
                if found.uop.op is BUFFER
            },
            {held: None if found.grad is None else ref(found.grad) for held, found in alive},
        )

    def new_gradients(self, recorder: Recorder) -> list[tuple[TensorCore, bool]]:
        """The tensors that got or lost a gradient, each with whether it had one before."""
        thread, touched = get_ident(), {id(found()) for found in recorder.grad_changes}
        return [
            (found, old is not None)
            for held, old in self.gradients.items()
            if held.thread == thread
            and (found := held()) is not None
            and (id(found) in touched or found.grad is not (None if old is None else old()))
        ]

    def gradients_in(self, storages: set[Storage]) -> list[tuple[TensorRef, ref[TensorCore]]]:
        """The tensors whose gradients lie in these storages, with the gradients."""
        return [
            (held, old)
            for held, old in self.gradients.items()
            if old is not None
            and (found := old()) is not None
            and found.uop.op is BUFFER
            and found.uop.arg.storage in storages
        ]


# ---------------------------------------------------------------------- memory


class FirstCall(NamedTuple):
    """What a first call leaves for the second one."""

    trace: Trace
    storages: WeakSet[Storage]  # that the call was given, read or returned


def touched_storages(
    recorder: Recorder, before: PriorState, returned: list[TensorCore]
) -> WeakSet[Storage]:
    """All memory that a call was given, read or returned."""
    found = WeakSet(leaf.arg.storage for run in recorder.runs for leaf in run.leaves)
    found.update([*before.storages, *(tensor.uop.arg.storage for tensor in returned)])
    return found


# ---------------------------------------------------------------------- effects


def refuse_lost_effects(recorder: Recorder, before: PriorState) -> None:
    """Raise an error for effects of a call that a replay would not have."""
    if GENERATOR.keys is not before.keys:
        raise CaptureError(
            "a captured function restarts the random numbers: replays would not",
            hint="call manual_seed() outside",
        )
    if any(leaf.arg in recorder.symbolic_results for run in recorder.runs for leaf in run.leaves):
        raise CaptureError(
            "a captured function realizes a value whose shape a variable decides, and goes on with "
            "it: replays would use the shape it had",
            hint="leave out the realize()",
        )
    for tensor, held in _changed(before):
        storage = before.stored[held].storage()
        is_there = tensor.uop.op is BUFFER and tensor.uop.arg.storage is storage
        if not is_there:
            raise CaptureError(
                f"a captured function replaces a tensor of shape {tensor.shape}, which was there "
                "before: replays would not",
                hint="change it in place with assign(), or return the new one",
                origin=tensor.uop.origin,
            )
    _refuse_dropped(recorder, before)


def _refuse_dropped(recorder: Recorder, before: PriorState) -> None:
    """Raise an error if the call read memory of a tensor that no tensor holds any more."""
    then = {storage for held in before.stored.values() if (storage := held.storage()) is not None}
    now = {tensor.uop.arg.storage for tensor in live_tensors() if tensor.uop.op is BUFFER}
    now.update(before.storages)
    for leaf in (leaf for run in recorder.runs for leaf in run.leaves):
        if leaf.arg.storage in then and leaf.arg.storage not in now:
            raise CaptureError(
                f"a captured function reads a tensor of shape {leaf.shape} and then replaces it: "
                "replays would read the old one again",
                hint="change it in place with assign(); of a gradient, call zero_grad() inside",
                origin=first_readers(recorder.nodes).get(leaf.arg.storage),
            )


def refuse_tensors_in_objects(result: Any, escaped: list[TensorCore]) -> None:
    """Raise an error for new tensors inside of returned objects: replays would not make another
    object.
    """
    own = {id(tensor) for tensor in escaped}
    for holder, tensor in hidden_tensors(result):
        if id(tensor) in own:
            raise CaptureError(
                f"a captured function returns a {type(holder).__name__} that holds a tensor of "
                f"shape {tensor.shape}: replays would not make another one",
                hint="return tensors in tuples, lists, dicts or dataclasses",
            )


def pending_gradients(recorder: Recorder, before: PriorState) -> list[TensorCore]:
    """Gradients of tensors that the call did not update, which a later call will read. Those of
    updated tensors may stay inside of kernels.
    """
    updated = {id(tensor) for tensor, _ in _changed(before)}
    found = [tensor for held in recorder.grad_changes if (tensor := held()) is not None]
    grads = [t.grad for t in found if id(t) not in updated and t.grad is not None]
    return [grad for grad in dict.fromkeys(grads) if grad.uop.op is not BUFFER]


def computed_preexisting_tensors(before: PriorState) -> bool:
    """True if a call realized older lazy tensors, which the next call will find in memory."""
    return any(held in before.lazy for _, held in _changed(before))


def _changed(before: PriorState) -> list[tuple[TensorCore, TensorRef]]:
    """Tensors of this thread that existed before the call and hold another node now."""
    thread = get_ident()
    return [
        (tensor, held)
        for held in before.gradients
        if held.thread == thread
        and (tensor := held()) is not None
        and tensor.uop is not _node_before(held, before)
    ]


def _node_before(held: TensorRef, before: PriorState) -> UOp | None:
    stored = before.stored.get(held)
    return before.lazy[held] if stored is None else stored.node()
