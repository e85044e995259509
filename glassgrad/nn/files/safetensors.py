"""safetensors files <-> tensors by name: read as windows on the mapped file, written atomically.

A file is 8 bytes that say how long the header is, the header, which is JSON, and the elements:

    {"weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "__metadata__": {…}}

Nothing in it is believed before it was checked.
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
from glassgrad.nn.files.atomic import written_whole
from glassgrad.nn.files.error_paths import naming
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
ALIGNMENT = 64  # of the first element, so that vectors are read from whole lines of the cache
LONGEST_HEADER = 100_000_000  # what other readers take, too
MOST_AXES = 64


class Entry(NamedTuple):
    """Where a tensor lies: bytes from the end of the header on."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    begin: int
    end: int


# ---------------------------------------------------------------------- reading


@naming
def safe_load(fn: Tensor | str | PathLike[str]) -> dict[str, Tensor]:
    """The tensors of a file, as windows on it: nothing is read before it is used.

    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "x.safetensors")
    >>> safe_save({"x": Tensor([1.5, 2.5])}, path)
    >>> safe_load(path)["x"].tolist()
    [1.5, 2.5]
    """
    raw = _raw(fn)
    start, header = _header(raw)
    return {entry.name: _window(raw, start, entry) for entry in _entries(raw, start, header)}


@naming
def safe_load_metadata(fn: Tensor | str | PathLike[str]) -> tuple[Tensor, int, dict[str, Any]]:
    """The bytes of a file, where its elements begin, and its header."""
    raw = _raw(fn)
    return (raw, *_header(raw))


def _raw(fn: Tensor | str | PathLike[str]) -> Tensor:
    if not isinstance(fn, Tensor):
        return Tensor(Path(fn), requires_grad=False)
    if fn.dtype is not dtypes.uint8 or fn.ndim != 1:
        raise FormatError(f"a file is one axis of uint8, not {fn.shape} of {fn.dtype.name}")
    return fn


def _header(raw: Tensor) -> tuple[int, dict[str, Any]]:
    size = raw.shape[0]
    if size < 8:
        raise FormatError(f"{size} bytes are too few for a safetensors file")
    length = int.from_bytes(raw[:8].data().tobytes(), "little")
    if length > min(size - 8, LONGEST_HEADER):
        raise FormatError(
            f"the header is said to have {length} bytes, in a file of {size}",
            hint="the file is cut short, or is no safetensors file",
        )
    text = raw[8 : 8 + length].data().tobytes() if length else b""
    try:
        header = json.loads(text.decode(), object_pairs_hook=_no_name_twice)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"the header is not what a safetensors file has: {error}") from None
    if not isinstance(header, dict):
        raise FormatError("the header of a safetensors file is an object")
    return 8 + length, header


def _no_name_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _entries(raw: Tensor, start: int, header: dict[str, Any]) -> list[Entry]:
    """Every tensor of the header, checked: they lie behind each other and fill the file."""
    rows = [(name, row) for name, row in header.items() if name != METADATA]
    entries = sorted((_entry(name, row) for name, row in rows), key=lambda one: one[3:])
    place = 0
    for entry in entries:
        if entry.begin != place:
            raise FormatError(f"{entry.name} begins at byte {entry.begin} instead of {place}")
        place = entry.end
    if start + place != raw.shape[0]:
        raise FormatError(
            f"the tensors end at byte {start + place} of a file of {raw.shape[0]}",
            hint="the file is cut short" if start + place > raw.shape[0] else None,
        )
    return entries


def _entry(name: str, row: Any) -> Entry:
    if not isinstance(row, dict) or not {"dtype", "shape", "data_offsets"} <= row.keys():
        raise FormatError(f"{name} lacks a dtype, a shape or data_offsets")
    dtype = DTYPES.get(row["dtype"]) if isinstance(row["dtype"], str) else None
    if dtype is None:
        raise FormatError(f"{name} has dtype {row['dtype']!r:.40}", f"one of {', '.join(DTYPES)}")
    shape, offsets = row["shape"], row["data_offsets"]
    if not _are_sizes(shape) or len(shape) > MOST_AXES:
        raise FormatError(f"{name} has a shape that is none: {shape!r:.40}")
    if not _are_sizes(offsets) or len(offsets) != 2:
        raise FormatError(f"{name} has data_offsets that are none: {offsets!r:.40}")
    begin, end = offsets
    wanted = prod(shape) * dtype.itemsize
    if end - begin != wanted:
        raise FormatError(f"{name} needs {wanted} bytes and has {end - begin}")
    return Entry(name, dtype, tuple(shape), begin, end)


def _are_sizes(numbers: Any) -> bool:
    return isinstance(numbers, list) and all(
        isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 1 << 62
        for number in numbers
    )


def _window(raw: Tensor, start: int, entry: Entry) -> Tensor:
    _, dtype, shape, begin, end = entry
    if begin == end:
        return Tensor.empty(*shape, dtype=dtype, requires_grad=False)
    part = raw[start + begin : start + end]
    if (start + begin) % dtype.itemsize:  # elements across words: a copy that is aligned
        part = Tensor(bytearray(part.data()), requires_grad=False)
    return part.bitcast(dtype).reshape(shape).is_param_(is_param=False)


# ---------------------------------------------------------------------- writing


def safe_save(
    tensors: Mapping[str, Tensor],
    fn: str | PathLike[str],
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Write tensors to a file. Whoever opens it finds all of the old one or all of the new one.

    Metadata that is not text is written as its JSON.
    """
    header: dict[str, Any] = {}
    if metadata:
        header[METADATA] = {key: _as_text(value) for key, value in metadata.items()}
    place = 0
    # Large items first: every tensor is then aligned to its items.
    ordered = sorted(tensors.items(), key=lambda one: (-one[1].dtype.itemsize, one[0]))
    for name, tensor in ordered:
        if name == METADATA or tensor.dtype not in NAMES:
            raise FormatError(f"cannot write {name} of {tensor.dtype.name} to a safetensors file")
        shape, end = [int(size) for size in tensor.shape], place + tensor.nbytes()
        header[name] = {
            "dtype": NAMES[tensor.dtype],
            "shape": shape,
            "data_offsets": [place, end],
        }
        place = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    if tensors:  # together, where they have work in common
        Tensor.realize(*tensors.values())
    parts = (_bytes(tensor) for _, tensor in ordered)
    written_whole(Path(fn), _all(len(text).to_bytes(8, "little"), text, parts))


def _all(length: bytes, text: bytes, parts: Iterator[memoryview]) -> Iterator[bytes | memoryview]:
    yield length
    yield text
    yield from parts


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _bytes(tensor: Tensor) -> memoryview:
    """The elements, row by row, where they lie if they lie so."""
    if not tensor.numel():
        return memoryview(b"")
    plain = tensor.detach().to("CPU")
    view = realized_view(plain)
    view = view if view.is_contiguous else realized_view(plain.contiguous())
    start = view.offset * view.dtype.itemsize
    return view.storage.as_buffer()[start : start + view.nbytes].cast("B")
