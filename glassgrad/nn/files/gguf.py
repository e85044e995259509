"""GGUF files -> metadata and tensors by name: plain ones as windows on the file, others as float32.

Matrices of the formats that `nn/quantised.py` computes with can be had as they are.

A file is "GGUF", a version, how many tensors and how many facts there are; the facts; where each
tensor lies; and, from the next multiple of the alignment on, the elements. Nothing is believed.
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
from glassgrad.nn.files.mapped import Bytes, are_sizes, mapped, part, tensor
from glassgrad.nn.files.naming import naming
from glassgrad.nn.files.quantised import FORMATS
from glassgrad.nn.quantised import Blocks
from glassgrad.tensor.tensor import Tensor

MAGIC = b"GGUF"
VERSIONS = (2, 3)
NUMBERS = ("B", "b", "H", "h", "I", "i", "f", "?", None, None, "Q", "q", "d")  # kinds 0 to 12
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
LONGEST_NAME = 1 << 16
DEEPEST = 4  # arrays in arrays
USUAL_ALIGNMENT = 32
PART = re.compile(r"(.+)-\d{5}-of-(\d{5})\.gguf")
MAX_PARTS = 99_999


class Entry(NamedTuple):
    """Where a tensor lies: bytes from the beginning of the elements on."""

    name: str
    shape: tuple[int, ...]
    kind: int
    offset: int


@naming
def gguf_load(fn: Tensor | str | PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The facts of a file, and its tensors."""
    facts, found = gguf_parts(fn, frozenset())
    return facts, {name: one for name, one in found.items() if isinstance(one, Tensor)}


@naming
def gguf_parts(
    fn: Tensor | str | PathLike[str], kept: Container[int]
) -> tuple[dict[str, Any], dict[str, Tensor | Blocks]]:
    """The facts of a file, its tensors, and its matrices of the formats that are kept.

    A model that was split over several files is read from all of them; any part may be given.
    """
    metadata, found = _read_part(mapped(fn), kept)
    count = metadata.get("split.count", 1)
    if type(count) is not int or not 0 <= count <= MAX_PARTS:
        raise FormatError(f"a file cannot be split into {count!r:.40} parts")
    return (metadata, found) if count <= 1 else _joined(_part_paths(fn, count), kept)


def _part_paths(fn: Tensor | str | PathLike[str], count: int) -> list[Path]:
    """x-00001-of-00003.gguf  ->  the paths of all three"""
    match = None if isinstance(fn, Tensor) else PART.fullmatch(Path(fn).name)
    if match is None or isinstance(fn, Tensor) or int(match.group(2)) != count:
        raise FormatError(
            f"this is one of {count} parts of a file, and its name does not say which",
            hint=f"name the parts …-00001-of-{count:05}.gguf and so on, as they were",
        )
    names = [f"{match.group(1)}-{number:05}-of-{count:05}.gguf" for number in range(1, count + 1)]
    paths = [Path(fn).with_name(name) for name in names]
    for path in paths:
        if not path.exists():
            raise FormatError(f"a part of this file is missing: {path.name}")
    return paths


def _joined(
    paths: list[Path], kept: Container[int]
) -> tuple[dict[str, Any], dict[str, Tensor | Blocks]]:
    """The facts of the first part, and the tensors of all."""
    facts: dict[str, Any] = {}
    tensors: dict[str, Tensor | Blocks] = {}
    for number, path in enumerate(paths):
        metadata, found = _read_part(mapped(path), kept)
        found_numbers = [metadata.get(name) for name in ("split.no", "split.count")]
        if [str(one) for one in found_numbers] != [str(number), str(len(paths))]:
            raise FormatError(f"{path.name} is not part {number + 1} of {len(paths)}")
        if twice := tensors.keys() & found.keys():
            raise FormatError(f"the tensor {min(twice):.60} stands in two parts")
        facts = facts or metadata
        tensors.update(found)
    wanted = facts.get("split.tensors.count", len(tensors))
    if type(wanted) is not int or wanted != len(tensors):
        raise FormatError(f"the parts hold {len(tensors)} tensors instead of {wanted!r:.40}")
    return facts, tensors


