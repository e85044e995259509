"""Python data -> nodes: numbers, lists and arrays are copied; `buffer_of` shares their memory."""

from __future__ import annotations

import os
from array import array
from itertools import count
from os import PathLike
from typing import Any

from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.errors import DTypeError, ShapeError
from glassgrad.base.origin import here
from glassgrad.base.rounding import convert
from glassgrad.engine.capture.recorder import active_recorder
from glassgrad.ir.ops import Ops
from glassgrad.ir.symbolic import SymbolicInt
from glassgrad.ir.uop import UOp
from glassgrad.memory.hub import available
from glassgrad.memory.storage import Storage
from glassgrad.memory.view import View
from glassgrad.tensor.core import copy_to_device
from glassgrad.tensor.device_names import host_device
from glassgrad.tensor.lazy.in_place_writes import finish_writes_to
from glassgrad.tensor.record import cast_to, record, scalar

BUFFER, DETACH = Ops.BUFFER, Ops.DETACH
MAX_PLAIN_LIST = 1024  # elements; above this, NumPy repays its import time (about 100 ms)
ARRAY_TYPECODES = frozenset("?bBhHiIqQfd")  # typecodes of array.array, and bool
UNSIGNED = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}
_names = count(1)


def unique_node(uop: UOp) -> UOp:
    """The same value as a node that no other tensor shares, so that two tensors of zeros are two
    parameters.

    Equal nodes are one node. Without a unique DETACH around it, the gradient of one parameter would
    be that of all equal ones.
    """
    return record(DETACH, uop.dtype, (uop,), next(_names))


def node_from_data(data: Any, dtype: DType | None, device: str) -> UOp:
    """The node for anything that Tensor() accepts."""
    if isinstance(data, UOp):
        return data if dtype is None else cast_to(data, dtype)
    if isinstance(data, SymbolicInt):
        return unique_node(
            copy_to_device(scalar(data, dtypes.default_int if dtype is None else dtype), device)
        )
    if isinstance(data, (int, float)) and not hasattr(data, "dtype"):  # numpy.float64 is a float
        number = scalar(data, dtypes.from_py(data) if dtype is None else dtype)
        return unique_node(copy_to_device(number, device))
    if isinstance(data, (list, tuple)):
        return _from_list(data, dtype, device)
    if isinstance(data, (bytes, bytearray)):
        return _from_bytes(bytes(data), dtype, device)
    if hasattr(data, "__array_interface__") and hasattr(data, "__array__"):  # NumPy's
        return _from_array(data, dtype, device)
    if available(data):
        uop = _from_exporter(data, device)
        return uop if dtype is None else cast_to(uop, dtype)
    raise DTypeError(
        f"cannot make a Tensor of {'None' if data is None else f'a {type(data).__name__}'}",
        hint="use a number, a nested list, an array, or anything that shares its memory",
    )


def buffer_of(exporter: Any, device: str, dtype: DType | None = None, shape: Any = None) -> UOp:
    """The memory of `exporter` as a buffer on a device, copied only if the device has memory of its
    own.
    """
    view = View.from_host(exporter, dtype=dtype, shape=shape, device=host_device(device))
    finish_writes_to(view.storage)
    made = UOp(BUFFER, view.dtype, (), view)
    if active_recorder() is not None:  # errors name the line where data enters a captured function
        made.origin = here()
    return copy_to_device(made, device)


def _from_exporter(data: Any, device: str) -> UOp:
    """An immediate copy of memory that an object exports: a memoryview, a PyTorch tensor."""
    view = View.from_host(data, device=host_device(device))
    finish_writes_to(view.storage)
    # As unsigned ints: NumPy lacks some dtypes
    bits = View(view.storage, UNSIGNED[view.dtype.itemsize], *view.window)
    return buffer_of(bits.numpy().copy(order="C"), device, view.dtype)


def _from_bytes(data: bytes, dtype: DType | None, device: str) -> UOp:
    """Bytes as items of a dtype, uint8 by default."""
    wanted = dtypes.uint8 if dtype is None else dtype
    _item_count(len(data), wanted)
    return buffer_of(data, device, wanted)


def _item_count(nbytes: int, dtype: DType) -> int:
    if nbytes % dtype.itemsize:
        raise ShapeError(f"{nbytes} bytes are no whole number of {dtype.name} items")
    return nbytes // dtype.itemsize


def file_node(path: PathLike[str], dtype: DType | None) -> UOp:
    """A file's bytes as items of a dtype. Writes to the tensor do not change the file."""
    wanted, size = dtypes.uint8 if dtype is None else dtype, os.stat(path).st_size
    count = _item_count(size, wanted)
    storage = Storage(f"DISK:{os.fspath(path)}", count, wanted, readonly=True)
    return UOp(BUFFER, wanted, (), View(storage, wanted, (count,), (1,)))


def _from_array(data: Any, dtype: DType | None, device: str) -> UOp:
    """A copy of the array, so that later changes of the array are not seen."""
    import numpy as np

    array = data
    if isinstance(data, np.ndarray):
        if data.dtype.kind in "OSUVMmc" and data.dtype.itemsize not in (1, 2):
            raise DTypeError(f"there is no dtype for NumPy's {data.dtype}", hint="convert it first")
        if not data.dtype.isnative or any(step % data.itemsize for step in data.strides):
            array = data.astype(data.dtype.newbyteorder("="))
    uop = buffer_of(np.array(array, order="C", copy=True, subok=False), device)
    return uop if dtype is None else cast_to(uop, dtype)


