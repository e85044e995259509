"""View: a strided window on a storage."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.errors import DTypeError, FormatError, ShapeError
from glassgrad.base.fast_dataclasses import slotted
from glassgrad.memory.allocator import is_host
from glassgrad.memory.errors import RefusedError
from glassgrad.memory.format_dtype import WITHOUT_FORMAT, dtype_format, format_dtype
from glassgrad.memory.hub import get
from glassgrad.memory.layout import Ints, contiguous_strides, extent, is_row_major
from glassgrad.memory.memory_view import MemoryView
from glassgrad.memory.sharing import SHARED_STORAGES
from glassgrad.memory.storage import BufferSpec, Storage
from glassgrad.memory.window import Window

if TYPE_CHECKING:
    import numpy

# Formats that memoryview.cast supports; others go through NumPy.
C_TYPES: dict[str | None, Any] = {
    "?": ctypes.c_bool, "b": ctypes.c_int8, "B": ctypes.c_uint8, "h": ctypes.c_int16,
    "H": ctypes.c_uint16, "i": ctypes.c_int32, "I": ctypes.c_uint32, "q": ctypes.c_int64,
    "Q": ctypes.c_uint64, "f": ctypes.c_float, "d": ctypes.c_double,
}  # fmt: skip
CASTABLE = frozenset(map(str, C_TYPES))
ML_DTYPES = {
    dtypes.bfloat16: "bfloat16",
    dtypes.fp8e4m3: "float8_e4m3fn",
    dtypes.fp8e5m2: "float8_e5m2",
}


@lru_cache(maxsize=4096)
def _contiguous(shape: Ints) -> tuple[int, Ints]:
    """(number of elements, contiguous strides)"""
    return prod(shape), contiguous_strides(shape)


__all__ = ["View", "contiguous_strides", "numpy_dtype"]


# Treated as immutable; a frozen class would take three times as long to instantiate.
@slotted
class View:
    """Elements of a storage: element (i, j) is at offset + i*strides[0] + j*strides[1].

    Views are compared by identity: a view stands for one version of the contents, and a write
    creates a new view.
    """

    storage: Storage
    dtype: DType
    shape: Ints
    strides: Ints
    offset: int = 0

    # ------------------------------------------------------------------ construction

    @staticmethod
    def empty(device: str, shape: Ints, dtype: DType, options: BufferSpec | None = None) -> View:
        """A view of a new storage, which is not allocated yet."""
        size, strides = _contiguous(shape)
        return View(Storage(device, size, dtype, options), dtype, shape, strides)

    @staticmethod
    def from_host(
        exporter: object, dtype: DType | None = None, shape: Ints | None = None, device: str = "CPU"
    ) -> View:
        """A view of an object's memory without a copy, optionally as another dtype and shape."""
        seen = View.of(_memory_of(exporter), dtype, device)
        return seen if shape is None or shape == seen.shape else seen.reshaped(shape)

    @staticmethod
    def of(memory: MemoryView, dtype: DType | None = None, device: str = "CPU") -> View:
        """The elements that a MemoryView describes; keeps it alive."""
        if not is_host(memory.device):
            raise RefusedError(
                f"memory of device {memory.device} cannot be used by {device}", hint="copy it first"
            )
        if memory._sub_offsets is not None:
            raise FormatError(
                "memory with sub-offsets (rows behind pointers) cannot be used",
                hint="copy it first",
            )
        found = memory.dtype or format_dtype(memory._format, memory._item_size)
        shape, strides = memory._shape, memory._strides
        if dtype is not None and dtype is not found:
            shape, strides = _bitcast_layout(shape, strides, found, dtype)
        return _view_of_memory(memory, dtype or found, shape, strides, device)

    @staticmethod
    def from_pointer(
        address: int, shape: Ints, dtype: DType, owner: object = None, device: str = "CPU"
    ) -> View:
        """Elements at an address that stays valid while `owner` lives."""
        options = BufferSpec(external_ptr=address)
        storage = Storage(device, prod(shape), dtype, options, owner)
        return View(storage, dtype, shape, contiguous_strides(shape))

    def reshaped(self, shape: Ints) -> View:
        """The elements of a contiguous view in another shape."""
        if prod(shape) != self.numel:
            raise ShapeError(f"{self.numel} elements do not fill the shape {shape}")
        if not self.is_contiguous:
            raise ShapeError(
                f"a strided view of shape {self.shape} cannot be reshaped to {shape} without a copy"
            )
        return View(self.storage, self.dtype, shape, contiguous_strides(shape), self.offset)

    def bitcast(self, dtype: DType) -> View:
        """The bytes of a contiguous view as items of another dtype, along the last axis."""
        first, items = self.shape[:-1], self.shape[-1] * self.dtype.itemsize // dtype.itemsize
        shape = (*first, items)
        part = self.storage.part(prod(shape), dtype, self.offset * self.dtype.itemsize)
        return View(part, dtype, shape, contiguous_strides(shape))

    def with_window(self, window: Window) -> View:
        """Another window on the same storage."""
        return View(self.storage, self.dtype, *window)

    def with_own_storage(self) -> View:
        """The same elements in a new storage that is a part of this one, so that writes to either
        find the overlap.
        """
        before, behind = extent(self.shape, self.strides)
        first = self.offset - before
        part = self.storage.part(before + behind + 1, self.dtype, first * self.dtype.itemsize)
        return View(part, self.dtype, self.shape, self.strides, before)

    def new_version(self) -> View:
        """The same window as a new version: what is read after a write."""
        return View(self.storage, self.dtype, self.shape, self.strides, self.offset)

    # ------------------------------------------------------------------ facts

    @property
    def device(self) -> str:
        return self.storage.device

    @property
    def window(self) -> Window:
        return Window(self.shape, self.strides, self.offset)

    @property
    def numel(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize

    @property
    def address(self) -> int:
        """The address of the element at index 0, 0, …."""
        return self.storage.address + self.offset * self.dtype.itemsize

    @property
    def readonly(self) -> bool:
        return self.storage.readonly

    @property
    def is_contiguous(self) -> bool:
        """Row-major without gaps; axes of size 1 may have any stride."""
        return is_row_major(self.shape, self.strides)

    # ------------------------------------------------------------------ access

    def shared(self) -> MemoryView:
        """This memory as a MemoryView, for all other libraries."""
        item, dtype = self.dtype.itemsize, self.dtype
        address = self.address  # allocates
        SHARED_STORAGES.add(self.storage)
        return MemoryView(
            self.storage,
            address if self.numel else 0,
            self.nbytes,
            readonly=self.readonly,
            format=dtype_format(dtype),
            item_size=item,
            shape=self.shape,
            strides=tuple([step * item for step in self.strides]),
            device=self.device,
            dtype=None if dtype.format else dtype,
        )

    def memoryview(self) -> memoryview:
        """The elements, shared. Items of a dtype without a PEP 3118 format are raw bytes."""
        if self.dtype.format in CASTABLE and self.numel and self.is_contiguous:
            start = self.offset * self.dtype.itemsize
            raw = self.storage.as_buffer()[start : start + self.nbytes]
            return raw.cast(self.dtype.format, self.shape)  # type: ignore[call-overload,no-any-return]
        shared = self.shared().memoryview()
        return shared if self.dtype.format or not self.is_contiguous else shared.cast("B")

    def tolist(self) -> Any:
        """The elements as a Python number or nested lists; imports NumPy only if necessary.

        >>> View.from_host(b"ab").tolist()
        [97, 98]
        """
        if self.dtype.format in CASTABLE and self.numel and self.is_contiguous:
            return self.memoryview().tolist()
        return self.numpy().tolist()

    def first(self) -> Any:
        """The element at index 0, 0, … as a Python number.

        >>> View.from_host(b"ab").first()
        97
        """
        return C_TYPES[str(self.dtype.format)].from_address(self.address).value

    def numpy(self) -> numpy.ndarray[Any, Any]:
        """The elements as a NumPy array that shares this memory."""
        import numpy

        dtype: Any = numpy_dtype(self.dtype)
        item = self.dtype.itemsize
        steps = tuple(stride * item for stride in self.strides)
        if not self.numel:
            return numpy.empty(self.shape, dtype)
        raw = self.storage.as_buffer()
        return numpy.ndarray(self.shape, dtype, raw, self.offset * item, steps)


def numpy_dtype(dtype: DType) -> Any:
    """NumPy's dtype for ours; ml_dtypes provides those that NumPy lacks."""
    import numpy

    if dtype not in ML_DTYPES:
        return numpy.dtype(dtype.name)
    try:
        import ml_dtypes
    except ImportError:
        raise DTypeError(
            f"NumPy has no {dtype.name}",
            hint="install ml_dtypes, or cast to float32 first",
        ) from None
    return numpy.dtype(getattr(ml_dtypes, ML_DTYPES[dtype]))


def _memory_of(exporter: Any) -> MemoryView:
    """An object's memory. NumPy exports items of ml_dtypes as raw bytes, but names their dtype."""
    if isinstance(exporter, MemoryView):  # exported again, so that its owner cannot release it
        view = get(exporter.memoryview())
        view._dtype = exporter._dtype
        return view
    view = get(exporter)
    if view.dtype is None:
        name = str(getattr(getattr(exporter, "dtype", None), "name", ""))
        view._dtype = WITHOUT_FORMAT.get(name)
    return view


def _bitcast_layout(shape: Ints, strides: Ints, found: DType, dtype: DType) -> tuple[Ints, Ints]:
    """The same bytes as items of another dtype; the size of the last axis changes."""
    item, size = found.itemsize, dtype.itemsize
    if item == size:
        return shape, strides
    if not shape or strides[-1] != item or shape[-1] * item % size:
        raise FormatError(
            f"{found.name} elements of shape {shape} cannot be read as {dtype.name}",
            hint="the last axis must be contiguous and its bytes a whole number of elements",
        )
    return (*shape[:-1], shape[-1] * item // size), (*strides[:-1], size)


def _view_of_memory(
    memory: MemoryView, dtype: DType, shape: Ints, strides: Ints, device: str
) -> View:
    """A view of imported memory, in a storage from its lowest to its highest byte."""
    item, count = dtype.itemsize, prod(shape)
    if not count:
        return View.empty(device, shape, dtype)
    steps, before = contiguous_strides(shape), 0
    if strides != contiguous_strides(shape, item):
        if any(step % item for step in strides):
            raise FormatError(
                f"strides {strides} are not multiples of {item} bytes",
                hint="copy the data first",
            )
        steps = tuple([step // item for step in strides])
        before, behind = extent(shape, steps)
        count = before + behind + 1
    options = BufferSpec(external_ptr=memory._data - before * item)
    storage = Storage(device, count, dtype, options, memory, memory._readonly)
    return View(storage, dtype, shape, steps, before)
