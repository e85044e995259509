"""Lazy tensors -> tensors in memory: compute values, and make live tensors hold their buffers.

A View object identifies one version of the contents of a buffer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from glassgrad.base.errors import CaptureError
from glassgrad.base.gc_pause import gc_paused
from glassgrad.engine.capture.recorder import active_recorder
from glassgrad.engine.launch.error_cells import OutOfRangeError
from glassgrad.ir.ops import Ops
from glassgrad.ir.shape import Sizes
from glassgrad.ir.size import sizes_in
from glassgrad.ir.uop import UOp, set_realized
from glassgrad.ir.window import window_of
from glassgrad.memory.storage import Storage
from glassgrad.memory.view import View
from glassgrad.tensor.autograd.history import Parameters, is_differentiable, retain
from glassgrad.tensor.autograd.saved_contents import pending_copies, save_contents
from glassgrad.tensor.core import TensorCore, live_holders, live_tensors
from glassgrad.tensor.lazy.buffer_versions import (
    OVERWRITTEN,
    WRITERS,
    current_buffer,
    existing_buffer,
    note_preserved_copy,
    replaced_writes,
)
from glassgrad.tensor.lazy.carried_state import (
    ASSIGNED,
    INLINED,
    unrealized_tensors,
    values_to_carry,
    warn_if_graph_grows,
)
from glassgrad.tensor.lazy.collect import (
    collect_values,
    graph_to_compute,
    refuse_overwritten,
    uncomputed_nodes,
)
from glassgrad.tensor.lazy.composite import Composite
from glassgrad.tensor.lazy.deferred import expand_deferred, redirect_readers
from glassgrad.tensor.lazy.exclusive import GRAPHS, exclusive
from glassgrad.tensor.lazy.failed_writes import undo_failed_writes
from glassgrad.tensor.lazy.lazy_zeros import fresh_zeros
from glassgrad.tensor.lazy.run import pipeline, plan_and_run, run_plan
from glassgrad.tensor.lazy.unrealized import set_node, unrealized_holders
from glassgrad.tensor.lazy.values_to_keep import nodes_worth_keeping, values_to_materialize
from glassgrad.tensor.lazy.views import (
    ViewGroup,
    apply_steps,
    reads_shared_memory,
    root_storage,
    share_token_of,
    views_shared_memory,
)
from glassgrad.tensor.memo.slice_windows import SliceWindows
from glassgrad.tensor.memo.step_cache import (
    NEEDS_EXPANSION,
    CachedStep,
    ComputedStep,
    Lookup,
    look_up,
    store,
)

BUFFER, CONST, ASSIGN = Ops.BUFFER, Ops.CONST, Ops.ASSIGN
DETACH, CONTIGUOUS, RESHAPE = Ops.DETACH, Ops.CONTIGUOUS, Ops.RESHAPE


@exclusive
def realize(tensors: Iterable[TensorCore]) -> None:
    """Compute these tensors and everything that must be computed with them."""
    compute([tensor for tensor in tensors if not _realize_without_kernels(tensor)])


@exclusive
def realized_view(tensor: TensorCore) -> View:
    """The memory that holds a tensor's value, which is computed if necessary."""
    if (recorder := active_recorder()) is not None and recorder.is_strict:
        raise CaptureError(
            "a captured function looks at a value: replays would not look again",
            hint="return the tensor, and look at it outside",
        )
    held = existing_buffer(tensor.uop)
    if held is None or views_shared_memory(tensor):
        if not _realize_without_kernels(tensor):
            compute([tensor])
        held = current_buffer(tensor.uop) or _copy_shared_view(tensor.uop)
    refuse_overwritten((held,))
    view: View = held.arg
    return view


@exclusive
def _copy_shared_view(uop: UOp) -> UOp:
    """A copy of a view of shared memory. It is not stored as the value of the view, so the next
    read copies again.
    """
    copy = TensorCore._wrap_raw(UOp(CONTIGUOUS, uop.dtype, (uop,)))
    compute([copy])
    held = current_buffer(copy.uop)
    assert held is not None, uop
    return held


@contextmanager
def all_in_memory(tensors: Iterable[TensorCore]) -> Iterator[None]:
    """Realize tensors for use as arguments of a captured function. Views of shared memory that
    strides cannot express hold copies for the duration of the context.
    """
    tensors = list(tensors)
    realize(tensors)
    shown = [(one, one.uop) for one in tensors if one.uop.op is not BUFFER]
    if not shown:
        yield
        return
    with GRAPHS:
        copies = [_copy_shared_view(uop) for _, uop in shown]
        for (tensor, _), copy in zip(shown, copies, strict=True):
            set_node(tensor, copy)
        try:
            yield
        finally:
            for (tensor, uop), copy in zip(shown, copies, strict=True):
                if tensor.uop is copy:
                    set_node(tensor, uop)


@exclusive
def finish_writes() -> None:
    """Run all pending writes."""
    realize(tensors_with_pending_writes())


