"""PyTorch's .pt and .bin files -> what they hold, tensors as windows on the file; no code runs.

A file is a zip archive: a pickle that says how things are put together, and the elements of each
storage as a file of its own. The pickle is read by a machine that knows how to make lists, dicts,
numbers, texts and tensors, and nothing else. Files from before PyTorch 1.6 are in legacy.py.
"""

from __future__ import annotations

from os import PathLike
from typing import Any

from glassgrad.base.dtype import DType
from glassgrad.base.errors import FormatError
from glassgrad.nn.files.archive import stored, zip_entries
from glassgrad.nn.files.error_paths import naming
from glassgrad.nn.files.legacy import is_legacy, legacy_load
from glassgrad.nn.files.mapped import Bytes, mapped, part
from glassgrad.nn.files.storages import Builder
from glassgrad.nn.files.unpickler import unpickled
from glassgrad.tensor.tensor import Tensor

LONGEST_PICKLE = 1 << 28


@naming
def torch_load(fn: Tensor | str | PathLike[str]) -> Any:
    """What torch.save wrote: a tensor, or dicts and lists of tensors, numbers and texts.

    NumPy's arrays and numbers come as such, options of a command line with their names.
    """
    raw = mapped(fn)
    if is_legacy(raw):
        return legacy_load(raw)
    if bytes(raw[:2]) != b"PK":
        raise FormatError("this is no file that torch.save writes")
    entries = {entry.filename: entry for entry in zip_entries(raw)}
    pickles = [name for name in entries if name.rpartition("/")[2] == "data.pkl"]
    if len(pickles) != 1:
        raise FormatError(f"an archive of PyTorch has one data.pkl, and this one {len(pickles)}")
    folder = pickles[0].removesuffix("data.pkl")
    order = entries.get(f"{folder}byteorder")
    if order is not None and stored(raw, order, True).tobytes() != b"little":
        raise FormatError("the numbers of this file are big-endian")
    pickle = stored(raw, entries[pickles[0]], True)
    if len(pickle) > LONGEST_PICKLE:
        raise FormatError(f"a data.pkl of {len(pickle)} bytes is too long")

    def find(key: str, dtype: DType, count: int) -> Bytes:
        entry = entries.get(f"{folder}data/{key}")
        if entry is None:
            raise FormatError(f"there is no storage {key!r:.40} in this file")
        place = stored(raw, entry, True)
        return part(place, 0, count * dtype.itemsize, f"storage {key:.40}")

    return unpickled(pickle.tobytes(), Builder(find))
