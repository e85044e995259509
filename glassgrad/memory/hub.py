"""Object -> MemoryView: producers register, consumers get; the hub checks and counts.

The producer of an object is searched along the bases of its class, then among the bridges to other
protocols, in order. Its view is checked against the requested flags.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from math import prod
from threading import RLock
from typing import Any
from weakref import WeakValueDictionary

from glassgrad.base.fast_dataclasses import frozen
from glassgrad.memory import bridge_buffer
from glassgrad.memory.errors import ExportError, FormatError, RefusedError
from glassgrad.memory.flags import (
    COLUMNS_BIT,
    POINTERS_BIT,
    ROWS_BIT,
    STRIDES_BIT,
    WRITABLE_BIT,
    Flags,
)
from glassgrad.memory.format import parse_format
from glassgrad.memory.memory_view import SWEEPS, MemoryView

Get = Callable[[Any, Flags], MemoryView | None]


@frozen
class Producer:
    """How objects of a class share their memory."""

    get: Get
    release: Callable[[MemoryView], object] | None
    available: Callable[[Any], bool] | None


class ExportCount(list[None]):
    """One entry per unreleased view of an object. Lives as long as one of them."""

    __slots__ = ("__weakref__",)


PRODUCERS: dict[type, Producer] = {}
EXPORT_COUNTS: WeakValueDictionary[int, ExportCount] = WeakValueDictionary()
REGISTERING = RLock()
# attribute of the object -> module with `get`
PROTOCOLS = {
    "__dlpack__": "glassgrad.memory.bridge_dlpack",
    "__cuda_array_interface__": "glassgrad.memory.bridge_array_interface",
    "__array_interface__": "glassgrad.memory.bridge_array_interface",
    "__arrow_c_array__": "glassgrad.memory.bridge_arrow",
}


# ---------------------------------------------------------------------- producers


def register(
    cls: type,
    *,
    get: Get,
    release: Callable[[MemoryView], object] | None = None,
    available: Callable[[Any], bool] | None = None,
) -> bool:
    """Register how objects of a class and its subclasses share memory; False if one is registered
    already.

    `get(obj, flags)` returns a MemoryView, or None to refuse. `release(view)` is called once; if it
    returns False, the view stays unreleased. `available(obj)` tells if `get` can succeed.
    """
    with REGISTERING:
        if cls in PRODUCERS:
            return False
        PRODUCERS[cls] = Producer(get, release, available)
        return True


def unregister(cls: type) -> bool:
    """Remove the producer of a class. Existing views keep their `release`."""
    with REGISTERING:
        return PRODUCERS.pop(cls, None) is not None


def byte_array(obj: Any, data: int, size: int, readonly: bool = True) -> MemoryView:
    """The simplest result of a producer: `size` bytes at an address.

    >>> byte_array(None, 0, 0).shape
    (0,)
    """
    return MemoryView(obj, data, size, readonly=readonly)


# ---------------------------------------------------------------------- consumers


def available(obj: Any) -> bool:
    """True if the object may export its memory; `get` can still fail."""
    producer = _producer(obj)
    if producer is not None:
        return producer.available is None or bool(producer.available(obj))
    return bridge_buffer.is_exporter(obj) or any(_has(obj, name) for name in PROTOCOLS)


def get(obj: Any, flags: int = Flags.FULL) -> MemoryView:
    """The object's memory in a layout that the flags accept.

    >>> with get(bytearray(b"abc")) as view:
    ...     view[-1] = 120
    ...     view[2], view.shape, view.readonly
    (120, (3,), False)
    """
    view = _request(obj, flags)
    try:
        check(view, flags)
    except BaseException:
        view.release()
        raise
    return count_export(obj, view)


def export_count(obj: Any) -> int:
    """The number of unreleased views of this object."""
    for sweep in SWEEPS:
        sweep()
    found = EXPORT_COUNTS.get(id(obj))
    return 0 if found is None else len(found)


def count_export(obj: Any, view: MemoryView) -> MemoryView:
    """Count a view as one of the object's."""
    key = id(obj)
    found = EXPORT_COUNTS.get(key)
    if found is None:
        with REGISTERING:
            found = EXPORT_COUNTS.setdefault(key, ExportCount())
    found.append(None)
    view._export_count = found
    return view


