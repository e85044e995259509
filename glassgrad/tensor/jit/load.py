"""load: a file that `export` wrote -> a function of tensors, without the compiler."""

from __future__ import annotations

import ctypes
from collections.abc import Hashable, Sequence
from os import PathLike
from pathlib import Path
from threading import RLock
from typing import Any, cast
from weakref import ref

from glassgrad.base.config import TRAINING
from glassgrad.base.dtype import dtypes
from glassgrad.base.errors import CaptureError
from glassgrad.devices.cpu.device import CpuDevice
from glassgrad.devices.registry import Device
from glassgrad.engine.capture.replay import Replay
from glassgrad.engine.export.bundle import Bundle, read_bundle
from glassgrad.engine.export.serialize import (
    LinkedLibrary,
    Row,
    unpack,
    unpack_size,
    unpack_size_check,
)
from glassgrad.engine.plan.size_checks import check_all
from glassgrad.ir.ops import Ops
from glassgrad.ir.size import Bound, Size, bindings
from glassgrad.ir.uop import UOp
from glassgrad.memory.storage import BufferSpec, Storage
from glassgrad.memory.view import View
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.jit.argument_specs import (
    ArgumentSpec,
    argument_specs,
    refuse_other_specs,
    shapes_dtypes_devices,
)
from glassgrad.tensor.jit.captured_state import CapturedTensor, renew_version
from glassgrad.tensor.jit.output_buffers import BufferWindow, Output, OutputBuffer
from glassgrad.tensor.jit.pytree import flatten, unflatten
from glassgrad.tensor.jit.rng_state import RngCells
from glassgrad.tensor.jit.serialize import key_text, unknown_call_error, unpack_result
from glassgrad.tensor.lazy.lending import claim_shared_memory
from glassgrad.tensor.lazy.realize import all_in_memory
from glassgrad.tensor.lazy.views import ViewGroup
from glassgrad.tensor.tensor import Tensor

BUFFER = Ops.BUFFER


def load(path: str | PathLike[str]) -> Loaded:
    """The function that `glassgrad.export` wrote to a file.

    It takes and returns what the captured function did. The outside tensors that it reads or writes
    are in the file, with their contents at export; the named ones are in `.state`. The file
    contains machine code: load only files that you trust.
    """
    return Loaded(read_bundle(Path(path)))


class Loaded:
    """A function from a file. Calls from several threads run one after the other."""

    def __init__(self, bundle: Bundle) -> None:
        row, parts = bundle
        device = cast(CpuDevice, Device["CPU"])
        linked = LinkedLibrary(row, bytes(parts["kernels"]), bytes(parts["pool"]), device)
        self.__name__ = row["name"]
        storages = [
            _mapped(parts[f"storage {number}"], dtypes.named(dtype), size)
            for number, (dtype, size) in enumerate(row["storages"])
        ]
        self.state = {name: _tensor(found, storages) for name, found in row["state"].items()}
        self._entries = [LoadedCapture(found, storages, linked) for found in row["entries"]]
        held = [*self.state.values(), *(t for entry in self._entries for t in entry.held)]
        claim_shared_memory(held)
        written = {storages[number] for number in row["written"]}
        for entry in self._entries:
            entry.outside_tensors = _known(held, written)
        self._found: dict[Hashable, LoadedCapture] = {}
        self._lock = RLock()

    def __repr__(self) -> str:
        return f"<Loaded {self.__name__}: {' or '.join(e.called for e in self._entries)}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        tensors: list[Any] = []
        structure = flatten(args, tensors, []), flatten(kwargs, tensors, []) if kwargs else None
        values = bindings(tuple(tensors))
        tensors = [found for found in tensors if type(found) is not Size]
        key = (*structure, TRAINING.value, shapes_dtypes_devices(tensors))
        with self._lock:
            entry = self._found.get(key) or self._find(key)
            with all_in_memory([tensor for tensor in tensors if tensor.uop.op is not BUFFER]):
                return entry(tensors, values)

    def _find(self, key: tuple[Any, ...]) -> LoadedCapture:
        """The capture for a call: with this argument structure and these shapes, and with this
        training mode if there are several.
        """
        args, kwargs, training, shapes = key
        called = _called(key_text(args), None if kwargs is None else key_text(kwargs))
        fitting = [entry for entry in self._entries if entry.called == called]
        if not fitting:
            raise unknown_call_error(
                called, list(dict.fromkeys(entry.called for entry in self._entries))
            )
        fitting = [entry for entry in fitting if entry.shapes_dtypes_devices == shapes] or fitting
        fitting.sort(key=lambda entry: entry.training != training)
        self._found[key] = fitting[0]
        return fitting[0]


