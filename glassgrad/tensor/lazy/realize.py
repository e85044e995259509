"""lazy tensors -> tensors in memory: values are computed, and living tensors hold their buffers.

A View stands for one version of the contents of a buffer, so old versions are known by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import ref

from glassgrad.base.errors import CaptureError
from glassgrad.base.gc_pause import collector_paused
from glassgrad.base.origin import Origin
from glassgrad.engine.capture.recorder import recorder
from glassgrad.engine.launch.error_flags import OutOfRangeError
from glassgrad.ir.ops import Ops
from glassgrad.ir.shape import Sizes
from glassgrad.ir.size import bindings, sizes_in
from glassgrad.ir.uop import UOp, note
from glassgrad.ir.window import MOVEMENTS, file_window, window_of
from glassgrad.memory.storage import Storage
from glassgrad.memory.view import View
from glassgrad.tensor.autograd.history import Parameters, is_differentiable, retain
from glassgrad.tensor.autograd.saved_contents import save_contents
from glassgrad.tensor.core import TensorCore, holders, living
from glassgrad.tensor.lazy.buffer_versions import (
    OVERWRITTEN,
    WRITERS,
    current,
    moved_to,
    replaced_writes,
)
from glassgrad.tensor.lazy.carried_state import (
    READ_ONCE,
    UPDATED,
    carried,
    lazy_tensors,
    watch_growth,
)
from glassgrad.tensor.lazy.collect import collect, prepared, refuse_overwritten, walk
from glassgrad.tensor.lazy.composite import Composite
from glassgrad.tensor.lazy.deferred import read_instead, written_out
from glassgrad.tensor.lazy.exclusive import GRAPHS, exclusive
from glassgrad.tensor.lazy.failed_writes import forget_writes
from glassgrad.tensor.lazy.lazy_zeros import fresh_zeros
from glassgrad.tensor.lazy.materialization_policy import values_to_keep, worth_memory
from glassgrad.tensor.lazy.run import pipeline, run, run_again
from glassgrad.tensor.lazy.unrealized import hold, lazy_holders
from glassgrad.tensor.lazy.views import Whole, holder_of, moved, root_of, shows_lent_memory
from glassgrad.tensor.memo.slice_windows import Windows
from glassgrad.tensor.memo.step_cache import WRITTEN, Course, Done, Found, recognised, remember
from glassgrad.tensor.record import bound, record

if TYPE_CHECKING:
    pass

BUFFER, CONST, ASSIGN = Ops.BUFFER, Ops.CONST, Ops.ASSIGN
DETACH, CONTIGUOUS, RESHAPE = Ops.DETACH, Ops.CONTIGUOUS, Ops.RESHAPE
MOST_NAMED = 8  # tensors in a message about memory


def writable(uop: UOp) -> UOp | None:
    """The version of a buffer that a write to this value may replace; None if there is none.

    A version is replaced by one write only. A second tensor that holds it gets memory of its own.
    """
    held = current(uop) or (uop if uop.op is ASSIGN else None)
    if held is None or (held.op is BUFFER and held.arg.readonly):
        return None
    writer = WRITERS.get(held)
    return held if writer is None or writer() is None else None


def written(
    target: UOp, value: UOp, chain: tuple[Any, ...] = (), origin: Origin | None = None
) -> UOp:
    """The next version: the target after a value was written into it."""
    if Sizes.exist and (values := bindings(chain)):  # where it is written may depend on variables
        value = UOp(RESHAPE, value.dtype, (value, *bound(values)), value.shape)
    write = record(ASSIGN, target.dtype, (target, value), chain, origin)
    WRITERS[target] = ref(write)
    return write


def in_memory(uop: UOp) -> UOp | None:
    """The buffer that holds this value without anything being computed: parts of files too."""
    held = current(uop)
    if held is None and (part := file_window(uop)) is not None:
        held = UOp(BUFFER, uop.dtype, (), part)
        note(uop, held)
    return held


@exclusive
def realize(tensors: Iterable[TensorCore]) -> None:
    """Compute these tensors, and whatever must be computed with them; all become buffers."""
    compute([tensor for tensor in tensors if not _settle(tensor)])


@exclusive
def look(tensor: TensorCore) -> View:
    """The memory that holds a tensor's value."""
    if (watching := recorder()) is not None and watching.is_strict:
        raise CaptureError(
            "a captured function looks at a value: replays would not look again",
            hint="return the tensor, and look at it outside",
        )
    held = in_memory(tensor.uop)
    if held is None or shows_lent_memory(tensor):
        if not _settle(tensor):
            compute([tensor])
        held = current(tensor.uop) or _copied_now(tensor.uop)
    refuse_overwritten((held,))
    view: View = held.arg
    return view


@exclusive
def _copied_now(uop: UOp) -> UOp:
    """A copy of what a view shows of memory that others write to. It is nobody's value: the next
    one who looks is given another.
    """
    copy = TensorCore._handed(UOp(CONTIGUOUS, uop.dtype, (uop,)))
    compute([copy])
    held = current(copy.uop)
    assert held is not None, uop
    return held