@exclusive
def tensors_with_pending_writes() -> list[TensorCore]:
    """Proxies for all tensors whose writes may not have run yet."""
    return [proxy_tensor(held.uop) for held in unrealized_holders() if held.uop.op is ASSIGN]


def proxy_tensor(uop: UOp) -> TensorCore:
    """A tensor that computes the node of another holder and shares its access to shared memory."""
    made = TensorCore._wrap_raw(uop)
    made._share_token = share_token_of(uop)
    return made


@exclusive
def compute(wanted: Sequence[TensorCore]) -> None:
    """Compute tensors; they hold buffers afterwards."""
    if not wanted:
        return
    if replaced := replaced_writes():
        redirect_readers(replaced)
    lazy = unrealized_holders()
    if any(holder.uop.op is ASSIGN for holder in lazy):
        save_contents(lazy)
        lazy = unrealized_holders()
    values = [tensor.uop for tensor in wanted]
    more = _values_to_carry(values, lazy)
    try:
        _compute(wanted, [*values, *more])
    except OutOfRangeError as error:
        undo_failed_writes(error.check)
        raise
    if more:
        _cut_graph_at(more)


def _values_to_carry(values: list[UOp], lazy: Iterable[TensorCore | ViewGroup]) -> list[UOp]:
    """The values under these that later computations will read again."""
    own = set(values)
    others = [holder for holder in lazy if holder.uop not in own]
    if not (others or INLINED or ASSIGNED.data):  # type: ignore[attr-defined]
        return []
    nodes = set(uncomputed_nodes(values))
    found = values_to_carry(own, nodes, unrealized_tensors(others))
    if any(node.op is ASSIGN for node in nodes):
        # These writes may be computed together with others, which replace what is to be copied.
        found += [copy for copy in pending_copies() if copy not in found]
    return found


def _cut_graph_at(nodes: Sequence[UOp]) -> None:
    """Make lazy tensors read computed values from memory and drop their graphs; a loop would
    otherwise keep the values of all its steps alive.
    """
    parameters = Parameters()
    changed: dict[UOp, UOp] = {}
    computed = [node for node in nodes if current_buffer(node) is not None]
    if Sizes.exist:  # buffers have concrete shapes, their readers symbolic ones
        computed = [node for node in computed if not sizes_in(node.shape)]
    for node in computed:
        changed[node] = buffer = node.realized
        retain(node, buffer, parameters)
    redirect_readers(changed, spares_gradients=True)


def _compute(wanted: Sequence[TensorCore], values: list[UOp]) -> None:
    """Compute values, the first of which belong to the tensors."""
    windows = SliceWindows()
    try:
        _compute_with(windows, wanted, values)
    finally:
        windows.close()


def _compute_with(windows: SliceWindows, wanted: Sequence[TensorCore], values: list[UOp]) -> None:
    lookup = None if active_recorder() is not None else look_up(values, _held_values, windows)
    if lookup is not None and lookup.step is NEEDS_EXPANSION:
        expansions = expand_deferred(values, only=Composite)
        values = [expansions.get(value, value) for value in values]
        lookup = look_up(values, _held_values, windows)
    if lookup is None or not isinstance(lookup.step, CachedStep):
        with gc_paused():
            _publish_wanted(wanted, values, _plan_and_compute(values, lookup))
        return
    graph_key, step = lookup.graph_key, lookup.step
    nodes, leaves = list(graph_key.numbers), graph_key.leaves
    given = [leaves[i] for i in step.leaves]
    bound_plan = pipeline().BoundPlan(step.plan, given, step.device, step.bound)
    views = run_plan(bound_plan, lambda: graph_to_compute(collect_values(values)[0]))
    buffers: dict[UOp, UOp] = {}
    for (numbers, is_new_version), view in zip(step.results, views, strict=True):
        buffer = _buffer(nodes[numbers[0]], view, is_new_version)
        for number in numbers:
            buffers[nodes[number]] = buffer
    _publish(buffers, [leaves[i] for i in step.overwritten], given)
    _publish_wanted(wanted, values, buffers)


def _publish_wanted(
    wanted: Sequence[TensorCore], values: Sequence[UOp], buffers: dict[UOp, UOp]
) -> None:
    """Set the buffers of the wanted tensors, even if another thread expanded their nodes
    meanwhile.
    """
    for tensor, value in zip(wanted, values, strict=False):
        if current_buffer(tensor.uop) is None and value in buffers:
            if not reads_shared_memory(tensor.uop):
                set_realized(tensor.uop, buffers[value])
            set_node(tensor, buffers[value])


