"""CapturedGraph: what the second call of a TinyJit leaves for replays."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from threading import get_ident
from typing import Any, NamedTuple, cast
from weakref import ref

from glassgrad.base.config import NO_GRAD, TRAINING
from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.errors import CaptureError
from glassgrad.engine.capture.recorder import Recorder
from glassgrad.engine.capture.replay import Capture, Replay, merge_runs
from glassgrad.engine.plan.size_checks import SizeCheck, check_all
from glassgrad.ir.ops import Ops
from glassgrad.ir.size import Bound
from glassgrad.ir.uop import UOp
from glassgrad.memory.sharing import SHARED_STORAGES
from glassgrad.memory.storage import Storage
from glassgrad.memory.view import View
from glassgrad.tensor.core import LIVE_TENSORS, TensorCore
from glassgrad.tensor.device_names import canonical_device
from glassgrad.tensor.jit.argument_specs import argument_specs
from glassgrad.tensor.jit.captured_state import CapturedTensor, holders_by_storage, renew_version
from glassgrad.tensor.jit.checks import (
    FirstCall,
    PriorState,
    refuse_tensors_in_objects,
    touched_storages,
)
from glassgrad.tensor.jit.output_buffers import BufferWindow, Output, OutputBuffer
from glassgrad.tensor.jit.pytree import TensorPlaceholder, unflatten
from glassgrad.tensor.jit.references import UNSHARED_COUNT, references_to_node
from glassgrad.tensor.jit.rng_state import RngCells
from glassgrad.tensor.jit.trace import Trace
from glassgrad.tensor.lazy.buffer_versions import OVERWRITTEN
from glassgrad.tensor.lazy.exclusive import exclusive
from glassgrad.tensor.lazy.unrealized import set_node
from glassgrad.tensor.lazy.views import ViewGroup, set_contents
from glassgrad.tensor.ops.random import GENERATOR

BUFFER = Ops.BUFFER
UOP, NUMBER = attrgetter("uop"), attrgetter("number")
Ints = tuple[int, ...]


class ArgumentBase(NamedTuple):
    """An argument, the base pointer that it sets, and its byte offset from that base in the
    capture.
    """

    number: int
    base: int
    before: int


def settings_key() -> tuple[int, int, DType, DType, str]:
    """The settings that decide what a function computes."""
    floats, ints = dtypes.default_float, dtypes.default_int
    return TRAINING.value, NO_GRAD.value, floats, ints, canonical_device(None)


class CapturedGraph:
    """A call that can be replayed."""

    def __init__(
        self,
        earlier: FirstCall | CapturedGraph,
        trace: Trace,
        recorder: Recorder,
        before: PriorState,
        result: Any,
        returned: list[TensorCore],
    ) -> None:
        self.modes = settings_key()
        self.trace = trace
        self.replays: int = earlier.replays if isinstance(earlier, CapturedGraph) else 0
        self.size_checks = recorder.size_checks
        self.storages = touched_storages(recorder, before, returned)
        self.argument_specs = argument_specs(before.arguments)
        self.last_nodes = [tensor.uop for tensor in before.arguments]
        escaped = _escaped(before, returned)
        refuse_tensors_in_objects(result, escaped)
        stored = [tensor for tensor in escaped if tensor.uop.op is BUFFER]
        self.invalidated = [ref(tensor) for tensor in escaped if tensor.uop.op is not BUFFER]
        fresh = {tensor.uop.arg.storage for tensor in (*returned, *stored)}
        capture, numbers = merge_runs(recorder.runs, fresh, _device(recorder))
        _refuse_other_variables(capture, self.size_checks, before.values)
        self.replay = Replay(capture, before.values)
        self._sort_bases(recorder, before)
        self._find_suspects(earlier, before)
        # inlined in the capture; some may have been realized since
        self.lazy = [(held, node) for held, node in before.lazy.items() if node in recorder.nodes]
        self.output_buffers = [
            OutputBuffer(n, s, []) for n, s in enumerate(capture.allocated, len(capture.inputs))
        ]
        self.kind: Any = type(returned[0]) if returned else TensorCore
        sized = recorder.symbolic_results
        given = before.arguments
        self.outputs = [self._output(tensor, given, sized, numbers) for tensor in returned]
        left = [(ref(tensor), self._output(tensor, given, sized, numbers)) for tensor in stored]
        # Views of outside memory that a call leaves behind need no update by replays.
        self.stored = [(held, output) for held, output in left if output.tensor is None]
        self._adopt_left_memory(numbers, {output.made for output in self.outputs}, stored)
        self.gradients = [self._gradient(*found) for found in before.new_gradients(recorder)]
        self.read_gradients = before.gradients_in({known.storage for known in self.outside_tensors})
        self.has_effects = bool(
            self.renewed or self.written or self.stored or self.invalidated or self.gradients
        )
        self.template = unflatten(result, iter([TensorPlaceholder()] * len(returned)))
        self.is_one_tensor = (
            isinstance(self.template, TensorPlaceholder) and self.outputs[0].is_first_made
        )

    def _adopt_left_memory(
        self, numbers: dict[Storage, int], returned: set[int], stored: list[TensorCore]
    ) -> None:
        """Let replays refill memory that the call left in tensors, such as gradients."""
        left: dict[int, list[TensorCore]] = {}
        for tensor in stored:
            if (number := numbers.get(tensor.uop.arg.storage)) not in (None, *returned):
                left.setdefault(cast(int, number), []).append(tensor)
        self.refilled = [self.output_buffers[number] for number in left]
        for number, tensors in left.items():
            self.output_buffers[number].adopt(tensors, self.replay)

    def _gradient(self, tensor: TensorCore, was_there: bool) -> GradientEffect:
        if tensor.grad is None:
            return GradientEffect(ref(tensor), was_there)
        made = [output for held, output in self.stored if held() is tensor.grad]
        shape, dtype = tensor.grad.shape, tensor.grad.dtype
        return GradientEffect(
            ref(tensor), was_there, made[0] if made else _invalid_buffer(shape, dtype)
        )

    def _sort_bases(self, recorder: Recorder, before: PriorState) -> None:
        """Classify base pointers: arguments, random counters and memory of outside tensors; the
        rest is constant.
        """
        arguments = before.arguments
        written = {view.storage for run in recorder.runs for view in run.written}
        starts: dict[Storage, int | None] = dict.fromkeys(
            leaf.arg.storage for leaf in GENERATOR.keys.values()
        )
        starts |= {leaf.arg.storage: n - before.random_numbers for leaf, n in recorder.counters}
        held = holders_by_storage()
        self.arguments: list[ArgumentBase] = []
        self.outside_tensors: list[CapturedTensor] = []
        counters: dict[int, int | None] = {}
        for base, storage in enumerate(self.replay.capture.inputs):
            own = [n for n, tensor in enumerate(arguments) if tensor.uop.arg.storage is storage]
            if own:
                view: View = arguments[own[0]].uop.arg
                self.arguments.append(ArgumentBase(own[0], base, view.offset * view.dtype.itemsize))
            elif storage in starts:
                counters[base] = starts[storage]
            elif storage in held:
                self.outside_tensors.append(
                    CapturedTensor(storage, held[storage], storage in written)
                )
        written_ones = [known for known in self.outside_tensors if known.is_written]
        self.renewed = [(held, known.storage) for known in written_ones for held in known.holders]
        self.written = [n for n, t in enumerate(arguments) if t.uop.arg.storage in written]
        total = GENERATOR.used - before.random_numbers
        self.random = RngCells(counters, total, self.replay)

    def _find_suspects(self, earlier: FirstCall | CapturedGraph, before: PriorState) -> None:
        """Find arguments whose memory the previous call used as well: they may also be read as
        outside tensors.

        A call with another argument in that position is captured again, which settles it.
        """
        numbered = enumerate(before.storages)
        self.suspects = {n: storage for n, storage in numbered if storage in earlier.storages}
        pairs = [(held, known.storage) for known in self.outside_tensors for held in known.holders]
        self.holders = [held for held, _ in pairs]
        self.held = [storage for _, storage in pairs]
        self.outside = {known.storage for known in self.outside_tensors}

    def _output(
        self,
        tensor: TensorCore,
        arguments: list[TensorCore],
        sized: dict[View, Ints],
        numbers: dict[Storage, int],
    ) -> Output:
        view: View = tensor.uop.arg
        shape = sized.get(view, view.shape)
        window = BufferWindow(view.dtype, shape, view.strides, view.offset)
        number = numbers.get(view.storage)
        if number is not None:
            self.output_buffers[number].windows.append(window)
            return Output(made=number, number=len(self.output_buffers[number].windows) - 1)
        for number, argument in enumerate(arguments):
            if argument is tensor:
                return Output(number)
            if argument.uop.arg.storage is view.storage:
                start = argument.uop.arg.offset
                return Output(number, window=window._replace(offset=view.offset - start))
        return Output(tensor=tensor)

    # ------------------------------------------------------------------ later calls

    def accepts(self, arguments: list[TensorCore]) -> bool:
        """True if the arguments have the specs and the aliasing of the capture; points the replay
        at them.
        """
        uops = [tensor.uop for tensor in arguments]
        if uops == self.last_nodes:
            return True
        found = argument_specs(arguments)
        if found != self.argument_specs or not self._keep_aliasing(
            [uop.arg.storage for uop in uops]
        ):
            return False
        self.last_nodes = uops
        for number, base, before in self.arguments:
            self.replay.set_base(base, uops[number].arg.address - before)
            self.replay.storages[base] = uops[number].arg.storage
        return True

    def _keep_aliasing(self, storages: list[Storage]) -> bool:
        """True if the arguments share only the memory that they shared in the capture."""
        if any(storages[number] is not storage for number, storage in self.suspects.items()):
            return False
        written = [storages[number] for number in self.written]
        written += [known.storage for known in self.outside_tensors if known.is_written]
        shared = {other for storage in written for other in SHARED_STORAGES.overlapping(storage)}
        return self.outside.isdisjoint(storages) and shared.isdisjoint([*storages, *self.outside])

    def is_unchanged(self, arguments: Sequence[Any]) -> bool:
        """True if nothing changed since the last call for certain; False leaves it to the full
        check.
        """
        try:
            if list(map(UOP, arguments)) != self.last_nodes or self.lazy:
                return False
            if not self._gradients_are_unchanged():
                return False
            held = self.held
            return not held or [h().uop.arg.storage for h in self.holders] == held  # type: ignore[union-attr]
        except AttributeError:  # no tensor, no longer there, or not in memory
            return False

    def is_valid(self) -> bool:
        """True if outside tensors are still what the capture found."""
        if not self._gradients_are_unchanged():
            return False
        # This also runs pending writes
        if not all(map(CapturedTensor.is_held, self.outside_tensors)):
            return False
        return all((tensor := held()) is None or tensor.uop is old for held, old in self.lazy)

    def _gradients_are_unchanged(self) -> bool:
        """True if the same tensors have gradients, and gradients that were read are the same
        tensors.
        """
        if self.gradients and not all(map(GradientEffect.is_unchanged, self.gradients)):
            return False
        return all(
            (tensor := held()) is None or tensor.grad is gradient()
            for held, gradient in self.read_gradients
        )

    def __call__(self, arguments: Sequence[TensorCore], values: Bound) -> Any:
        """Replay: point at the memory of this call, run, and return the results."""
        if values:
            check_all(self.size_checks, values)
            self.replay.bind_variables(values)
        replayed = self.replay
        made = []
        for one in self.output_buffers:
            made.append(one.ready(replayed))
        if self.random.starts:
            self.random.advance()
        replayed.run()
        if self.has_effects:
            self._settle(arguments, made)
        if self.is_one_tensor:
            return self.kind._wrap_raw(made[0][0])
        results = [output.tensor_of(self.kind, made, arguments) for output in self.outputs]
        return unflatten(self.template, iter(results))

    @exclusive
    def _settle(self, arguments: Sequence[TensorCore], made: list[list[UOp]]) -> None:
        """Apply the effects of a replay on tensors that it does not return."""
        done: set[ViewGroup] = set()
        for held, storage in self.renewed:
            tensor = held()
            # Without other references to the node nothing reads the old version.
            if tensor is not None and references_to_node(tensor) > UNSHARED_COUNT:
                if tensor.uop.arg.storage is storage:
                    renew_version(tensor, done)
        for number in self.written:
            renew_version(arguments[number], done)
        if self.invalidated:
            self._invalidate()
        for held, output in self.stored:
            if (tensor := held()) is not None:
                set_contents(tensor, output.node_of(made, arguments))
        for gradient in self.gradients:
            gradient.settle(made, arguments)
        for found in self.refilled:
            found.settle()

    def _invalidate(self) -> None:
        """Invalidate lazy tensors that the captured call left behind: replays do not compute
        them.
        """
        for held in self.invalidated:
            if (tensor := held()) is not None:
                set_node(tensor, _invalid_buffer(tensor.uop.shape, tensor.uop.dtype))
        self.invalidated = []


class GradientEffect(NamedTuple):
    """What a call leaves in a tensor's `.grad`: a computed gradient, an invalid buffer if only
    parts of it were computed, or None.
    """

    held: ref[TensorCore]
    was_there: bool  # whether it had a gradient before the call
    left: Output | UOp | None = None

    def is_unchanged(self) -> bool:
        """True if backward() meets a gradient to add to if it did in the capture."""
        tensor = self.held()
        return tensor is None or (tensor.grad is not None) == self.was_there

    def settle(self, made: list[list[UOp]], arguments: Sequence[TensorCore]) -> None:
        tensor, left = self.held(), self.left
        if tensor is None:
            return
        if left is None:
            tensor.grad = None
        elif isinstance(left, UOp):
            if tensor.grad is None:
                tensor.grad = tensor._wrap_raw(left)
        elif tensor.grad is None or tensor.grad.uop is not left.node_of(made, arguments):
            tensor.grad = tensor._wrap_raw(left.node_of(made, arguments))


def _invalid_buffer(shape: Ints, dtype: DType) -> UOp:
    """A buffer that raises an error when it is read."""
    gone = View.empty("CPU", shape, dtype)
    OVERWRITTEN.add(gone)
    return UOp(BUFFER, dtype, (), gone)


def _refuse_other_variables(capture: Capture, size_checks: list[SizeCheck], values: Bound) -> None:
    used = [found for launch in capture.launches for found in launch.variables]
    for variable in {*used, *[found for check in size_checks for found in check.variables]}:
        if variable not in values:
            raise CaptureError(
                f"a captured function uses the variable {variable.arg[0]}, which is none of its "
                "arguments: replays would not see it change",
                hint="pass it, bound to its value, as an argument",
            )


def _device(recorder: Recorder) -> Any:
    """The one device that everything ran on."""
    from glassgrad.devices.registry import Device

    found = {run.device.name: run.device for run in recorder.runs}
    if len(found) > 1:
        raise CaptureError(
            f"a captured function ran on {' and '.join(found)}",
            hint="capture the work of each device on its own",
        )
    return next(iter(found.values()), None) or Device[Device.DEFAULT]


def _escaped(before: PriorState, returned: list[TensorCore]) -> list[TensorCore]:
    """Tensors made inside of the call that are still referenced, but were not returned."""
    own, thread = {id(tensor) for tensor in returned}, get_ident()
    return [
        tensor
        for held in list(LIVE_TENSORS)
        if held.thread == thread
        and held not in before.gradients
        and (tensor := held()) is not None
        and id(tensor) not in own
    ]