@contextmanager
def all_in_memory(tensors: Iterable[TensorCore]) -> Iterator[None]:
    """Compute tensors, as arguments of a captured function. Views of memory that others write to
    hold copies only meanwhile, if no strides say where what they show lies.
    """
    tensors = list(tensors)
    realize(tensors)
    shown = [(one, one.uop) for one in tensors if one.uop.op is not BUFFER]
    if not shown:
        yield
        return
    with GRAPHS:
        copies = [_copied_now(uop) for _, uop in shown]
        for (tensor, _), copy in zip(shown, copies, strict=True):
            hold(tensor, copy)
        try:
            yield
        finally:
            for (tensor, uop), copy in zip(shown, copies, strict=True):
                if tensor.uop is copy:
                    hold(tensor, uop)


@exclusive
def finish_writes() -> None:
    """Do all writes that were asked for."""
    realize(written_lazily())


@exclusive
def written_lazily() -> list[TensorCore]:
    """The tensors whose writes may not have happened yet."""
    return [stand_in(held.uop) for held in lazy_holders() if held.uop.op is ASSIGN]


def stand_in(uop: UOp) -> TensorCore:
    """A tensor to compute what others hold; it sees the memory that others write to, as they do."""
    made = TensorCore._handed(uop)
    made._home = holder_of(uop)
    return made


@exclusive
def compute(wanted: Sequence[TensorCore]) -> None:
    """Compute tensors; they hold buffers from then on."""
    if not wanted:
        return
    if replaced := replaced_writes():
        read_instead(replaced)
    lazy = lazy_holders()
    if any(holder.uop.op is ASSIGN for holder in lazy):
        save_contents(lazy)
        lazy = lazy_holders()
    values = [tensor.uop for tensor in wanted]
    more = _carried(values, lazy)
    try:
        _compute(wanted, [*values, *more])
    except OutOfRangeError as error:
        forget_writes(error.check)
        raise
    if more:
        _cut_at(more)


def _carried(values: list[UOp], lazy: Iterable[TensorCore | Whole]) -> list[UOp]:
    """The values under these that later computations will read again."""
    own = set(values)
    others = [holder for holder in lazy if holder.uop not in own]
    if not (others or READ_ONCE or UPDATED.data):  # type: ignore[attr-defined]
        return []
    return carried(own, set(walk(values)), lazy_tensors(others))


def _cut_at(nodes: Sequence[UOp]) -> None:
    """Let lazy tensors read computed values from memory, and nothing of what those were made of:
    a loop would hold the values of all its steps.
    """
    parameters = Parameters()
    changed: dict[UOp, UOp] = {}
    computed = [node for node in nodes if current(node) is not None]
    if Sizes.exist:  # memory has the values of sizes as its shape; what reads it has the sizes
        computed = [node for node in computed if not sizes_in(node.shape)]
    for node in computed:
        changed[node] = buffer = node.realized
        retain(node, buffer, parameters)
    read_instead(changed, spares_gradients=True)


def _compute(wanted: Sequence[TensorCore], values: list[UOp]) -> None:
    """Compute values, of which the first are those of the tensors."""
    windows = Windows()
    try:
        _compute_with(windows, wanted, values)
    finally:
        windows.close()


def _compute_with(windows: Windows, wanted: Sequence[TensorCore], values: list[UOp]) -> None:
    found = None if recorder() is not None else recognised(values, _held_values, windows)
    if found is not None and found.course is WRITTEN:
        became = written_out(values, only=Composite)
        values = [became.get(value, value) for value in values]
        found = recognised(values, _held_values, windows)
    if found is None or not isinstance(found.course, Course):
        with collector_paused():
            _settle_all(wanted, values, _compute_anew(values, found))
        return
    outline, course = found.outline, found.course
    nodes, leaves = list(outline.numbers), outline.leaves
    given = [leaves[i] for i in course.leaves]
    made = pipeline().BoundPlan(course.plan, given, course.device, course.bound)
    views = run_again(made, lambda: prepared(collect(values)[0]))
    held: dict[UOp, UOp] = {}
    for (numbers, is_same), view in zip(course.ends, views, strict=True):
        buffer = _buffer(nodes[numbers[0]], view, is_same)
        for number in numbers:
            held[nodes[number]] = buffer
    _hold(held, [leaves[i] for i in course.ended], given)
    _settle_all(wanted, values, held)


def _settle_all(wanted: Sequence[TensorCore], values: Sequence[UOp], held: dict[UOp, UOp]) -> None:
    """Another thread may have written the graphs of tensors: they then hold other nodes now."""
    for tensor, value in zip(wanted, values, strict=False):
        if current(tensor.uop) is None and value in held:
            if not _shows_lent_memory(tensor.uop):
                note(tensor.uop, held[value])
            hold(tensor, held[value])