def _plan_and_compute(values: Sequence[UOp], lookup: Lookup | None) -> dict[UOp, UOp]:
    """Find what must be computed together, plan it and run it, and store the step for equal graphs.
    Returns value -> buffer.
    """
    roots, writes, nodes, expansions = collect_values(values)
    warn_if_graph_grows(values[0], len(nodes))
    if (recorder := active_recorder()) is not None:
        recorder.nodes.update(nodes)
    own = set(roots)
    wider = nodes_worth_keeping(nodes, own)
    more = values_to_materialize(wider, live_tensors) if wider else []
    roots = [*roots, *(node for node in more if node not in own)]
    graph = graph_to_compute(roots, nodes)
    views, bound_plan = plan_and_run(graph)
    rows = zip(roots, graph, views, strict=True)
    results = {
        root: root.op is ASSIGN and view is _written_buffer(value).arg for root, value, view in rows
    }
    overwritten = [_written_buffer(_resolved_target(write)) for write in writes]
    if lookup is not None and bound_plan is not None:
        store(lookup, ComputedStep(bound_plan, results, overwritten, expansions, bool(wider)))
    pairs = zip(results.items(), views, strict=True)
    buffers = {root: _buffer(root, view, is_new_version) for (root, is_new_version), view in pairs}
    _publish(
        buffers, overwritten, [leaf for node in nodes if (leaf := current_buffer(node)) is not None]
    )
    return {
        value: buffers[root]
        for value in values
        if (root := expansions.get(value, value)) in buffers
    }


def _buffer(root: UOp, view: View, is_new_version: bool) -> UOp:
    """The BUFFER node for the view of a computed value."""
    buffer = UOp(BUFFER, root.dtype, (), view.new_version() if is_new_version else view)
    buffer.origin = root.origin
    return buffer


def _publish(buffers: dict[UOp, UOp], overwritten: Sequence[UOp], leaves: Sequence[UOp]) -> None:
    """Make live tensors hold the computed buffers. The contents of `overwritten` buffers were
    overwritten.
    """
    shared = {root for root in buffers if reads_shared_memory(root)}
    pairs = [
        (holder, buffer)
        for holder in unrealized_holders()
        if (buffer := buffers.get(holder.uop))
        and not (
            holder.uop in shared and isinstance(holder, TensorCore) and views_shared_memory(holder)
        )
    ]
    for buffer in overwritten:
        OVERWRITTEN.add(buffer.arg)
    for root, buffer in buffers.items():
        if root not in shared:
            set_realized(root, buffer)
        if root.op is ASSIGN and (writer := WRITERS.get(root)) is not None:
            WRITERS[buffer] = writer
    parameters = Parameters()
    for holder, buffer in pairs:
        if is_differentiable(holder):
            retain(holder.uop, buffer, parameters, leaves)
    for holder, buffer in pairs:
        set_node(holder, buffer)
    for root, buffer in buffers.items():
        note_preserved_copy(root, buffer)


def _held_values() -> list[UOp]:
    return [holder.uop for holder in live_holders()]


def _realize_without_kernels(tensor: TensorCore) -> bool:
    """True if the tensor is in memory, or can be without running a kernel."""
    if views_shared_memory(tensor):
        recorder = active_recorder()
        if recorder is None or id(tensor) in recorder.preexisting:
            _show_shared_memory(tensor)
            return True
        if tensor.uop.op is not BUFFER:
            set_node(tensor, UOp(CONTIGUOUS, tensor.dtype, (tensor.uop,)))  # for replays
            return False
    elif (whole := tensor._view_group) is not None and share_token_of(whole.uop) not in (
        None,
        tensor._share_token,
    ):
        copy = UOp(CONTIGUOUS, whole.uop.dtype, (whole.uop,))  # the views become views of a value
        whole.set_contents(copy)
        compute([TensorCore._wrap_raw(copy)])
    found = existing_buffer(tensor.uop) or fresh_zeros(tensor.uop)
    node = found or tensor.uop
    # Others may write
    if share_token_of(node) not in (None, tensor._share_token):
        set_node(tensor, UOp(CONTIGUOUS, node.dtype, (node,)))
        return False
    if found is None:
        return False
    if is_differentiable(tensor):
        retain(tensor.uop, found, Parameters())
    set_node(tensor, found)
    return True


def _show_shared_memory(view: TensorCore) -> None:
    """Make a view of shared memory hold a window on it, since a copy would not show later writes by
    others. Where strides cannot express the window, the view stays lazy.
    """
    whole = view._view_group
    assert whole is not None
    if current_buffer(whole.uop) is None:  # a pending write
        compute([TensorCore._wrap_raw(whole.uop)])
    held = current_buffer(whole.uop)
    assert held is not None, whole.uop
    if view.uop.op is BUFFER and _root_of_buffer(view.uop) is _root_of_buffer(held):
        return
    shown = apply_steps(held, view._view_steps)
    window = window_of(shown)
    if window is None:
        set_node(view, shown)
        return
    buffer = UOp(BUFFER, shown.dtype, (), window.with_own_storage())
    buffer.origin = view.uop.origin
    if is_differentiable(view):
        retain(shown, buffer, Parameters())
    set_node(view, buffer)


def _root_of_buffer(buffer: UOp) -> Storage:
    return root_storage(buffer.arg.storage)


def _written_buffer(uop: UOp) -> UOp:
    """The buffer at the end of a chain of writes."""
    while uop.op is ASSIGN:
        uop = uop.src[0]
    return uop


def _resolved_target(write: UOp) -> UOp:
    target = write.src[0]
    while target.op is ASSIGN and current_buffer(target) is None:
        target = target.src[0]
    return current_buffer(target) or target
