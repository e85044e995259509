"""GGUF files -> metadata and tensors by name: plain tensors are views of the mapped file.

Quantised tensors are dequantised to float32, except for matrices in formats that the caller asks to
keep (those that `nn/quantised.py` computes with).

A file is "GGUF", a version, the numbers of tensors and of metadata entries, the metadata, an entry
for each tensor, and, from the next multiple of the alignment on, the elements. Every size and
offset is checked before it is used.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Container
from math import prod
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.errors import FormatError
from glassgrad.nn.files.error_paths import path_in_errors
from glassgrad.nn.files.gguf_dequantise import FORMATS
from glassgrad.nn.files.mapped import Bytes, are_valid_sizes, checked_slice, map_file, tensor_view
from glassgrad.nn.quantised import Blocks
from glassgrad.tensor.tensor import Tensor

MAGIC = b"GGUF"
VERSIONS = (2, 3)
# The `struct` formats of value types 0 to 12.
NUMBER_FORMATS = ("B", "b", "H", "h", "I", "i", "f", "?", None, None, "Q", "q", "d")
BOOL, STRING, ARRAY = 7, 8, 9
PLAIN: dict[int, DType] = {
    0: dtypes.float32,
    1: dtypes.float16,
    24: dtypes.int8,
    25: dtypes.int16,
    26: dtypes.int32,
    27: dtypes.int64,
    28: dtypes.float64,
    30: dtypes.bfloat16,
}
MAX_NAME_BYTES = 1 << 16
MAX_ARRAY_DEPTH = 4  # arrays in arrays
DEFAULT_ALIGNMENT = 32  # bytes
PART_NAME = re.compile(r"(.+)-\d{5}-of-(\d{5})\.gguf")
MAX_PARTS = 99_999  # part numbers have five digits
MIN_METADATA_BYTES = 12  # a length and a type
MIN_ENTRY_BYTES = 24  # a length, a number of axes, a type and an offset


class Entry(NamedTuple):
    """A tensor in the file."""

    name: str
    shape: tuple[int, ...]
    kind: int  # GGUF type number
    offset: int  # bytes from the start of the elements


@path_in_errors
def gguf_load(fn: Tensor | str | PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The metadata of a file, and its tensors."""
    metadata, tensors = read_gguf(fn, frozenset())
    return metadata, {name: one for name, one in tensors.items() if isinstance(one, Tensor)}


@path_in_errors
def read_gguf(
    fn: Tensor | str | PathLike[str], keep_quantised: Container[int]
) -> tuple[dict[str, Any], dict[str, Tensor | Blocks]]:
    """The metadata of a file, and its tensors; matrices of some formats stay quantised.

    A model that is split into several files is read from all of them, given any part.
    """
    metadata, tensors = _read_part(map_file(fn), keep_quantised)
    count = metadata.get("split.count", 1)
    if type(count) is not int or not 0 <= count <= MAX_PARTS:
        raise FormatError(f"split.count of the file is {count!r:.40}, not a number of parts")
    return (
        (metadata, tensors) if count <= 1 else _read_parts(_part_paths(fn, count), keep_quantised)
    )


def _part_paths(fn: Tensor | str | PathLike[str], count: int) -> list[Path]:
    """x-00001-of-00003.gguf  ->  the paths of all three"""
    match = None if isinstance(fn, Tensor) else PART_NAME.fullmatch(Path(fn).name)
    if match is None or isinstance(fn, Tensor) or int(match.group(2)) != count:
        raise FormatError(
            f"the file is one of {count} parts, but its name does not tell which one",
            hint=f"restore the original names, …-00001-of-{count:05}.gguf and so on",
        )
    names = [f"{match.group(1)}-{number:05}-of-{count:05}.gguf" for number in range(1, count + 1)]
    paths = [Path(fn).with_name(name) for name in names]
    for path in paths:
        if not path.exists():
            raise FormatError(f"a part of the file is missing: {path.name}")
    return paths


def _read_parts(
    paths: list[Path], keep_quantised: Container[int]
) -> tuple[dict[str, Any], dict[str, Tensor | Blocks]]:
    """The metadata of the first part, and the tensors of all parts."""
    whole: dict[str, Any] = {}
    tensors: dict[str, Tensor | Blocks] = {}
    for number, path in enumerate(paths):
        metadata, found = _read_part(map_file(path), keep_quantised)
        split = [metadata.get(name) for name in ("split.no", "split.count")]
        if [str(one) for one in split] != [str(number), str(len(paths))]:
            raise FormatError(f"{path.name} is not part {number + 1} of {len(paths)}")
        if duplicates := tensors.keys() & found.keys():
            raise FormatError(f"the tensor {min(duplicates):.60} is in two parts")
        whole = whole or metadata
        tensors.update(found)
    expected = whole.get("split.tensors.count", len(tensors))
    if type(expected) is not int or expected != len(tensors):
        raise FormatError(f"the parts have {len(tensors)} tensors instead of {expected!r:.40}")
    return whole, tensors