class LoadedCapture:
    """One capture of a loaded function."""

    def __init__(self, row: Row, storages: list[Storage], linked: LinkedLibrary) -> None:
        self.called = _called(*row["called"])
        self.training: int = row["training"]
        self.argument_specs = [
            ArgumentSpec(tuple(shape), dtypes.named(dtype), "CPU", tuple(strides), *rest)
            for shape, dtype, strides, *rest in row["layouts"]
        ]
        self.shapes_dtypes_devices = tuple(
            [(one.shape, one.dtype.name, one.device) for one in self.argument_specs]
        )
        self.written: list[int] = row["written"]
        self.size_checks = [unpack_size_check(found) for found in row["size_checks"]]
        self.outside_tensors: list[CapturedTensor] = []  # memory of tensors that callers can hold
        given = [_given(base, storages) for base in row["bases"]]
        self.own = {storage for storage in given if storage in storages}
        capture = unpack(row["capture"], given, linked)
        smallest = {found: found.arg[1] for found in linked.variables}
        self.replay = Replay(capture, smallest)
        self.arguments = [
            (base, found["argument"], found["before"])
            for base, found in enumerate(row["bases"])
            if "argument" in found
        ]
        starts = {n: base["random"] for n, base in enumerate(row["bases"]) if "random" in base}
        self.random = RngCells(starts, row["random_total"], self.replay)
        self.output_buffers = [
            OutputBuffer(n, s, []) for n, s in enumerate(capture.allocated, len(given))
        ]
        self.outputs = [self._output(found, storages) for found in row["outputs"]]
        self.held = [output.tensor for output in self.outputs if output.tensor is not None]
        self.template = unpack_result(row["result"])
        for found in self.output_buffers:
            if not found.windows:  # memory that is not returned, such as gradients
                found.windows.append(BufferWindow(found.like.dtype, (found.like.size,), (1,), 0))

    def _output(self, row: Row, storages: list[Storage]) -> Output:
        if "storage" in row:
            return Output(tensor=_tensor(row, storages))
        window = _window(row) if "window" in row else None
        if "argument" in row:
            return Output(row["argument"], window=window)
        assert window is not None
        windows = self.output_buffers[row["made"]].windows
        windows.append(window)
        return Output(made=row["made"], number=len(windows) - 1)

    def __call__(self, arguments: Sequence[TensorCore], values: Bound) -> Any:
        self._point(arguments)
        if values:
            check_all(self.size_checks, values)
            self.replay.bind_variables(values)
        made = [found.ready(self.replay) for found in self.output_buffers]
        if self.random.starts:
            self.random.advance()
        self.replay.run()
        done: set[ViewGroup] = set()
        for known in self.outside_tensors:
            if known.is_written:
                known.renew_version(done)
        for number in self.written:
            renew_version(arguments[number], done)
        results = [output.tensor_of(Tensor, made, arguments) for output in self.outputs]
        return unflatten(self.template, iter(results))

    def _point(self, arguments: Sequence[TensorCore]) -> None:
        """Check the specs of the arguments and point the launches at them."""
        found = argument_specs(arguments)
        refuse_other_specs(found, self.argument_specs, "it takes what it was exported with")
        for number, (new, old) in enumerate(zip(found, self.argument_specs, strict=True)):
            if new != old:
                raise CaptureError(
                    f"argument {number} lies in memory with strides {new.strides} and shares it "
                    f"with argument {new.alias}; the exported function takes strides "
                    f"{old.strides} and memory of argument {old.alias}",
                    hint="pass copies, such as Tensor(numpy.array(x, order='C', copy=True))",
                )
        if any(tensor.uop.arg.storage in self.own for tensor in arguments):
            raise CaptureError(
                "an argument is memory of the exported function itself", hint="pass a copy"
            )
        if not all(map(CapturedTensor.is_held, self.outside_tensors)):
            raise CaptureError(
                "a tensor in .state was replaced: the exported function would not see it",
                hint="change it in place with assign()",
            )
        for base, number, before in self.arguments:
            self.replay.set_base(base, arguments[number].uop.arg.address - before)


def _called(args: str, kwargs: str | None) -> str:
    return args if kwargs is None else f"{args} and {kwargs}"


def _known(held: list[TensorCore], written: set[Storage]) -> list[CapturedTensor]:
    holders: dict[Storage, list[ref[TensorCore]]] = {}
    for tensor in held:
        holders.setdefault(tensor.uop.arg.storage, []).append(ref(tensor))
    return [
        CapturedTensor(storage, found, storage in written) for storage, found in holders.items()
    ]


def _mapped(part: memoryview, dtype: Any, size: int) -> Storage:
    """A storage over the mapped file: pages load on access, writes stay private."""
    if not size:
        return Storage("CPU", 0, dtype)
    address = ctypes.addressof(ctypes.c_char.from_buffer(part))
    return Storage("CPU", size, dtype, BufferSpec(external_ptr=address), owner=part)


def _given(base: Row, storages: list[Storage]) -> Storage:
    """The memory of a base pointer; arguments and counters are set at each call."""
    if "storage" in base:
        return storages[base["storage"]]
    return Storage("CPU", base.get("cells", 1), dtypes.int64).allocate()


def _window(row: Row) -> BufferWindow:
    dtype, shape, strides, offset = row["window"]
    sizes = tuple(map(unpack_size, shape))
    return BufferWindow(dtypes.named(dtype), sizes, tuple(strides), offset)


def _tensor(row: Row, storages: list[Storage]) -> Tensor:
    window = _window(row)
    view = View(storages[row["storage"]], *window)
    return Tensor._from_uop(UOp(BUFFER, window.dtype, (), view), is_param=True)
