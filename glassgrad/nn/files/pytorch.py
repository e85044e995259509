"""PyTorch's .pt and .bin files -> what they hold, tensors as windows on the file; no code runs.

A file is a zip archive: a pickle that says how things are put together, and the elements of each
storage as a file of its own. The pickle is read by a machine that knows how to make lists, dicts,
numbers, texts and tensors, and nothing else.
"""

from __future__ import annotations

from math import prod
from os import PathLike
from typing import Any, NamedTuple
from zipfile import ZipInfo

import numpy as np

from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.errors import FormatError
from glassgrad.nn.files.archive import stored, zip_entries
from glassgrad.nn.files.mapped import Bytes, are_sizes, mapped, part, tensor
from glassgrad.nn.files.pickled import Call, unpickled
from glassgrad.tensor.tensor import Tensor

STORAGES: dict[str, DType] = {
    "DoubleStorage": dtypes.float64,
    "FloatStorage": dtypes.float32,
    "HalfStorage": dtypes.float16,
    "BFloat16Storage": dtypes.bfloat16,
    "LongStorage": dtypes.int64,
    "IntStorage": dtypes.int32,
    "ShortStorage": dtypes.int16,
    "CharStorage": dtypes.int8,
    "ByteStorage": dtypes.uint8,
    "BoolStorage": dtypes.bool,
}
LONGEST_PICKLE = 1 << 28
OLD = "it was written before PyTorch 1.6; load and save it again there"


def torch_load(fn: Tensor | str | PathLike[str]) -> Any:
    """What torch.save wrote: a tensor, or dicts and lists of tensors, numbers and texts."""
    raw = mapped(fn)
    if bytes(raw[:2]) == b"\x80\x02" or bytes(raw[:2]) != b"PK":
        raise FormatError("this is no file that torch.save writes today", hint=OLD)
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
    return unpickled(pickle.tobytes(), Builder(raw, folder, entries))


class Stored(NamedTuple):
    """A storage: its elements, not looked at yet."""

    dtype: DType
    raw: Bytes
    elements: int


class Builder:
    """What the names in a pickle of PyTorch's stand for."""

    def __init__(self, raw: Bytes, folder: str, entries: dict[str, ZipInfo]) -> None:
        self.raw, self.folder, self.entries = raw, folder, entries

    def persistent(self, found: Any) -> Stored:
        """("storage", kind, key, where it was, how many elements)"""
        if not isinstance(found, tuple) or len(found) != 5 or found[0] != "storage":
            raise FormatError(f"a storage is described in an unknown way: {found!r:.60}")
        _, kind, key, _, count = found
        name = kind.name if isinstance(kind, Call) else ""
        dtype = STORAGES.get(name.removeprefix("torch."))
        entry = self.entries.get(f"{self.folder}data/{key}") if isinstance(key, str) else None
        if dtype is None or entry is None or type(count) is not int or count < 0:
            raise FormatError(f"there is no storage {key!r:.40} of {name!r:.40} in this file")
        place = stored(self.raw, entry, True)
        return Stored(dtype, part(place, 0, count * dtype.itemsize, f"storage {key:.40}"), count)

    def called(self, name: str, args: tuple[Any, ...]) -> Any:
        """The few calls that a pickle of tensors makes."""
        if name == "torch._utils._rebuild_tensor_v2" and len(args) >= 4:
            return strided(*args[:4])
        if name == "torch._utils._rebuild_parameter" and args and isinstance(args[0], Tensor):
            return args[0]
        if name == "collections.OrderedDict" and not args:
            return {}
        if name == "torch.Size" and len(args) == 1 and isinstance(args[0], tuple):
            return args[0]
        if name == "torch.device" and args and isinstance(args[0], str):
            return args[0]
        raise FormatError(
            f"the file asks to call {name:.80}",
            hint="only files of tensors, numbers, texts, lists and dicts are read",
        )


def strided(storage: Any, offset: Any, shape: Any, strides: Any) -> Tensor:
    """Elements of a storage, `offset` from its beginning and `strides` apart."""
    if not isinstance(storage, Stored) or not are_sizes([offset]):
        raise FormatError("a tensor without a storage")
    if not are_sizes(shape) or not are_sizes(strides) or len(shape) != len(strides):
        raise FormatError(f"a tensor of shape {shape!r:.40} with strides {strides!r:.40}")
    dtype, raw, count = storage
    if 0 in shape:
        return Tensor.empty(*shape, dtype=dtype, requires_grad=False)
    last = offset + sum((size - 1) * step for size, step in zip(shape, strides, strict=True))
    if last >= count or prod(shape) > count:
        raise FormatError(f"a tensor of shape {tuple(shape)} does not fit into {count} elements")
    size = dtype.itemsize
    plain = tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))
    if all(n == 1 or step == usual for n, step, usual in zip(shape, strides, plain, strict=True)):
        return tensor(raw[offset * size : (offset + prod(shape)) * size], dtype, tuple(shape))
    # As bytes beside each other, put in order by a copy.
    steps = (*(step * size for step in strides), 1)
    view = np.ndarray((*shape, size), np.uint8, raw, offset * size, steps)
    return tensor(np.ascontiguousarray(view).reshape(-1), dtype, tuple(shape))