def _from_list(data: list[Any] | tuple[Any, ...], dtype: DType | None, device: str) -> UOp:
    """A nested list of numbers. Ints become the default int dtype, floats the default float
    dtype.
    """
    refuse_ragged(data)
    small = _from_short_list(data, dtype, device)
    if small is not None:
        return small
    import numpy as np

    try:
        found_array = np.array(data)
    except (ValueError, TypeError, OverflowError):
        found_array = np.array(None)
    if found_array.dtype.kind not in "biuf":
        raise _bad_item(data)
    found = dtypes.default_float
    if found_array.size:
        found = {"b": dtypes.bool, "f": dtypes.default_float}.get(
            found_array.dtype.kind, dtypes.default_int
        )
    wanted = found if dtype is None else dtype
    _check_range(found_array, wanted)
    stored = _stored_array(found_array, wanted)
    with np.errstate(all="ignore"):
        numbers = np.array(found_array, stored.name, order="C")
    return cast_to(buffer_of(numbers, device), wanted)


def _from_short_list(
    data: list[Any] | tuple[Any, ...], dtype: DType | None, device: str
) -> UOp | None:
    """A short list of plain numbers, without importing NumPy; None if the list is longer or
    mixed.
    """
    shape: list[int] = []
    flat: Any = [data]
    while flat and isinstance(flat[0], (list, tuple)):
        shape.append(len(flat[0]))
        flat = [item for row in flat for item in row]
        if len(flat) > MAX_PLAIN_LIST:
            return None
    kinds = set(map(type, flat))
    if not kinds or not kinds <= {int, float, bool}:
        return None
    found = dtypes.default_float if float in kinds else dtypes.default_int
    wanted = dtype or (dtypes.bool if kinds == {bool} else found)
    if wanted.kind != "float" and (float in kinds or not _all_fit(flat, wanted)):
        return None
    # Narrow floats are rounded once, from float64.
    stored = wanted if wanted.format in ARRAY_TYPECODES else dtypes.float64
    if stored.kind != "float" and not _all_fit(flat, stored):
        return None
    letter = "B" if stored.kind == "bool" else stored.format
    if stored.kind == "float":
        flat = [float(convert(item, wanted)) if type(item) is int else item for item in flat]
    numbers = array(str(letter), flat)
    return cast_to(buffer_of(numbers, device, stored, tuple(shape)), wanted)


def _stored_array(found: Any, wanted: DType) -> DType:
    """The dtype that NumPy stores numbers in, so that they are rounded once on the way to
    `wanted`.
    """
    if wanted.format is not None:
        return wanted
    whole = {"i": dtypes.int64, "u": dtypes.uint64, "b": dtypes.bool}
    return whole.get(found.dtype.kind, dtypes.float64)


def _all_fit(numbers: list[Any], dtype: DType) -> bool:
    return bool(dtypes.min(dtype) <= min(numbers) and max(numbers) <= dtypes.max(dtype))


def _check_range(array: Any, dtype: DType) -> None:
    if dtype.kind not in ("int", "uint") or not array.size or array.dtype.kind == "f":
        return
    low, high = int(array.min()), int(array.max())
    if low < dtypes.min(dtype) or high > dtypes.max(dtype):
        bad = high if high > dtypes.max(dtype) else low
        raise DTypeError(f"{bad} does not fit {dtype.name}", hint="pass dtype=dtypes.int64")


def refuse_ragged(data: list[Any] | tuple[Any, ...]) -> None:
    """Raise an error for nested lists of different lengths, with the index where they differ."""
    stack: list[tuple[Any, tuple[int, ...]]] = [(data, ())]
    sizes: dict[int, int | None] = {}
    while stack:
        item, path = stack.pop()
        size = len(item) if isinstance(item, (list, tuple)) else None
        depth = len(path)
        if sizes.setdefault(depth, size) != size:
            index = "".join(f"[{i}]" for i in path)
            raise ShapeError(
                f"the list is ragged: data{index} has {_length(size)}, "
                f"others at that depth have {_length(sizes[depth])}",
                hint="all lists at one depth must have the same length",
            )
        if size and isinstance(item[0], (list, tuple)) | isinstance(item[-1], (list, tuple)):
            stack.extend((item[i], (*path, i)) for i in range(size - 1, -1, -1))
        elif size:
            nested = next((i for i, one in enumerate(item) if isinstance(one, (list, tuple))), None)
            if nested is not None:
                stack.extend([(item[nested], (*path, nested)), (item[0], (*path, 0))])


def _length(size: int | None) -> str:
    return "a single value" if size is None else f"length {size}"


def _bad_item(data: Any, path: str = "data") -> DTypeError:
    """The error for a list item that is not a number."""
    stack: list[tuple[Any, str]] = [(data, path)]
    while stack:
        item, name = stack.pop()
        if isinstance(item, (list, tuple)):
            stack.extend((one, f"{name}[{i}]") for i, one in reversed(list(enumerate(item))))
        elif isinstance(item, int) and not isinstance(item, bool):
            if not -(1 << 63) <= item < (1 << 64):
                return DTypeError(f"{name} is {item}, which fits no dtype")
        elif not isinstance(item, (bool, float)) and not hasattr(item, "__float__"):
            word = "None" if item is None else f"a {type(item).__name__}"
            return DTypeError(f"{name} is {word}, not a number", hint="lists hold numbers only")
    return DTypeError("the list does not hold numbers of one kind", hint="pass a dtype")