def _read_part(
    raw: Bytes, keep_quantised: Container[int]
) -> tuple[dict[str, Any], dict[str, Tensor | Blocks]]:
    reader = Reader(raw)
    if bytes(reader.take(4)) != MAGIC:
        raise FormatError("not a GGUF file: it does not start with GGUF")
    version = reader.number("I")
    if version not in VERSIONS:
        raise FormatError(f"GGUF version {version} is not supported, only 2 and 3")
    tensor_count, metadata_count = reader.number("Q"), reader.number("Q")
    metadata = {}
    for _ in range(reader.count(metadata_count, MIN_METADATA_BYTES)):
        key = reader.text(MAX_NAME_BYTES)
        metadata[key] = reader.value(reader.number("I"))
    entries = [reader.entry() for _ in range(reader.count(tensor_count, MIN_ENTRY_BYTES))]
    start = reader.position + -reader.position % _alignment(metadata)
    names = {entry.name for entry in entries}
    if len(names) != len(entries):
        raise FormatError("two tensors of the file have the same name")
    return metadata, {entry.name: _tensor(raw, start, entry, keep_quantised) for entry in entries}


class Reader:
    """Reads values in sequence; a value that would pass the end of the file is an error."""

    def __init__(self, raw: Bytes) -> None:
        self.raw, self.position = raw, 0

    def take(self, size: int) -> Bytes:
        found = checked_slice(self.raw, self.position, size, "a value")
        self.position += size
        return found

    def count(self, number: int, min_bytes: int) -> int:
        """A number of entries, checked against the rest of the file."""
        if number * min_bytes > len(self.raw) - self.position:
            raise FormatError(f"{number} entries do not fit into the rest of the file")
        return number

    def number(self, kind: str) -> Any:
        (found,) = struct.unpack(f"<{kind}", self.take(struct.calcsize(f"<{kind}")).tobytes())
        return found

    def text(self, max_bytes: int) -> str:
        size = self.number("Q")
        if size > max_bytes:
            raise FormatError(f"a string has {size} bytes; at most {max_bytes} are allowed here")
        return self.take(size).tobytes().decode("utf-8", "replace")

    def value(self, kind: int, depth: int = 0) -> Any:
        if kind == STRING:
            return self.text(len(self.raw))
        if kind == ARRAY and depth < MAX_ARRAY_DEPTH:
            return self._array(depth)
        letter = NUMBER_FORMATS[kind] if 0 <= kind < len(NUMBER_FORMATS) else None
        if letter is None:
            raise FormatError(f"unknown value type {kind}")
        return self.number(letter)

    def _array(self, depth: int) -> Any:
        """A NumPy array of numbers; a list of anything else."""
        kind, size = self.number("I"), self.number("Q")
        letter = NUMBER_FORMATS[kind] if 0 <= kind < len(NUMBER_FORMATS) else None
        if letter is None:
            return [self.value(kind, depth + 1) for _ in range(self.count(size, 8))]
        dtype = np.dtype(letter if kind == BOOL else f"<{letter}")
        return self.take(self.count(size, dtype.itemsize) * dtype.itemsize).view(dtype).copy()

    def entry(self) -> Entry:
        name = self.text(MAX_NAME_BYTES)
        sizes = [self.number("Q") for _ in range(self.count(self.number("I"), 8))]
        if not are_valid_sizes(sizes):
            raise FormatError(f"{name:.60} has the invalid shape {tuple(sizes[::-1])!r:.60}")
        # Files list the innermost axis first.
        return Entry(name, tuple(sizes[::-1]), self.number("I"), self.number("Q"))


def _alignment(metadata: dict[str, Any]) -> int:
    alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    if type(alignment) is not int or not 8 <= alignment <= 1 << 20 or alignment % 8:
        raise FormatError(f"general.alignment must be a multiple of 8, not {alignment!r:.40}")
    return alignment


def _tensor(
    raw: Bytes, start: int, entry: Entry, keep_quantised: Container[int]
) -> Tensor | Blocks:
    name, shape, kind, offset = entry
    count = prod(shape)
    plain = PLAIN.get(kind)
    if plain is not None:
        return tensor_view(
            checked_slice(raw, start + offset, count * plain.itemsize, name), plain, shape
        )
    quantised = FORMATS.get(kind)
    if quantised is None:
        raise FormatError(f"{name:.60} has the unknown type {kind}")
    block_size, block_bytes, dequantise = quantised
    if not shape or shape[-1] % block_size:
        raise FormatError(
            f"{name:.60} has shape {shape}: the last axis must be a multiple of {block_size}"
        )
    blocks = checked_slice(raw, start + offset, count // block_size * block_bytes, name)
    if kind in keep_quantised and len(shape) == 2 and blocks.ctypes.data % 2 == 0:
        return Blocks(kind, blocks.reshape(shape[0], -1, block_bytes))
    with np.errstate(all="ignore"):  # a damaged file may have any scales
        numbers = dequantise(blocks.reshape(-1, block_bytes))
    return Tensor(np.ascontiguousarray(numbers, np.float32).reshape(shape), requires_grad=False)
