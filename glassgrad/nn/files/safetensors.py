"""safetensors files <-> tensors by name: read as views of the mapped file, written atomically.

A file is the length of the header in 8 bytes, the header, which is JSON, and the elements:

    {"weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "__metadata__": {…}}

The header is checked before it is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from math import prod
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.errors import FormatError
from glassgrad.nn.files.atomic import write_atomically
from glassgrad.nn.files.error_paths import path_in_errors
from glassgrad.tensor.extension import realized_view
from glassgrad.tensor.tensor import Tensor

DTYPES: dict[str, DType] = {
    "BOOL": dtypes.bool,
    "I8": dtypes.int8,
    "I16": dtypes.int16,
    "I32": dtypes.int32,
    "I64": dtypes.int64,
    "U8": dtypes.uint8,
    "U16": dtypes.uint16,
    "U32": dtypes.uint32,
    "U64": dtypes.uint64,
    "F8_E4M3": dtypes.fp8e4m3,
    "F8_E5M2": dtypes.fp8e5m2,
    "F16": dtypes.float16,
    "BF16": dtypes.bfloat16,
    "F32": dtypes.float32,
    "F64": dtypes.float64,
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
METADATA = "__metadata__"
ALIGNMENT = 64  # of the first element, in bytes: a cache line
MAX_HEADER_BYTES = 100_000_000  # the limit of other readers, too
MAX_AXES = 64


class Entry(NamedTuple):
    """A tensor in the file; offsets are in bytes from the end of the header."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    begin: int
    end: int


# ---------------------------------------------------------------------- reading


@path_in_errors
def safe_load(fn: Tensor | str | PathLike[str]) -> dict[str, Tensor]:
    """The tensors of a file, as views of it: pages are read when they are used.

    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "x.safetensors")
    >>> safe_save({"x": Tensor([1.5, 2.5])}, path)
    >>> safe_load(path)["x"].tolist()
    [1.5, 2.5]
    """
    raw = _raw(fn)
    start, header = _header(raw)
    return {entry.name: _view(raw, start, entry) for entry in _entries(raw, start, header)}


@path_in_errors
def safe_load_metadata(fn: Tensor | str | PathLike[str]) -> tuple[Tensor, int, dict[str, Any]]:
    """The bytes of a file, the offset of its elements, and its header."""
    raw = _raw(fn)
    return (raw, *_header(raw))


def _raw(fn: Tensor | str | PathLike[str]) -> Tensor:
    if not isinstance(fn, Tensor):
        return Tensor(Path(fn), requires_grad=False)
    if fn.dtype is not dtypes.uint8 or fn.ndim != 1:
        raise FormatError(
            f"a file must be a 1-dimensional uint8 tensor, not {fn.dtype.name} {fn.shape}"
        )
    return fn


def _header(raw: Tensor) -> tuple[int, dict[str, Any]]:
    size = raw.shape[0]
    if size < 8:
        raise FormatError(f"{size} bytes are too few for a safetensors file")
    length = int.from_bytes(raw[:8].data().tobytes(), "little")
    if length > min(size - 8, MAX_HEADER_BYTES):
        raise FormatError(
            f"the header should have {length} bytes, but the file has {size}",
            hint="the file is truncated, or is not a safetensors file",
        )
    text = raw[8 : 8 + length].data().tobytes() if length else b""
    try:
        header = json.loads(text.decode(), object_pairs_hook=_unique_names)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"the header is not valid JSON: {error}") from None
    if not isinstance(header, dict):
        raise FormatError("the header must be a JSON object")
    return 8 + length, header


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("two tensors have the same name")
    return found


def _entries(raw: Tensor, start: int, header: dict[str, Any]) -> list[Entry]:
    """The checked tensors of the header: they must fill the file without gaps or overlaps."""
    rows = [(name, row) for name, row in header.items() if name != METADATA]
    entries = sorted((_entry(name, row) for name, row in rows), key=lambda one: one[3:])
    position = 0
    for entry in entries:
        if entry.begin != position:
            raise FormatError(f"{entry.name} starts at byte {entry.begin} instead of {position}")
        position = entry.end
    if start + position != raw.shape[0]:
        raise FormatError(
            f"the tensors end at byte {start + position}, but the file has {raw.shape[0]} bytes",
            hint="the file is truncated" if start + position > raw.shape[0] else None,
        )
    return entries