def _compute_anew(values: Sequence[UOp], found: Found | None) -> dict[UOp, UOp]:
    """Find out what must be computed together, and how; remember it for what looks the same. The
    values come back with their buffers.
    """
    roots, writes, nodes, became = collect(values)
    watch_growth(values[0], len(nodes))
    if (watching := recorder()) is not None:
        watching.nodes.update(nodes)
    own = set(roots)
    wider = worth_memory(nodes, own)
    more = [node for node in values_to_keep(wider, living) if node not in own] if wider else []
    roots = [*roots, *more]
    graph = prepared(roots, nodes)
    views, made = run(graph)
    rows = zip(roots, graph, views, strict=True)
    ends = {root: root.op is ASSIGN and view is _base(value).arg for root, value, view in rows}
    ended = [_base(_resolved_target(write)) for write in writes]
    if found is not None and made is not None:
        remember(found, Done(made, ends, ended, became, bool(wider)))
    pairs = zip(ends.items(), views, strict=True)
    held = {root: _buffer(root, view, is_same) for (root, is_same), view in pairs}
    _hold(held, ended, [leaf for node in nodes if (leaf := current(node)) is not None])
    return {value: held[root] for value in values if (root := became.get(value, value)) in held}


def _buffer(root: UOp, view: View, is_same: bool) -> UOp:
    """The node of the view that holds a value."""
    buffer = UOp(BUFFER, root.dtype, (), view.renewed() if is_same else view)
    buffer.origin = root.origin
    return buffer


def _hold(held: dict[UOp, UOp], ended: Sequence[UOp], leaves: Sequence[UOp]) -> None:
    """Let living tensors hold what was computed from the leaves. The contents of ended buffers are
    gone.
    """
    lent = {root for root in held if _shows_lent_memory(root)}
    pairs = [
        (holder, buffer)
        for holder in lazy_holders()
        if (buffer := held.get(holder.uop))
        and not (
            holder.uop in lent and isinstance(holder, TensorCore) and shows_lent_memory(holder)
        )
    ]
    for buffer in ended:
        OVERWRITTEN.add(buffer.arg)
    for root, buffer in held.items():
        if root not in lent:
            note(root, buffer)
        if root.op is ASSIGN and (writer := WRITERS.get(root)) is not None:
            WRITERS[buffer] = writer
    parameters = Parameters()
    for holder, buffer in pairs:
        if is_differentiable(holder):
            retain(holder.uop, buffer, parameters, leaves)
    for holder, buffer in pairs:
        hold(holder, buffer)
    for root, buffer in held.items():
        moved_to(root, buffer)


def _shows_lent_memory(node: UOp) -> bool:
    """Whether a node is elements of memory that others may write to: what was read of them once is
    the value of the tensor that asked, and not of the views that hold the same node.
    """
    first = node
    while node.op in MOVEMENTS:
        node = node.src[0]
    return node is not first and holder_of(node) is not None


def _held_values() -> list[UOp]:
    return [holder.uop for holder in holders()]


def _settle(tensor: TensorCore) -> bool:
    """Whether the tensor is in memory already, or needs none that was written to."""
    if shows_lent_memory(tensor):
        watching = recorder()
        if watching is None or id(tensor) in watching.preexisting:
            _look_through(tensor)
            return True
        if tensor.uop.op is not BUFFER:
            hold(tensor, UOp(CONTIGUOUS, tensor.dtype, (tensor.uop,)))  # replays copy it, too
            return False
    elif (whole := tensor._whole) is not None and holder_of(whole.uop) not in (None, tensor._home):
        copy = UOp(CONTIGUOUS, whole.uop.dtype, (whole.uop,))  # the views are of a value
        whole.show(copy)
        compute([TensorCore._handed(copy)])
    found = in_memory(tensor.uop) or fresh_zeros(tensor.uop)
    node = found or tensor.uop
    if holder_of(node) not in (None, tensor._home):  # it would change under this value
        hold(tensor, UOp(CONTIGUOUS, node.dtype, (node,)))
        return False
    if found is None:
        return False
    if is_differentiable(tensor):
        retain(tensor.uop, found, Parameters())
    hold(tensor, found)
    return True


def _look_through(view: TensorCore) -> None:
    """Let a view of memory that others see hold a window on it. A copy would not show what they
    write; where strides cannot say which elements these are, the view stays what it is.
    """
    whole = view._whole
    assert whole is not None
    if current(whole.uop) is None:  # a write waits
        compute([TensorCore._handed(whole.uop)])
    held = current(whole.uop)
    assert held is not None, whole.uop
    if view.uop.op is BUFFER and _root(view.uop) is _root(held):
        return
    shown = moved(held, view._steps)
    window = window_of(shown)
    if window is None:
        hold(view, shown)
        return
    buffer = UOp(BUFFER, shown.dtype, (), window.apart())
    buffer.origin = view.uop.origin
    if is_differentiable(view):
        retain(shown, buffer, Parameters())
    hold(view, buffer)


def _root(buffer: UOp) -> Storage:
    return root_of(buffer.arg.storage)


def _base(uop: UOp) -> UOp:
    """The buffer under a chain of writes."""
    while uop.op is ASSIGN:
        uop = uop.src[0]
    return uop


def _resolved_target(write: UOp) -> UOp:
    target = write.src[0]
    while target.op is ASSIGN and current(target) is None:
        target = target.src[0]
    return current(target) or target
