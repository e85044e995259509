"""MemoryView: somebody's memory, described: where it is, what its items are, how they lie."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Self, TypeAlias

from glassgrad.base.dtype import DType
from glassgrad.base.errors import FormatError
from glassgrad.memory.allocator import is_host
from glassgrad.memory.errors import RefusedError, ReleasedError
from glassgrad.memory.format import parse_format
from glassgrad.memory.format_dtype import dtype_of_format
from glassgrad.memory.item import Component, end, extract_item, store_item
from glassgrad.memory.layout import (
    Ints,
    contiguous_strides,
    is_column_major,
    is_row_major,
    wrapped,
)

SWEEPS: list[Callable[[], None]] = []  # what finds out that exports are gone without telling
PythonView: TypeAlias = memoryview  # a method of the class has that name
Release = Callable[["MemoryView"], object]


def _told(name: str) -> Any:
    """An attribute that can be asked for until the view is released."""
    slot = f"_{name}"

    def read(view: MemoryView) -> Any:
        if view.released:
            raise _gone()
        return getattr(view, slot)

    return property(read)


def _gone() -> ReleasedError:
    return ReleasedError("this view was released", hint="get() the memory again")


class MemoryView:
    """A description of memory that `obj` owns; it holds the owner, not the bytes.

    Producers make one; consumers get it from `glassgrad.memory.get` and `release()` it, or use it
    as a context manager. Strides and sub-offsets are in bytes. No shape means one axis, no strides
    row-major, no format unsigned bytes. A sub-offset that is not negative says that what the axis
    leads to is a pointer, to be followed and then moved by that many bytes.
    """

    __slots__ = (
        "__weakref__", "_byte_size", "_claim", "_data", "_device", "_dtype", "_format",
        "_item_desc", "_item_size", "_kept", "_lent", "_obj", "_private_data", "_readonly",
        "_release", "_shape", "_strides", "_sub_offsets", "_tally", "released",
    )  # fmt: skip

    obj: Any = _told("obj")
    data: int = _told("data")
    byte_size: int = _told("byte_size")
    readonly: bool = _told("readonly")
    format: str | None = _told("format")
    item_size: int = _told("item_size")
    shape: Ints = _told("shape")
    strides: Ints = _told("strides")
    sub_offsets: Ints | None = _told("sub_offsets")
    private_data: Any = _told("private_data")
    device: str = _told("device")
    released: bool

    def __init__(
        self,
        obj: Any,
        data: int,
        byte_size: int,
        *,
        readonly: bool = True,
        format: str | None = None,
        item_size: int | None = None,
        shape: Ints | None = None,
        strides: Ints | None = None,
        sub_offsets: Ints | None = None,
        private_data: Any = None,
        device: str = "CPU",
        dtype: DType | None = None,
        release: Release | None = None,
    ) -> None:
        self.released = False
        self._claim: list[None] = [None]  # whoever pops this may release; popping is atomic
        self._lent: list[None] = []  # one entry per export of this view that is alive
        self._tally: list[None] | None = None
        self._kept: Any = None
        self._release = release
        self._obj = obj
        self._data = data
        self._byte_size = byte_size
        self._readonly = readonly
        self._format = format
        size = parse_format(format)[0] if item_size is None else item_size
        self._item_size = size
        self._item_desc: tuple[Component, ...] | None = None
        self._shape = (byte_size // size if size else 0,) if shape is None else shape
        self._strides = contiguous_strides(self._shape, size) if strides is None else strides
        is_flat = sub_offsets is None or max(sub_offsets, default=-1) < 0
        self._sub_offsets = None if is_flat else sub_offsets
        self._private_data = private_data
        self._device = device
        self._dtype = dtype

    def __repr__(self) -> str:
        if self.released:
            return "<MemoryView, released>"
        kind = f"{'read-only ' if self._readonly else ''}{self._format or 'B'}"
        return f"<MemoryView of {type(self._obj).__name__}: {kind} {self._shape} on {self._device}>"

    # ------------------------------------------------------------------ facts

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def item_desc(self) -> tuple[Component, ...]:
        """What an item is made of."""
        if self._item_desc is None or self.released:
            size, components = parse_format(self.format)
            if self.item_size not in (size, end(components)) and self._dtype is None:
                dtype = self.dtype
                size, components = parse_format(dtype.format if dtype else self.format)
            if self.item_size not in (size, end(components)):
                raise FormatError(
                    f"format {self.format!r} describes {size} bytes, but an item has "
                    f"{self.item_size}",
                    hint="item_pointer() says where an item is; what it means is not known",
                )
            self._item_desc = components
        return self._item_desc

    @property
    def dtype(self) -> DType | None:
        """The element type, if items are single numbers that we have a type for."""
        fmt = self.format
        return self._dtype or dtype_of_format(fmt, self._item_size)

    def is_row_major_contiguous(self) -> bool:
        flat = self.sub_offsets is None
        return flat and is_row_major(self._shape, self._strides, self._item_size)

    def is_column_major_contiguous(self) -> bool:
        flat = self.sub_offsets is None
        return flat and is_column_major(self._shape, self._strides, self._item_size)

    def is_contiguous(self) -> bool:
        return self.is_row_major_contiguous() or self.is_column_major_contiguous()

    # ------------------------------------------------------------------ items

    def item_pointer(self, indices: Any) -> int:
        """The address of an item. Indices are checked; negative ones count from the end."""
        places = indices if isinstance(indices, (tuple, list)) else (indices,)
        place = self.data
        for axis, index in enumerate(wrapped(places, self._shape)):
            place += index * self._strides[axis]
            if self._sub_offsets is not None and self._sub_offsets[axis] >= 0:
                self._need_host("follow pointers")
                target = ctypes.c_void_p.from_address(place).value or 0
                place = target + self._sub_offsets[axis]
        return place

    def __getitem__(self, indices: Any) -> Any:
        components = self.item_desc
        place = self.item_pointer(indices)
        self._need_host("read items")
        return extract_item(ctypes.string_at(place, self._item_size), components)

    def __setitem__(self, indices: Any, value: Any) -> None:
        components = self.item_desc
        if self._readonly:
            raise RefusedError("this memory is read-only", hint="copy it first")
        place = self.item_pointer(indices)
        self._need_host("write items")
        raw = bytearray(ctypes.string_at(place, self._item_size))
        store_item(raw, components, value)  # all of it or nothing
        ctypes.memmove(place, bytes(raw), len(raw))

    def _need_host(self, what: str) -> None:
        if not is_host(self._device):
            raise RefusedError(f"cannot {what} in memory of {self._device}", hint="copy it first")

    # ------------------------------------------------------------------ giving it back

    def release(self) -> bool:
        """Give the memory back. True if this call did it; False if the producer refused, or it
        was done before. While others look through this view it is a BufferError.
        """
        try:
            self._claim.pop()
        except IndexError:
            return False
        if self._lent:
            for sweep in SWEEPS:
                sweep()
        if self._lent:
            self._claim.append(None)
            count = len(self._lent)
            raise RefusedError(f"{count} export{'s'[: count > 1]} of this view still in use")
        try:
            is_done = self._release is None or self._release(self) is not False
        except BaseException:
            self._claim.append(None)
            raise
        if is_done:
            self._forget()
        else:
            self._claim.append(None)
        return is_done

    def _forget(self) -> None:
        self.released = True
        self._obj = self._private_data = self._release = None
        tally, self._tally = self._tally, None
        if tally is not None:
            tally.pop()

    def __del__(self) -> None:
        claim = getattr(self, "_claim", None)
        if not claim:
            return
        claim.pop()
        try:
            if self._release is not None:
                self._release(self)
        finally:
            self._forget()

    def __enter__(self) -> Self:
        if self.released:
            raise _gone()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def lend(self) -> MemoryView:
        """Count an export of this view: until `returned()`, it cannot be released."""
        self._lent.append(None)
        if not self._claim:  # released, or about to be
            self._lent.pop()
            raise _gone()
        return self

    def returned(self) -> None:
        """An export is gone."""
        self._lent.pop()

    # ------------------------------------------------------------------ to other libraries

    def memoryview(self) -> PythonView:
        """Python's own view of this memory, of any shape and strides; this one lives with it."""
        from glassgrad.memory.export_buffer import export

        self._need_host("share")
        return export(self)

    def __buffer__(self, flags: int) -> PythonView:
        """PEP 688: from Python 3.12 on, `memoryview(view)` and `bytes(view)` come here."""
        if flags & 1 and self.readonly:
            raise RefusedError("this memory is read-only")
        return self.memoryview()

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """NumPy's protocol. Arrays made of it hold this view, and the owner behind it."""
        from glassgrad.memory.bridge_array import interface_of

        self._need_host("share")
        self._kept = self.obj
        return interface_of(self)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        from glassgrad.memory.export_dlpack import export

        return export(self, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        from glassgrad.memory.bridge_dlpack import device_pair

        return device_pair(self.device)

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        from glassgrad.memory.export_arrow import export

        self._need_host("share")
        return export(self)
