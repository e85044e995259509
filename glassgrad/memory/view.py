"""Storage -> View: a strided window on a storage; which elements, in which order."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.errors import DTypeError, FormatError, ShapeError
from glassgrad.memory.foreign import Foreign, look
from glassgrad.memory.storage import BufferSpec, Storage

if TYPE_CHECKING:
    import numpy

Ints = tuple[int, ...]
# What memoryview.cast takes; other formats go through NumPy.
CASTABLE = frozenset("?bBhHiIqQfd")
ML_DTYPES = {
    dtypes.bfloat16: "bfloat16",
    dtypes.fp8e4m3: "float8_e4m3fn",
    dtypes.fp8e5m2: "float8_e5m2",
}


def contiguous_strides(shape: Ints) -> Ints:
    """Row-major strides in elements.

    >>> contiguous_strides((2, 3, 4))
    (12, 4, 1)
    """
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class View:
    """Elements of a storage: element (i, j) is at offset + i*strides[0] + j*strides[1].

    Two views are equal only if they are the same object: a view stands for one version of the
    contents, and a write makes a new view.
    """

    storage: Storage
    dtype: DType
    shape: Ints
    strides: Ints
    offset: int = 0

    # ------------------------------------------------------------------ making views

    @staticmethod
    def empty(device: str, shape: Ints, dtype: DType, options: BufferSpec | None = None) -> View:
        """A view of a new storage; nothing is allocated yet."""
        storage = Storage(device, prod(shape), dtype, options)
        return View(storage, dtype, shape, contiguous_strides(shape))

    @staticmethod
    def from_host(
        exporter: object, dtype: DType | None = None, shape: Ints | None = None, device: str = "CPU"
    ) -> View:
        """See an object's memory without a copy, optionally as another dtype and shape."""
        foreign = look(exporter)
        if dtype is not None and dtype is not foreign.dtype:
            foreign = _reinterpret(foreign, dtype)
        seen = _over(foreign, device)
        return seen if shape is None or shape == seen.shape else seen.reshaped(shape)

    @staticmethod
    def from_pointer(
        address: int, shape: Ints, dtype: DType, owner: object = None, device: str = "CPU"
    ) -> View:
        """Elements at an address that stays valid while `owner` lives."""
        options = BufferSpec(external_ptr=address)
        storage = Storage(device, prod(shape), dtype, options, owner)
        return View(storage, dtype, shape, contiguous_strides(shape))

    def reshaped(self, shape: Ints) -> View:
        """The same elements of a contiguous view in another shape."""
        if prod(shape) != self.numel:
            raise ShapeError(f"{self.numel} elements do not fill the shape {shape}")
        if not self.is_contiguous:
            raise ShapeError(f"a strided view of shape {self.shape} cannot be seen as {shape}")
        return View(self.storage, self.dtype, shape, contiguous_strides(shape), self.offset)

    def renewed(self) -> View:
        """The same window as a new version: what readers see after a write."""
        return View(self.storage, self.dtype, self.shape, self.strides, self.offset)

    # ------------------------------------------------------------------ facts

    @property
    def device(self) -> str:
        return self.storage.device

    @property
    def numel(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize

    @property
    def address(self) -> int:
        """Where the element at index 0, 0, … is."""
        return self.storage.address + self.offset * self.dtype.itemsize

    @property
    def readonly(self) -> bool:
        return self.storage.readonly

    @property
    def is_contiguous(self) -> bool:
        """Row-major without gaps; axes of size 1 may have any stride."""
        step = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size == 0:
                return True
            if size != 1 and stride != step:
                return False
            step *= size
        return True

    # ------------------------------------------------------------------ looking through it

    def memoryview(self) -> memoryview:
        """The elements, shared. A dtype without a PEP 3118 format comes as plain bytes."""
        if not self.is_contiguous:
            raise FormatError("a memoryview needs contiguous elements", hint="copy them first")
        start = self.offset * self.dtype.itemsize
        raw = self.storage.as_buffer()[start : start + self.nbytes]
        letter = self.dtype.format
        if letter is None:
            return raw
        if letter in CASTABLE and self.numel:
            return raw.cast(letter, self.shape)  # type: ignore[call-overload,no-any-return]
        exporter: Any = self.numpy()
        return memoryview(exporter)

    def tolist(self) -> Any:
        """The elements as a Python number or nested lists; NumPy is loaded only if it must be.

        >>> View.from_host(b"ab").tolist()
        [97, 98]
        """
        if self.dtype.format in CASTABLE and self.numel and self.is_contiguous:
            return self.memoryview().tolist()
        return self.numpy().tolist()

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
    """NumPy's dtype for ours; ml_dtypes provides the ones that NumPy lacks."""
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


def _reinterpret(foreign: Foreign, dtype: DType) -> Foreign:
    """The same bytes as items of another dtype; the last axis grows or shrinks."""
    shape, strides, item = foreign.shape, foreign.strides, foreign.dtype.itemsize
    if item == dtype.itemsize:
        return Foreign(foreign.address, dtype, shape, strides, foreign.readonly, foreign.owner)
    if not shape or strides[-1] != item or shape[-1] * item % dtype.itemsize:
        raise FormatError(
            f"{foreign.dtype.name} elements of shape {shape} cannot be read as {dtype.name}",
            hint="the last axis must be contiguous and its bytes a whole number of elements",
        )
    shape = (*shape[:-1], shape[-1] * item // dtype.itemsize)
    strides = (*strides[:-1], dtype.itemsize)
    return Foreign(foreign.address, dtype, shape, strides, foreign.readonly, foreign.owner)


def _over(foreign: Foreign, device: str) -> View:
    """A view of foreign memory, in a storage from its lowest to its highest byte."""
    dtype, item = foreign.dtype, foreign.dtype.itemsize
    if 0 in foreign.shape:
        return View.empty(device, foreign.shape, dtype)
    if any(stride % item for stride in foreign.strides):
        raise FormatError(
            f"strides {foreign.strides} are no multiples of {item} bytes",
            hint="copy the data first",
        )
    strides = tuple(stride // item for stride in foreign.strides)
    reaches = [(size - 1) * step for size, step in zip(foreign.shape, strides, strict=True)]
    before = -sum(min(reach, 0) for reach in reaches)
    size = before + sum(max(reach, 0) for reach in reaches) + 1
    options = BufferSpec(external_ptr=foreign.address - before * item)
    storage = Storage(device, size, dtype, options, foreign.owner, foreign.readonly)
    return View(storage, dtype, foreign.shape, strides, before)
