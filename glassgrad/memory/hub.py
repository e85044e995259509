"""object -> MemoryView: producers register how, consumers get; the hub checks and counts.

Who knows an object's memory is looked for along its class's bases, and then among the bridges to
other protocols, in order. What a producer hands over is checked against what was asked for.
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


class Tally(list[None]):
    """One entry per view of an object that is not released. It lives as long as one of them."""

    __slots__ = ("__weakref__",)


PRODUCERS: dict[type, Producer] = {}
TALLIES: WeakValueDictionary[int, Tally] = WeakValueDictionary()
REGISTERING = RLock()
# attribute that an object must have -> module with `get`
PROTOCOLS = {
    "__dlpack__": "glassgrad.memory.bridge_dlpack",
    "__cuda_array_interface__": "glassgrad.memory.bridge_array",
    "__array_interface__": "glassgrad.memory.bridge_array",
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
    """Say how objects of a class and its subclasses share memory; False if that is known already.

    `get(obj, flags)` returns a MemoryView, or None to refuse. `release(view)` is called once; if
    it returns False the view stays as it is. `available(obj)` says whether asking makes sense.
    """
    with REGISTERING:
        if cls in PRODUCERS:
            return False
        PRODUCERS[cls] = Producer(get, release, available)
        return True


def unregister(cls: type) -> bool:
    """Forget how a class shares memory. Views that were handed out keep their `release`."""
    with REGISTERING:
        return PRODUCERS.pop(cls, None) is not None


def byte_array(obj: Any, data: int, size: int, readonly: bool = True) -> MemoryView:
    """A producer's shortest answer: `size` bytes at an address.

    >>> byte_array(None, 0, 0).shape
    (0,)
    """
    return MemoryView(obj, data, size, readonly=readonly)


# ---------------------------------------------------------------------- consumers


def available(obj: Any) -> bool:
    """Whether the object may export its memory; `get` can still be refused."""
    producer = _producer(obj)
    if producer is not None:
        return producer.available is None or bool(producer.available(obj))
    return bridge_buffer.is_exporter(obj) or any(_has(obj, name) for name in PROTOCOLS)


def get(obj: Any, flags: int = Flags.FULL) -> MemoryView:
    """The object's memory, as far as the flags say that the caller can deal with it.

    >>> with get(bytearray(b"abc")) as view:
    ...     view[-1] = 120
    ...     view[2], view.shape, view.readonly
    (120, (3,), False)
    """
    view = _handed_over(obj, flags)
    try:
        check(view, flags)
    except BaseException:
        view.release()
        raise
    return counted(obj, view)


def export_count(obj: Any) -> int:
    """How many views of this object are not released."""
    for sweep in SWEEPS:
        sweep()
    tally = TALLIES.get(id(obj))
    return 0 if tally is None else len(tally)


def counted(obj: Any, view: MemoryView) -> MemoryView:
    """The view, entered as one of its owner's."""
    key = id(obj)
    tally = TALLIES.get(key)
    if tally is None:
        with REGISTERING:
            tally = TALLIES.setdefault(key, Tally())
    tally.append(None)
    view._tally = tally
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


def _handed_over(obj: Any, flags: int) -> MemoryView:
    producer = _producer(obj) if PRODUCERS else None
    if producer is not None:
        return _from_producer(producer, obj, Flags(flags))
    refused: BufferError | None = None
    try:
        return bridge_buffer.get(obj, flags)
    except BufferError as error:
        refused = error
    except TypeError:  # no exporter
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
        f"{type(obj).__name__} does not share its memory",
        hint="give a NumPy array, bytes, a memoryview, or register() the class",
    )


def _from_producer(producer: Producer, obj: Any, flags: Flags) -> MemoryView:
    name = type(obj).__name__
    if producer.available is not None and not producer.available(obj):
        raise RefusedError(f"this {name} does not share its memory now")
    view = producer.get(obj, flags)
    if view is None:
        raise RefusedError(f"{name} refused to share its memory as {flags!r}")
    if not isinstance(view, MemoryView):
        raise ExportError(f"the producer of {name} returned a {type(view).__name__}")
    if producer.release is not None:
        view._release = producer.release
    return view


# ---------------------------------------------------------------------- what is asked for


def check(view: MemoryView, flags: int) -> None:
    """Refuse a view that does not make sense, or that the caller could not deal with."""
    why = _nonsense(view) or _unwanted(view, int(flags))
    if why:
        raise RefusedError(why)


def _nonsense(view: MemoryView) -> str:
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
        return f"items of {view._item_size} bytes in a shape of {shape} make no sense"
    nbytes = prod(shape) * view._item_size
    if nbytes > view._byte_size and view.is_contiguous():
        return f"shape {shape} needs {nbytes} bytes, but there are {view._byte_size}"
    return ""


def _unwanted(view: MemoryView, flags: int) -> str:
    if flags & WRITABLE_BIT and view._readonly:
        return "the memory is read-only, but is wanted writable"
    if not flags & POINTERS_BIT and view._sub_offsets is not None:
        return "rows lie behind pointers, and INDIRECT was not asked for"
    order = flags & (ROWS_BIT | COLUMNS_BIT)
    if order == ROWS_BIT | COLUMNS_BIT:
        return "" if view.is_contiguous() else "the elements have gaps between them"
    if order == COLUMNS_BIT:
        is_fine = view.is_column_major_contiguous()
        return "" if is_fine else "the elements are not in column-major order"
    if order == ROWS_BIT or not flags & STRIDES_BIT:
        is_fine = view.is_row_major_contiguous()
        return "" if is_fine else "the elements are not in row-major order"
    return ""