def _entry(name: str, row: Any) -> Entry:
    if not isinstance(row, dict) or not {"dtype", "shape", "data_offsets"} <= row.keys():
        raise FormatError(f"{name} has no dtype, shape or data_offsets")
    dtype = DTYPES.get(row["dtype"]) if isinstance(row["dtype"], str) else None
    if dtype is None:
        raise FormatError(
            f"{name} has the unknown dtype {row['dtype']!r:.40}", f"one of {', '.join(DTYPES)}"
        )
    shape, offsets = row["shape"], row["data_offsets"]
    if not _are_sizes(shape) or len(shape) > MAX_AXES:
        raise FormatError(f"{name} has the invalid shape {shape!r:.40}")
    if not _are_sizes(offsets) or len(offsets) != 2:
        raise FormatError(f"{name} has the invalid data_offsets {offsets!r:.40}")
    begin, end = offsets
    expected = prod(shape) * dtype.itemsize
    if end - begin != expected:
        raise FormatError(f"{name} needs {expected} bytes, but has {end - begin}")
    return Entry(name, dtype, tuple(shape), begin, end)


def _are_sizes(numbers: Any) -> bool:
    return isinstance(numbers, list) and all(
        isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 1 << 62
        for number in numbers
    )


def _view(raw: Tensor, start: int, entry: Entry) -> Tensor:
    _, dtype, shape, begin, end = entry
    if begin == end:
        return Tensor.empty(*shape, dtype=dtype, requires_grad=False)
    part = raw[start + begin : start + end]
    if (start + begin) % dtype.itemsize:  # not aligned: copy
        part = Tensor(bytearray(part.data()), requires_grad=False)
    return part.bitcast(dtype).reshape(shape).is_param_(is_param=False)


# ---------------------------------------------------------------------- writing


def safe_save(
    tensors: Mapping[str, Tensor],
    fn: str | PathLike[str],
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Write tensors to a file, atomically: readers see the old file or the new one.

    Metadata that is not a string is written as JSON.
    """
    header: dict[str, Any] = {}
    if metadata:
        header[METADATA] = {key: _as_text(value) for key, value in metadata.items()}
    position = 0
    # Large items first, so that every tensor is aligned to its item size.
    ordered = sorted(tensors.items(), key=lambda one: (-one[1].dtype.itemsize, one[0]))
    for name, tensor in ordered:
        if name == METADATA or tensor.dtype not in NAMES:
            raise FormatError(f"cannot write {name} of {tensor.dtype.name} to a safetensors file")
        shape, end = [int(size) for size in tensor.shape], position + tensor.nbytes()
        header[name] = {
            "dtype": NAMES[tensor.dtype],
            "shape": shape,
            "data_offsets": [position, end],
        }
        position = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    if tensors:  # together: they may share work
        Tensor.realize(*tensors.values())
    parts = (_bytes(tensor) for _, tensor in ordered)
    write_atomically(Path(fn), _file_parts(len(text).to_bytes(8, "little"), text, parts))


def _file_parts(
    length: bytes, text: bytes, parts: Iterator[memoryview]
) -> Iterator[bytes | memoryview]:
    yield length
    yield text
    yield from parts


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _bytes(tensor: Tensor) -> memoryview:
    """The elements in row-major order; not copied if they are contiguous."""
    if not tensor.numel():
        return memoryview(b"")
    on_cpu = tensor.detach().to("CPU")
    view = realized_view(on_cpu)
    view = view if view.is_contiguous else realized_view(on_cpu.contiguous())
    start = view.offset * view.dtype.itemsize
    return view.storage.as_buffer()[start : start + view.nbytes].cast("B")
