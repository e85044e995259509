"""PyTorch's files from before 1.6 -> what they hold; no code runs.

Five pickles stand behind each other: a magic number, a version, facts about the machine, the object
and the keys of its storages. Then come the storages: 8 bytes that say how many elements, and these.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glassgrad.base.dtype import DType
from glassgrad.base.errors import FormatError
from glassgrad.nn.files.mapped import Bytes, part
from glassgrad.nn.files.storages import Builder
from glassgrad.nn.files.unpickler import unpickled

MAGIC = 0x1950A86A20F9469CFC6C
VERSION = 1001
NOTHING = np.zeros(0, np.uint8)
LONGEST_LINE = 1 << 12


class Reading:
    """Bytes as a file that is read from front to back."""

    def __init__(self, raw: Bytes) -> None:
        self.raw, self.place = raw, 0

    def tell(self) -> int:
        return self.place

    def read(self, size: int) -> bytes:
        found = self.raw[self.place : self.place + max(size, 0)].tobytes()
        self.place += len(found)
        return found

    def readline(self) -> bytes:
        ahead = self.raw[self.place : self.place + LONGEST_LINE].tobytes()
        return self.read(ahead.find(b"\n") + 1 or len(ahead))


def is_legacy(raw: Bytes) -> bool:
    """Whether a file begins as a pickle does."""
    return bytes(raw[:2]) in (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


def legacy_load(raw: Bytes) -> Any:
    """The object; its tensors are windows on the file."""
    file = Reading(raw)
    dtypes: dict[str, DType] = {}

    def note(key: str, dtype: DType, count: int) -> Bytes:
        if dtypes.setdefault(key, dtype) is not dtype:
            raise FormatError(f"storage {key:.40} has two dtypes")
        return NOTHING

    magic, version, machine = (unpickled(file, Builder(note)) for _ in range(3))
    if magic != MAGIC or version != VERSION or not isinstance(machine, dict):
        raise FormatError("this is no file that torch.save writes")
    if machine.get("little_endian") is not True:
        raise FormatError("the numbers of this file are big-endian")
    start = file.tell()
    unpickled(file, Describing(note))
    keys = unpickled(file, Builder(note))
    places = _places(raw, file.tell(), keys, dtypes)

    def find(key: str, dtype: DType, count: int) -> Bytes:
        if key not in places:
            raise FormatError(f"there is no storage {key!r:.40} in this file")
        return part(places[key], 0, count * dtype.itemsize, f"storage {key:.40}")

    again = Reading(raw)
    again.place = start
    return unpickled(again, Builder(find))


class Describing(Builder):
    """Reads a pickle for its storages alone, whose elements stand behind it."""

    def called(self, name: str, args: tuple[Any, ...]) -> Any:
        return {}

    def created(self, name: str) -> Any:
        return {}


def _places(raw: Bytes, at: int, keys: Any, dtypes: dict[str, DType]) -> dict[str, Bytes]:
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise FormatError("the keys of the storages are no list of texts")
    found: dict[str, Bytes] = {}
    for key in keys:
        if key not in dtypes:
            raise FormatError(f"storage {key!r:.40} belongs to no tensor")
        count = int.from_bytes(part(raw, at, 8, "a storage").tobytes(), "little")
        size = count * dtypes[key].itemsize
        found[key] = part(raw, at + 8, size, f"storage {key:.40}")
        at += 8 + size
    return found
