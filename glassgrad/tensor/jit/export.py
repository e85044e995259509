"""export: a captured function -> one file, or a shared object that C can call.

The file holds machine code, constants, and the outside memory that the function reads and writes.
`load` runs it in a process that never imports the compiler.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from inspect import signature
from itertools import zip_longest
from os import PathLike
from pathlib import Path
from typing import Any

from glassgrad.base.errors import CaptureError
from glassgrad.engine.export.bundle import write_bundle
from glassgrad.engine.export.c_text import CText, c_name
from glassgrad.engine.export.serialize import (
    Library,
    Row,
    compile_pool,
    pack,
    pack_size,
    pack_size_check,
)
from glassgrad.ir.ops import Ops
from glassgrad.memory.sharing import SHARED_STORAGES
from glassgrad.memory.storage import Storage
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.jit.capture import CapturedGraph
from glassgrad.tensor.jit.function import TinyJit
from glassgrad.tensor.jit.output_buffers import BufferWindow, Output
from glassgrad.tensor.jit.pytree import TENSOR
from glassgrad.tensor.jit.serialize import key_text, pack_result
from glassgrad.tensor.lazy.realize import finish_writes, realize

SHARED = ".so"


def export(
    function: TinyJit[..., Any],
    path: str | PathLike[str],
    state: Mapping[str, TensorCore] | None = None,
) -> None:
    """Write a captured function to a file, for `glassgrad.load`.

    A path that ends in .so makes a shared object instead, with a C header beside it. `state` names
    outside tensors that the function reads or writes, such as a model's weights; `load(path).state`
    has them under these names.
    """
    finish_writes()
    if state is not None:
        realize(state.values())
    packed = ExportedFunction(function, state or {})
    target = Path(path)
    if target.suffix == SHARED:
        _write_shared(packed, target)
        return
    parts: dict[str, bytes | memoryview] = {
        "kernels": packed.library.code(),
        "pool": compile_pool(),
    }
    parts |= {f"storage {n}": storage.as_buffer() for storage, n in packed.storages.items()}
    write_bundle(target, packed.row(), parts)


def _write_shared(packed: ExportedFunction, path: Path) -> None:
    """Write a shared object. C has one signature per function, so there must be one capture."""
    from glassgrad.engine.export.c_library import write_library

    if len(packed.entries) > 1:
        raise CaptureError(
            f"the function was captured {len(packed.entries)} times, and C can call only one: "
            + " or ".join(entry["called"][0] for entry in packed.entries),
            hint="reset() it, and capture it in one way",
        )
    text = CText(packed.row(), packed.entries[0], packed.argument_names)
    contents = {str(number): storage.as_buffer() for storage, number in packed.storages.items()}
    write_library(path, text, packed.library, contents)


class ExportedFunction:
    """The contents of an export file."""

    def __init__(self, function: TinyJit[..., Any], state: Mapping[str, TensorCore]) -> None:
        captures = _captures(function)
        name = c_name(getattr(function, "__name__", ""), "function")
        self.library = Library(name)
        self.storages: dict[Storage, int] = {}  # storage -> its number in the file
        self.written: set[int] = set()
        self.argument_names = _names(function, next(iter(captures)))
        self.entries = [self._entry(key, found) for key, found in captures.items()]
        self.state = {name: self._named(name, tensor) for name, tensor in state.items()}
        self._refuse_overlaps()

    def row(self) -> Row:
        return self.library.row() | {
            "storages": [(storage.dtype.name, storage.size) for storage in self.storages],
            "written": sorted(self.written),
            "state": self.state,
            "entries": self.entries,
        }

    def _entry(self, key: Any, captured: CapturedGraph) -> Row:
        """One capture: its call signature, its plan and its results."""
        args, kwargs, (training, *_), _ = key
        for known in captured.outside_tensors:
            number = self.storages.setdefault(known.storage, len(self.storages))
            if known.is_written:
                self.written.add(number)
        return {
            "called": [key_text(args), None if kwargs is None else key_text(kwargs)],
            "training": training,
            "layouts": [
                (spec.shape, spec.dtype.name, *spec[3:]) for spec in captured.argument_specs
            ],
            "capture": pack(captured.replay.capture, self.library),
            "size_checks": [pack_size_check(one, self.library) for one in captured.size_checks],
            "bases": self._bases(captured),
            "random_total": captured.random.total,
            "written": captured.written,
            "outputs": [self._output(output, captured) for output in captured.outputs],
            "result": pack_result(captured.template),
        }

    def _bases(self, captured: CapturedGraph) -> list[Row]:
        arguments = {found.base: found for found in captured.arguments}
        capture = captured.replay.capture
        cells = {id(view.storage) for _, view in capture.cells}
        rows: list[Row] = []
        for base, storage in enumerate(capture.inputs):
            if base in arguments:
                found = arguments[base]
                rows.append({"argument": found.number, "before": found.before})
            elif base in captured.random.starts:
                rows.append({"random": captured.random.starts[base]})
            elif id(storage) in cells:
                rows.append({"cells": storage.size})
            else:
                number = self.storages.setdefault(storage, len(self.storages))
                rows.append({"storage": number})
        return rows

    def _output(self, output: Output, captured: CapturedGraph) -> Row:
        if output.tensor is not None:
            return {"storage": self._numbered(output.tensor)} | _window(
                _window_of_tensor(output.tensor)
            )
        if output.argument is None:
            window = captured.output_buffers[output.made].windows[output.number]
            return {"made": output.made} | _window(window)
        return {"argument": output.argument} | _window(output.window)

    def _numbered(self, tensor: TensorCore) -> int:
        return self.storages.setdefault(tensor.uop.arg.storage, len(self.storages))

    def _named(self, name: str, tensor: TensorCore) -> Row:
        held = tensor.uop.op is Ops.BUFFER
        number = self.storages.get(tensor.uop.arg.storage) if held else None
        if number is None:
            raise CaptureError(
                f"state {name!r}, of shape {tensor.shape}, is nothing that the captured function "
                "reads or writes",
                hint="leave it out",
            )
        return {"storage": number} | _window(_window_of_tensor(tensor))

    def _refuse_overlaps(self) -> None:
        """Raise an error if written storages overlap others: the file stores each storage
        separately.
        """
        by_number = list(self.storages)
        for number in self.written:
            if any(
                other in self.storages for other in SHARED_STORAGES.overlapping(by_number[number])
            ):
                raise CaptureError(
                    f"a captured function writes to memory ({by_number[number].nbytes:,} bytes) "
                    "that it also reads through another tensor: a file would have it twice",
                    hint="copy one of them with clone() before the capture",
                )


def _captures(function: Any) -> dict[Any, CapturedGraph]:
    if not isinstance(function, TinyJit):
        raise CaptureError(
            f"only captured functions can be exported, not a {type(function).__name__}",
            hint="decorate it with @TinyJit and call it twice",
        )
    found = function.valid_captures()
    if not found:
        raise CaptureError(
            "the function has not been captured yet",
            hint="call it twice with tensors as it will get later, then export it",
        )
    return found


def _names(function: TinyJit[..., Any], key: Any) -> list[str]:
    """A C name for each tensor argument."""
    args, kwargs, *_ = key
    known = [name for name in signature(function.fxn).parameters if name != "self"]
    pairs = [(n, part) for n, part in zip_longest(known[: len(args) - 1], args[1:])]
    pairs = [(name or f"x{number}", part) for number, (name, part) in enumerate(pairs)]
    if kwargs is not None:
        pairs += zip(kwargs[1::2], kwargs[2::2], strict=True)
    return [name for first, part in pairs for name in _names_inside(first, part)]


def _names_inside(name: str, key: Any) -> list[str]:
    if key == TENSOR:
        return [name]
    first, *rest = key
    numbered: list[tuple[Any, Any]] = []
    if first == "dict":
        numbered += zip(rest[::2], rest[1::2], strict=True)
    elif first != TENSOR and (isinstance(first, str) or is_dataclass(first)):
        numbered += enumerate(rest)
    return [found for n, part in numbered for found in _names_inside(f"{name}_{n}", part)]


def _window_of_tensor(tensor: TensorCore) -> BufferWindow:
    view = tensor.uop.arg
    return BufferWindow(view.dtype, view.shape, view.strides, view.offset)


def _window(window: BufferWindow | None) -> Row:
    if window is None:
        return {}
    shape = list(map(pack_size, window.shape))
    return {"window": (window.dtype.name, shape, window.strides, window.offset)}