def _read_part(
    raw: Bytes, kept: Container[int]
) -> tuple[dict[str, Any], dict[str, Tensor | Blocks]]:
    reader = Reader(raw)
    if bytes(reader.take(4)) != MAGIC:
        raise FormatError("this is no GGUF file: it does not begin with GGUF")
    version = reader.number("I")
    if version not in VERSIONS:
        raise FormatError(f"a GGUF file of version {version} cannot be read, only 2 and 3")
    tensors, facts = reader.number("Q"), reader.number("Q")
    metadata = {}
    for _ in range(reader.count(facts, 12)):
        key = reader.text(LONGEST_NAME)
        metadata[key] = reader.value(reader.number("I"))
    entries = [reader.entry() for _ in range(reader.count(tensors, 24))]
    start = reader.place + -reader.place % _alignment(metadata)
    names = {entry.name for entry in entries}
    if len(names) != len(entries):
        raise FormatError("a tensor's name stands twice in this file")
    return metadata, {entry.name: _tensor(raw, start, entry, kept) for entry in entries}


class Reader:
    """Values one behind the other; what would lie past the end is an error before it is read."""

    def __init__(self, raw: Bytes) -> None:
        self.raw, self.place = raw, 0

    def take(self, size: int) -> Bytes:
        found = part(self.raw, self.place, size, "a value")
        self.place += size
        return found

    def count(self, number: int, least: int) -> int:
        """How many things follow, if the rest of the file could hold them."""
        if number * least > len(self.raw) - self.place:
            raise FormatError(f"{number} entries do not fit into the rest of the file")
        return number

    def number(self, kind: str) -> Any:
        (found,) = struct.unpack(f"<{kind}", self.take(struct.calcsize(f"<{kind}")).tobytes())
        return found

    def text(self, longest: int) -> str:
        size = self.number("Q")
        if size > longest:
            raise FormatError(f"a text of {size} bytes is too long here")
        return self.take(size).tobytes().decode("utf-8", "replace")

    def value(self, kind: int, depth: int = 0) -> Any:
        if kind == STRING:
            return self.text(len(self.raw))
        if kind == ARRAY and depth < DEEPEST:
            return self._array(depth)
        letter = NUMBERS[kind] if 0 <= kind < len(NUMBERS) else None
        if letter is None:
            raise FormatError(f"a value of the unknown kind {kind}")
        return self.number(letter)

    def _array(self, depth: int) -> Any:
        """Numbers as an array of NumPy, anything else as a list."""
        kind, size = self.number("I"), self.number("Q")
        letter = NUMBERS[kind] if 0 <= kind < len(NUMBERS) else None
        if letter is None:
            return [self.value(kind, depth + 1) for _ in range(self.count(size, 8))]
        dtype = np.dtype(letter if kind == BOOL else f"<{letter}")
        return self.take(self.count(size, dtype.itemsize) * dtype.itemsize).view(dtype).copy()

    def entry(self) -> Entry:
        name = self.text(LONGEST_NAME)
        sizes = [self.number("Q") for _ in range(self.count(self.number("I"), 8))]
        if not are_sizes(sizes):
            raise FormatError(f"{name:.60} has a shape that is none")
        # The axis that is written first is the innermost one.
        return Entry(name, tuple(sizes[::-1]), self.number("I"), self.number("Q"))


def _alignment(metadata: dict[str, Any]) -> int:
    found = metadata.get("general.alignment", USUAL_ALIGNMENT)
    if type(found) is not int or not 8 <= found <= 1 << 20 or found % 8:
        raise FormatError(f"elements cannot be aligned to {found!r:.40}")
    return found


def _tensor(raw: Bytes, start: int, entry: Entry, kept: Container[int]) -> Tensor | Blocks:
    name, shape, kind, offset = entry
    count = prod(shape)
    plain = PLAIN.get(kind)
    if plain is not None:
        return tensor(part(raw, start + offset, count * plain.itemsize, name), plain, shape)
    packed = FORMATS.get(kind)
    if packed is None:
        raise FormatError(f"{name:.60} has the unknown format {kind}")
    if not shape or shape[-1] % packed.numbers:
        raise FormatError(f"{name:.60} of shape {shape} is no whole number of blocks")
    blocks = part(raw, start + offset, count // packed.numbers * packed.nbytes, name)
    if kind in kept and len(shape) == 2 and blocks.ctypes.data % 2 == 0:
        return Blocks(kind, blocks.reshape(shape[0], -1, packed.nbytes))
    with np.errstate(all="ignore"):  # scales may be anything
        numbers = packed.read(blocks.reshape(-1, packed.nbytes))
    return Tensor(np.ascontiguousarray(numbers, np.float32).reshape(shape), requires_grad=False)
