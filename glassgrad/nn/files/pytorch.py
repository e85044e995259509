"""PyTorch's .pt and .bin files -> the saved object, without running code; tensors view the file.

A file is a zip archive of a pickle, and one file for the elements of each storage. The unpickler
builds lists, dicts, numbers, strings and tensors, and nothing else. Files from before PyTorch 1.6
are in legacy.py.
"""

from __future__ import annotations

from os import PathLike
from typing import Any

from glassgrad.base.dtype import DType
from glassgrad.base.errors import FormatError
from glassgrad.nn.files.archive import entry_bytes, zip_entries
from glassgrad.nn.files.error_paths import path_in_errors
from glassgrad.nn.files.legacy import is_legacy, legacy_load
from glassgrad.nn.files.mapped import Bytes, checked_slice, map_file
from glassgrad.nn.files.storages import Builder
from glassgrad.nn.files.unpickler import unpickle
from glassgrad.tensor.tensor import Tensor

MAX_PICKLE_BYTES = 1 << 28


@path_in_errors
def torch_load(fn: Tensor | str | PathLike[str]) -> Any:
    """What torch.save wrote: a tensor, or dicts and lists of tensors, numbers and strings.

    NumPy arrays and scalars stay what they are; an argparse.Namespace becomes a SimpleNamespace.
    """
    raw = map_file(fn)
    if is_legacy(raw):
        return legacy_load(raw)
    if bytes(raw[:2]) != b"PK":
        raise FormatError("the file was not written by torch.save")
    entries = {entry.filename: entry for entry in zip_entries(raw)}
    pickles = [name for name in entries if name.rpartition("/")[2] == "data.pkl"]
    if len(pickles) != 1:
        raise FormatError(f"the archive must have one data.pkl, but has {len(pickles)}")
    folder = pickles[0].removesuffix("data.pkl")
    order = entries.get(f"{folder}byteorder")
    if order is not None and entry_bytes(raw, order, True).tobytes() != b"little":
        raise FormatError("the file is big-endian, which is not supported")
    pickle = entry_bytes(raw, entries[pickles[0]], True)
    if len(pickle) > MAX_PICKLE_BYTES:
        raise FormatError(
            f"data.pkl has {len(pickle)} bytes; at most {MAX_PICKLE_BYTES} are allowed"
        )

    def find(key: str, dtype: DType, count: int) -> Bytes:
        entry = entries.get(f"{folder}data/{key}")
        if entry is None:
            raise FormatError(f"there is no storage {key!r:.40} in this file")
        content = entry_bytes(raw, entry, True)
        return checked_slice(content, 0, count * dtype.itemsize, f"storage {key:.40}")

    return unpickle(pickle.tobytes(), Builder(find))
