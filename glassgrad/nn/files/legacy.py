"""Files of PyTorch before 1.6 -> the saved object, without running code.

A file is five pickles (a magic number, a version, facts about the machine, the object and the keys
of its storages) and the storages: 8 bytes for the number of elements, and the elements.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glassgrad.base.dtype import DType
from glassgrad.base.errors import FormatError
from glassgrad.nn.files.mapped import Bytes, checked_slice
from glassgrad.nn.files.storages import Builder
from glassgrad.nn.files.unpickler import unpickle

MAGIC = 0x1950A86A20F9469CFC6C
VERSION = 1001
EMPTY = np.zeros(0, np.uint8)
MAX_LINE_BYTES = 1 << 12


class ByteReader:
    """A file object that reads mapped bytes in sequence."""

    def __init__(self, raw: Bytes, position: int = 0) -> None:
        self.raw, self.position = raw, position

    def tell(self) -> int:
        return self.position

    def read(self, size: int) -> bytes:
        found = self.raw[self.position : self.position + max(size, 0)].tobytes()
        self.position += len(found)
        return found

    def readline(self) -> bytes:
        buffered = self.raw[self.position : self.position + MAX_LINE_BYTES].tobytes()
        return self.read(buffered.find(b"\n") + 1 or len(buffered))


def is_legacy(raw: Bytes) -> bool:
    """True if a file starts with a pickle."""
    return bytes(raw[:2]) in (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


def legacy_load(raw: Bytes) -> Any:
    """The saved object; its tensors are views of the file."""
    file = ByteReader(raw)
    dtypes: dict[str, DType] = {}

    def record_dtype(key: str, dtype: DType, count: int) -> Bytes:
        if dtypes.setdefault(key, dtype) is not dtype:
            raise FormatError(f"storage {key:.40} has two dtypes")
        return EMPTY

    magic, version, machine = (unpickle(file, Builder(record_dtype)) for _ in range(3))
    if magic != MAGIC or version != VERSION or not isinstance(machine, dict):
        raise FormatError("the file was not written by torch.save")
    if machine.get("little_endian") is not True:
        raise FormatError("the file is big-endian, which is not supported")
    start = file.tell()  # the object needs its storages, which follow: scan it first
    unpickle(file, StorageScan(record_dtype))
    keys = unpickle(file, Builder(record_dtype))
    storages = _storages(raw, file.tell(), keys, dtypes)

    def find(key: str, dtype: DType, count: int) -> Bytes:
        if key not in storages:
            raise FormatError(f"there is no storage {key!r:.40} in this file")
        return checked_slice(storages[key], 0, count * dtype.itemsize, f"storage {key:.40}")

    return unpickle(ByteReader(raw, start), Builder(find))


class StorageScan(Builder):
    """Visits the storages of a pickle, and builds nothing."""

    def called(self, name: str, args: tuple[Any, ...]) -> Any:
        return {}

    def created(self, name: str) -> Any:
        return {}


def _storages(raw: Bytes, position: int, keys: Any, dtypes: dict[str, DType]) -> dict[str, Bytes]:
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise FormatError("the keys of the storages must be a list of strings")
    found: dict[str, Bytes] = {}
    for key in keys:
        if key not in dtypes:
            raise FormatError(f"storage {key!r:.40} is not used by any tensor")
        count = int.from_bytes(checked_slice(raw, position, 8, "a storage").tobytes(), "little")
        size = count * dtypes[key].itemsize
        found[key] = checked_slice(raw, position + 8, size, f"storage {key:.40}")
        position += 8 + size
    return found
