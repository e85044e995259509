"""A captured call -> Trace: digests of what it computed, to compare two calls by.

Every result and every write becomes a digest of its whole expression, down to arguments, outside
tensors, random counters and constants. Which intermediate values were materialized and how the work
was split into runs is left out, as it may differ between calls.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from glassgrad.base.errors import CaptureError
from glassgrad.base.origin import Origin
from glassgrad.engine.capture.recorder import Recorder, Run
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp, toposort
from glassgrad.memory.storage import Storage
from glassgrad.memory.view import View
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.jit.pytree import plain_values
from glassgrad.tensor.ops.random import GENERATOR

if TYPE_CHECKING:
    from glassgrad.tensor.jit.checks import PriorState

BUFFER, BIND, CONST, RESHAPE = Ops.BUFFER, Ops.BIND, Ops.CONST, Ops.RESHAPE
TRANSPARENT = frozenset((Ops.CONTIGUOUS, Ops.DETACH, Ops.CUSTOM))
Digest = int


class PythonData(NamedTuple):
    """The identity of Python data that became a tensor inside of a call."""

    dtype: str
    shape: Any
    strides: Any
    digest: bytes

    def __str__(self) -> str:
        return f"data of shape {self.shape}"


class OutsideMemory(NamedTuple):
    """The identity of the memory of an outside tensor."""

    number: int
    size: int

    def __str__(self) -> str:
        return f"a tensor of {self.size} elements outside"


class StoredDigest(NamedTuple):
    """The contents of a storage: the digest of a value, and the window that shows it."""

    digest: Digest
    window: tuple[Any, ...]


class ExternalInput(NamedTuple):
    """An input from outside of the call, with the line that uses it."""

    what: Any
    origin: Origin | None


class RunGraph(NamedTuple):
    """One run: the hash of its graph without constants, and the constants."""

    graph_hash: int
    numbers: list[ExternalInput]


class Trace:
    """What one call computed. `ends` are the digests of results and gradients, `written` those of
    writes to outside memory.
    """

    def __init__(
        self, recorder: Recorder, before: PriorState, result: Any, returned: list[TensorCore]
    ) -> None:
        self.graphs: list[RunGraph] = []
        self.sources: list[ExternalInput] = []
        self.plain = plain_values(result)
        self._held: dict[Storage, StoredDigest] = {}
        # digest of a reshape -> digest and shape of its source
        self._reshaped: dict[Digest, tuple[Digest, Any]] = {}
        self._roles = _roles(recorder, before)
        self._sized = recorder.symbolic_results  # symbolic shapes of concrete results
        arguments = list(zip(before.storages, before.offsets, strict=True))
        self._starts = dict(reversed(arguments))  # storage -> offset of its first argument
        for run in recorder.runs:
            self._follow(run)
        gradients = [t.grad for t, _ in before.new_gradients(recorder) if t.grad is not None]
        ends = [tensor.uop for tensor in (*returned, *gradients) if tensor.uop.op is BUFFER]
        self.ends = [self._buffer(uop, None) for uop in ends]
        self.origins = [uop.origin for uop in ends]
        outside = [s for s in self._roles if s in self._held]
        self.written = sorted(hash((self._roles[s], self._held[s].digest)) for s in outside)
        del self._held, self._reshaped, self._roles, self._starts, self._sized

    # ------------------------------------------------------------------ digests

    def _follow(self, run: Run) -> None:
        digests: dict[UOp, Digest] = {}
        numbers: list[ExternalInput] = []
        shapes = []
        for node in toposort(run.values):
            digests[node] = self._digest(node, digests)
            if node.op is not CONST:
                shapes.append((node.op, node.dtype.name, node.shape))
                consts = [source.arg for source in node.src if source.op is CONST]
                numbers.extend(ExternalInput(repr(number), node.origin) for number in consts)
        self.graphs.append(RunGraph(hash(tuple(shapes)), numbers))
        views = run.views
        for value, end in zip(run.values, run.plan.results, strict=True):
            view = views[end.buffer]
            self._held[view.storage] = StoredDigest(digests[value], self._window(view))

    def _digest(self, node: UOp, digests: dict[UOp, Digest]) -> Digest:
        op = node.op
        if op is BUFFER:
            return self._buffer(node, node.origin)
        if op is CONST:
            return hash((CONST, node.dtype.name, repr(node.arg)))
        if op in TRANSPARENT:
            return digests[node.src[0]]
        if op is BIND:  # the value is given at launch
            return hash((BIND, node.src[0]))
        below = [digests[source] for source in node.src]
        if op is RESHAPE and len(below) == 1:
            return self._reshape(below[0], node.src[0].shape, node.shape)
        return hash((op, node.dtype.name, node.arg, *below))

    def _reshape(self, digest: Digest, old: Any, new: Any) -> Digest:
        """The digest of a reshape: chains collapse, and a reshape back to the first shape
        vanishes.
        """
        base, shape = self._reshaped.get(digest) or (digest, tuple(old))
        if tuple(new) == shape:
            return base
        found: Digest = hash((RESHAPE, base, tuple(new)))
        self._reshaped[found] = base, shape
        return found

    def _buffer(self, node: UOp, origin: Origin | None) -> Digest:
        view: View = node.arg
        window, held = self._window(view), self._held.get(view.storage)
        if held is not None:
            return held.digest if held.window == window else hash((held.digest, window))
        role = self._roles.get(view.storage, "unknown")
        self.sources.append(ExternalInput(role, origin))
        return hash((role, window))

    def _window(self, view: View) -> tuple[Any, ...]:
        """A view relative to the start of its argument."""
        offset = view.offset - self._starts.get(view.storage, 0)
        return view.dtype.name, self._sized.get(view, view.shape), view.strides, offset

    # ------------------------------------------------------------------ comparing

    def refuse_changed_numbers(self, later: Trace) -> None:
        """Raise an error if a later call used other numbers or data. It may compute something else,
        as the call after one that initialises.
        """
        if later.plain != self.plain:
            raise CaptureError(
                f"a captured function returns {later.plain}, and returned {self.plain} in the call "
                "before: replays would not see it change",
                hint="return tensors, or compute the number outside",
            )
        known: defaultdict[int, list[list[ExternalInput]]] = defaultdict(list)
        for graph in reversed(self.graphs):
            known[graph.graph_hash].append(graph.numbers)
        for graph in later.graphs:
            if rows := known[graph.graph_hash]:
                _refuse_number(rows.pop(), graph.numbers)
        data = {found.what for found in self.sources}
        for found in later.sources:
            if isinstance(found.what, PythonData) and found.what not in data:
                raise CaptureError(
                    f"{found.what} became a tensor inside of a captured function, "
                    "and was different in the call before: replays would not see it change",
                    hint="make the tensor outside and pass it as an argument",
                    origin=found.origin,
                )

    def refuse_changed_computation(self, later: Trace) -> None:
        """Raise an error if a later call computed something else."""
        if (later.ends, later.written) == (self.ends, self.written):
            return
        for old, new in zip(self.sources, later.sources, strict=False):
            if old.what != new.what:
                old_text, new_text = str(old.what), str(new.what)
                what = f"{new_text}, where it read {old_text}"
                if new_text == old_text:
                    what = f"another tensor outside, of {new.what.size} elements, than"
                raise _changed(f"reads {what}", new.origin)
        pairs = zip(self.ends, later.ends, later.origins, strict=False)
        line = next((origin for a, b, origin in pairs if a != b), None)
        raise _changed("computes something else than it did", line)


def _refuse_number(old: Iterable[ExternalInput], new: Iterable[ExternalInput]) -> None:
    for a, b in zip(old, new, strict=False):
        if a.what != b.what:
            raise CaptureError(
                f"a captured function uses the number {b.what}, which was {a.what} in the call "
                "before: replays would not see it change",
                hint="pass it as a Tensor, or as an argument of the function",
                origin=b.origin,
            )


def _changed(what: str, origin: Origin | None) -> CaptureError:
    return CaptureError(
        f"a captured function {what} when it was captured, and no Python value that is compared "
        "before replays had changed: replays may have used the old one",
        hint="pass it as an argument; the next call captures the function again",
        origin=origin,
    )


# ---------------------------------------------------------------------- where values come from


def _roles(recorder: Recorder, before: PriorState) -> dict[Storage, Any]:
    """What each storage that existed before, or that holds Python data, is to the call."""
    found: dict[Storage, Any] = {}
    for run in recorder.runs:
        for leaf in run.leaves:
            storage = leaf.arg.storage
            found.setdefault(storage, OutsideMemory(id(storage), storage.size))
    for run in recorder.runs:
        for view in run.allocated:
            found.pop(view.storage, None)
        for storage in run.unwritten:
            found.pop(storage, None)
    found.update((leaf.arg.storage, _data(leaf.arg)) for leaf in _made_inside(recorder, before))
    found.update((leaf.arg.storage, "the seed") for leaf in GENERATOR.keys.values())
    first = before.random_numbers
    found.update((leaf.arg.storage, f"random number {n - first}") for leaf, n in recorder.counters)
    for number, storage in reversed(list(enumerate(before.storages))):
        found[storage] = f"argument {number}"
    return found


def _made_inside(recorder: Recorder, before: PriorState) -> dict[UOp, None]:
    """The buffers that a call read, and that neither existed before nor were computed by it."""
    known = {leaf.arg.storage for leaf, _ in recorder.counters}
    known |= {view.storage for run in recorder.runs for view in run.allocated}
    known |= {storage for run in recorder.runs for storage in run.unwritten}
    known |= set(before.storages)
    known |= {storage for held in before.stored.values() if (storage := held.storage()) is not None}
    known |= {leaf.arg.storage for leaf in GENERATOR.keys.values()}
    leaves = {leaf: None for run in recorder.runs for leaf in run.leaves}
    known |= {leaf.arg.storage for leaf in leaves if leaf.number < before.first_number}
    return {leaf: None for leaf in leaves if leaf.arg.storage not in known}


def _data(view: View) -> PythonData:
    digest = blake2b(view.storage.as_buffer(), digest_size=16).digest()
    return PythonData(view.dtype.name, view.shape, view.strides, digest)