def _producer(obj: Any) -> Producer | None:
    for cls in type(obj).__mro__:
        found = PRODUCERS.get(cls)
        if found is not None:
            return found
    return None


def _has(obj: Any, name: str) -> bool:
    try:
        return getattr(obj, name, None) is not None
    except Exception:  # noqa: BLE001 - a property that fails, such as that of a tensor elsewhere
        return False


def _request(obj: Any, flags: int) -> MemoryView:
    producer = _producer(obj) if PRODUCERS else None
    if producer is not None:
        return _from_producer(producer, obj, Flags(flags))
    refused: BufferError | None = None
    try:
        return bridge_buffer.get(obj, flags)
    except BufferError as error:
        refused = error
    except TypeError:  # no buffer exporter
        pass
    for name, module in PROTOCOLS.items():
        if not _has(obj, name):
            continue
        try:
            return import_module(module).get(obj, flags)  # type: ignore[no-any-return]
        except BufferError as error:
            refused = refused or error
    if refused is not None:
        raise refused
    raise ExportError(
        f"{type(obj).__name__} does not export its memory",
        hint="pass a NumPy array, bytes or a memoryview, or register() the class",
    )


def _from_producer(producer: Producer, obj: Any, flags: Flags) -> MemoryView:
    name = type(obj).__name__
    if producer.available is not None and not producer.available(obj):
        raise RefusedError(f"this {name} does not export its memory now")
    view = producer.get(obj, flags)
    if view is None:
        raise RefusedError(f"{name} refused to export its memory as {flags!r}")
    if not isinstance(view, MemoryView):
        raise ExportError(f"the producer of {name} returned a {type(view).__name__}")
    if producer.release is not None:
        view._release = producer.release
    return view


# ---------------------------------------------------------------------- checks


def check(view: MemoryView, flags: int) -> None:
    """Refuse an inconsistent view, or one that the caller does not accept."""
    why = _inconsistency(view) or _conflict(view, int(flags))
    if why:
        raise RefusedError(why)


def _inconsistency(view: MemoryView) -> str:
    shape, strides = view._shape, view._strides
    try:
        parse_format(view._format)
    except FormatError as error:
        return error.message
    if len(shape) != len(strides):
        return f"{len(strides)} strides were given for {len(shape)} axes"
    if view._sub_offsets is not None and len(view._sub_offsets) != len(shape):
        return f"{len(view._sub_offsets)} sub-offsets were given for {len(shape)} axes"
    if view._item_size <= 0 or min(shape, default=0) < 0 or view._byte_size < 0:
        return f"items of {view._item_size} bytes in a shape of {shape} are invalid"
    nbytes = prod(shape) * view._item_size
    if nbytes > view._byte_size and view.is_contiguous():
        return f"shape {shape} needs {nbytes} bytes, but there are {view._byte_size}"
    return ""


def _conflict(view: MemoryView, flags: int) -> str:
    if flags & WRITABLE_BIT and view._readonly:
        return "the memory is read-only, but writable memory was requested"
    if not flags & POINTERS_BIT and view._sub_offsets is not None:
        return "the memory has sub-offsets (rows behind pointers), but INDIRECT was not requested"
    order = flags & (ROWS_BIT | COLUMNS_BIT)
    if order == ROWS_BIT | COLUMNS_BIT:
        return "" if view.is_contiguous() else "the elements are not contiguous"
    if order == COLUMNS_BIT:
        is_fine = view.is_column_major_contiguous()
        return "" if is_fine else "the elements are not in column-major order"
    if order == ROWS_BIT or not flags & STRIDES_BIT:
        is_fine = view.is_row_major_contiguous()
        return "" if is_fine else "the elements are not in row-major order"
    return ""
