"""MemoryView: a description of imported or exported memory: address, items, layout."""

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
    wrap_indices,
)

SWEEPS: list[Callable[[], None]] = []  # functions that find exports whose consumers are done
PythonView: TypeAlias = memoryview  # a method of the class has this name
Release = Callable[["MemoryView"], object]


def _attribute(name: str) -> Any:
    """A read-only attribute that raises after the view is released."""
    slot = f"_{name}"

    def read(view: MemoryView) -> Any:
        if view.released:
            raise _released_error()
        return getattr(view, slot)

    return property(read)


def _released_error() -> ReleasedError:
    return ReleasedError("this view was released", hint="get() the memory again")


class MemoryView:
    """A description of memory that `obj` owns; it keeps the owner alive.

    Producers create one; consumers get it from `glassgrad.memory.get` and `release()` it, or use it
    as a context manager. Strides and sub-offsets are in bytes. No shape means one axis, no strides
    row-major, no format unsigned bytes. A sub-offset that is not negative means that the address
    along this axis holds a pointer, to be followed and then advanced by that many bytes.
    """

    __slots__ = (
        "__weakref__", "_array_owner", "_byte_size", "_data", "_device", "_dtype",
        "_export_count", "_exports", "_format", "_item_desc", "_item_size", "_obj",
        "_private_data", "_readonly", "_release", "_release_token", "_shape", "_strides",
        "_sub_offsets", "released",
    )  # fmt: skip

    obj: Any = _attribute("obj")
    data: int = _attribute("data")
    byte_size: int = _attribute("byte_size")
    readonly: bool = _attribute("readonly")
    format: str | None = _attribute("format")
    item_size: int = _attribute("item_size")
    shape: Ints = _attribute("shape")
    strides: Ints = _attribute("strides")
    sub_offsets: Ints | None = _attribute("sub_offsets")
    private_data: Any = _attribute("private_data")
    device: str = _attribute("device")
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
        # The thread that pops this may release: popping is atomic.
        self._release_token: list[None] = [None]
        self._exports: list[None] = []  # one entry per live export of this view
        self._export_count: list[None] | None = None
        self._array_owner: Any = None
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
        """The components of an item."""
        if self._item_desc is None or self.released:
            size, components = parse_format(self.format)
            if self.item_size not in (size, end(components)) and self._dtype is None:
                dtype = self.dtype
                size, components = parse_format(dtype.format if dtype else self.format)
            if self.item_size not in (size, end(components)):
                raise FormatError(
                    f"format {self.format!r} describes {size} bytes, but items have "
                    f"{self.item_size}",
                    hint="item_pointer() gives the address of an item",
                )
            self._item_desc = components
        return self._item_desc

    @property
    def dtype(self) -> DType | None:
        """The dtype, if items are single numbers of a supported type."""
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
        index_tuple = indices if isinstance(indices, (tuple, list)) else (indices,)
        address = self.data
        for axis, index in enumerate(wrap_indices(index_tuple, self._shape)):
            address += index * self._strides[axis]
            if self._sub_offsets is not None and self._sub_offsets[axis] >= 0:
                self._need_host("follow pointers")
                target = ctypes.c_void_p.from_address(address).value or 0
                address = target + self._sub_offsets[axis]
        return address

    def __getitem__(self, indices: Any) -> Any:
        components = self.item_desc
        address = self.item_pointer(indices)
        self._need_host("read items")
        return extract_item(ctypes.string_at(address, self._item_size), components)

    def __setitem__(self, indices: Any, value: Any) -> None:
        components = self.item_desc
        if self._readonly:
            raise RefusedError("this memory is read-only", hint="copy it first")
        address = self.item_pointer(indices)
        self._need_host("write items")
        raw = bytearray(ctypes.string_at(address, self._item_size))
        store_item(raw, components, value)  # writes all of the item or nothing
        ctypes.memmove(address, bytes(raw), len(raw))

    def _need_host(self, what: str) -> None:
        if not is_host(self._device):
            raise RefusedError(
                f"cannot {what} in memory of device {self._device}", hint="copy it first"
            )

    # ------------------------------------------------------------------ release

    def release(self) -> bool:
        """Release the memory. True if this call did it; False if the producer refused, or if it is
        released already. Raises BufferError while exports of this view are in use.
        """
        try:
            self._release_token.pop()
        except IndexError:
            return False
        if self._exports:
            for sweep in SWEEPS:
                sweep()
        if self._exports:
            self._release_token.append(None)
            count = len(self._exports)
            raise RefusedError(f"{count} export{'s'[: count > 1]} of this view still in use")
        try:
            is_done = self._release is None or self._release(self) is not False
        except BaseException:
            self._release_token.append(None)
            raise
        if is_done:
            self._clear()
        else:
            self._release_token.append(None)
        return is_done

    def _clear(self) -> None:
        self.released = True
        self._obj = self._private_data = self._release = None
        export_count, self._export_count = self._export_count, None
        if export_count is not None:
            export_count.pop()

    def __del__(self) -> None:
        claim = getattr(self, "_release_token", None)
        if not claim:
            return
        claim.pop()
        try:
            if self._release is not None:
                self._release(self)
        finally:
            self._clear()

    def __enter__(self) -> Self:
        if self.released:
            raise _released_error()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def begin_export(self) -> MemoryView:
        """Count an export of this view, which cannot be released until `end_export()`."""
        self._exports.append(None)
        if not self._release_token:  # released, or about to be
            self._exports.pop()
            raise _released_error()
        return self

    def end_export(self) -> None:
        """An export of this view has ended."""
        self._exports.pop()

    # ------------------------------------------------------------------ to other libraries

    def memoryview(self) -> PythonView:
        """A memoryview of this memory, of any shape and strides, which keeps this view alive."""
        from glassgrad.memory.export_buffer import export

        self._need_host("share")
        return export(self)

    def __buffer__(self, flags: int) -> PythonView:
        """PEP 688: used by `memoryview(view)` and `bytes(view)` from Python 3.12 on."""
        if flags & 1 and self.readonly:
            raise RefusedError("this memory is read-only")
        return self.memoryview()

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """NumPy's protocol. Arrays made from it keep this view and its owner alive."""
        from glassgrad.memory.bridge_array_interface import interface_of

        self._need_host("share")
        self._array_owner = self.obj
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
