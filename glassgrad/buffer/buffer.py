"""Buffer: a strided window on a storage, with operations that are computed at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

from glassgrad.base.dtype import DTypeLike, dtypes, sum_dtype
from glassgrad.base.errors import DTypeError, ShapeError
from glassgrad.buffer import compute, literal
from glassgrad.buffer.arguments import (
    axes_of,
    axis_of,
    index_window,
    infer_shape,
    order_of,
    shape_of,
    whole_number,
)
from glassgrad.buffer.creation import Creation, dtype_from
from glassgrad.devices.registry import Device
from glassgrad.ir.ops import Ops
from glassgrad.memory.hub import register
from glassgrad.memory.layout import Ints, contiguous_strides
from glassgrad.memory.memory_view import MemoryView
from glassgrad.memory.storage import Storage
from glassgrad.memory.view import View
from glassgrad.memory.window import (
    Window,
    expanded,
    flipped,
    has_overlaps,
    permuted,
    reshaped,
    span,
)

if TYPE_CHECKING:
    import numpy

PythonView: TypeAlias = memoryview  # the class has a method of that name
ADD, MAX = Ops.ADD, Ops.MAX


class Buffer(Creation):
    """An array of numbers in memory that others may share.

    >>> b = Buffer([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> b[:, 1] = 0.0
    >>> (b + 1).sum(axes=(0,)).to_python()
    [7.0, 2.0, 11.0]
    """

    __slots__ = ()

    def __init__(
        self, data: Any, dtype: DTypeLike | None = None, device: str | None = None
    ) -> None:
        wanted = dtype_from(dtype)
        if isinstance(data, (list, tuple, bool, int, float)):
            shape, items = literal.parse_nested(data)
            found = literal.dtype_for(items, wanted)
            view = View.empty(Device.canonicalize(device), shape, found)
            view.storage.copyin(memoryview(literal.pack_numbers(items, found)))
            self._init_view(view)
            return
        seen = data if isinstance(data, Buffer) else Buffer.from_memory(data, device=device)
        value = compute.buffer_node(seen.view)
        copied = compute.copy(seen.view) if wanted in (None, seen.dtype) else None
        self._init_view(
            copied or compute.compute_value(compute.cast(value, wanted or seen.dtype), seen.device)
        )

    @staticmethod
    def concatenate(buffers: Sequence[Buffer], axis: int = 0) -> Buffer:
        """Buffers concatenated along an axis.

        >>> Buffer.concatenate([Buffer([1, 2]), Buffer([3])]).to_python()
        [1, 2, 3]
        """
        if not buffers:
            raise ShapeError("there is nothing to concatenate")
        first = buffers[0]
        dim = axis_of(axis, len(first.shape))
        for other in buffers:
            same = _without_axis(other.shape, dim) == _without_axis(first.shape, dim)
            if not same or len(other.shape) != len(first.shape) or other.dtype is not first.dtype:
                raise ShapeError(
                    f"cannot concatenate {first.dtype.name} {first.shape} and {other.dtype.name} "
                    f"{other.shape} along axis {dim}",
                    hint="dtypes and all other axes must be equal",
                )
        size = sum(other.shape[dim] for other in buffers)
        shape = (*first.shape[:dim], size, *first.shape[dim + 1 :])
        made = Buffer.empty(shape, first.dtype, first.device)
        at = 0
        for other in buffers:
            key = (*[slice(None)] * dim, slice(at, at + other.shape[dim]))
            made[key] = other
            at += other.shape[dim]
        return made

    # ------------------------------------------------------------------ facts

    @property
    def storage(self) -> Storage:
        return self.view.storage

    @property
    def stride(self) -> Ints:
        return self.view.strides

    @property
    def offset(self) -> int:
        return self.view.offset

    @property
    def device(self) -> str:
        return self.view.storage.device

    @property
    def ndim(self) -> int:
        return len(self.view.shape)

    @property
    def numel(self) -> int:
        return prod(self.view.shape)

    @property
    def data(self) -> PythonView:
        """The whole storage as a flat row of elements.

        >>> Buffer([[1, 2], [3, 4]])[1].data.tolist()
        [1, 2, 3, 4]
        """
        storage = self.storage
        return View(storage, self.dtype, (storage.size,), (1,)).memoryview()

    def is_contiguous(self) -> bool:
        return self.view.is_contiguous

    def _windowed(self, window: Window) -> Buffer:
        return Buffer._from_view(self.view.with_window(window))

    # ------------------------------------------------------------------ movement

    def reshape(self, *shape: Any) -> Buffer:
        """The elements in another shape: a view if strides can express it, else a copy.

        >>> Buffer.arange(6).reshape((2, -1)).to_python()
        [[0, 1, 2], [3, 4, 5]]
        """
        sizes = infer_shape(shape[0] if len(shape) == 1 else shape, self.numel)
        moved = reshaped(self.view.window, sizes)
        if moved is None:
            return Buffer._from_view(compute.copy(self.view).reshaped(sizes))
        return self._windowed(moved)

    def expand(self, *shape: Any) -> Buffer:
        """Axes of size 1 repeated without a copy.

        >>> Buffer([[1], [2]]).expand((2, 3)).to_python()
        [[1, 1, 1], [2, 2, 2]]
        """
        return self._windowed(
            expanded(self.view.window, shape_of(shape[0] if len(shape) == 1 else shape))
        )

    def permute(self, *order: Any) -> Buffer:
        """Axes in another order.

        >>> Buffer([[1, 2], [3, 4]]).permute((1, 0)).to_python()
        [[1, 3], [2, 4]]
        """
        axes = order[0] if len(order) == 1 and isinstance(order[0], (tuple, list)) else order
        return self._windowed(permuted(self.view.window, order_of(axes, self.ndim)))

    def flip(self, axes: Any = None) -> Buffer:
        """Axes reversed, all of them by default."""
        return self._windowed(flipped(self.view.window, axes_of(axes, self.ndim)))

    def as_strided(self, shape: Any, stride: Any, offset: int | None = None) -> Buffer:
        """Any window on the storage.

        >>> Buffer.arange(5).as_strided((3, 3), (1, 1)).to_python()
        [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
        """
        sizes = shape_of(shape)
        steps = tuple([whole_number(step, "a stride") for step in stride])
        if len(sizes) != len(steps):
            raise ShapeError(f"{len(steps)} strides were given for {len(sizes)} axes")
        start = self.offset if offset is None else whole_number(offset, "an offset")
        window = Window(sizes, steps, start)
        low, high = span(window)
        if 0 not in sizes and (low < 0 or high >= self.storage.size):
            raise ShapeError(
                f"elements {low} to {high} lie outside a storage of {self.storage.size} elements"
            )
        return self._windowed(window)

    def __getitem__(self, key: Any) -> Buffer:
        return self._windowed(index_window(self.view.window, key))

    def __setitem__(self, key: Any, value: Any) -> None:
        self._windowed(index_window(self.view.window, key))._write(value)

    def _write(self, value: Any) -> None:
        view, dtype = self.view, self.dtype
        if view.readonly:
            raise DTypeError("cannot write into read-only memory", hint="copy it with Buffer(...)")
        if isinstance(value, (bool, int, float)):
            if isinstance(value, float) and dtype.kind != "float":
                raise DTypeError(f"cannot write {value} into a buffer of {dtype.name}")
            compute.write(view, compute.number_buffer(value, dtype, self.device))
            return
        source = value if isinstance(value, Buffer) else Buffer(value, dtype)
        if source.dtype is not dtype:
            raise DTypeError(f"cannot write {source.dtype.name} into a buffer of {dtype.name}")
        if source.shape != view.shape:
            raise ShapeError(f"cannot write {source.shape} into a target of shape {view.shape}")
        if has_overlaps(self.view.window):
            raise ShapeError(
                f"elements of shape {view.shape} with strides {view.strides} share memory",
                hint="write into the buffer that was expanded",
            )
        read = source.view
        if compute.may_overlap(view, read):
            read = compute.copy(read)
        compute.write(view, compute.buffer_node(read))

    # ------------------------------------------------------------------ reductions and parts

    def sum(self, axes: Any = None, keepdims: bool = False) -> Buffer:
        """The sum over axes, which are removed.

        >>> Buffer([[1, 2], [3, 4]]).sum(axes=(0,)).to_python()
        [4, 6]
        """
        value = compute.cast(compute.buffer_node(self.view), sum_dtype(self.dtype))
        return self._reduced(ADD, value, axes, keepdims)

    def max(self, axes: Any = None, keepdims: bool = False) -> Buffer:
        """The maximum over axes, which are removed.

        >>> Buffer([[1, 2], [3, 4]]).max(axes=1).to_python()
        [2, 4]
        """
        gone = axes_of(axes, self.ndim)
        if any(self.shape[axis] == 0 for axis in gone):
            raise ShapeError(f"there is no maximum of no elements: the shape is {self.shape}")
        return self._reduced(MAX, compute.buffer_node(self.view), axes, keepdims)

    def _reduced(self, op: Ops, value: Any, axes: Any, keepdims: bool) -> Buffer:
        gone = axes_of(axes, self.ndim)
        result = compute.reduce_node(op, value, gone)
        if result is compute.buffer_node(self.view):
            made = compute.copy(self.view)
        else:
            made = compute.compute_value(result, self.device)
        if keepdims:
            kept = tuple([1 if axis in gone else n for axis, n in enumerate(self.shape)])
            made = View(made.storage, made.dtype, kept, contiguous_strides(kept), made.offset)
        return Buffer._from_view(made)

    def tril(self, diagonal: int = 0) -> Buffer:
        """The lower triangle of the last two axes; zeros above the diagonal.

        >>> Buffer([[1, 2], [3, 4]]).tril().to_python()
        [[1, 0], [3, 4]]
        """
        if self.ndim < 2:
            raise ShapeError(f"tril needs two axes, but the shape is {self.shape}")
        value = compute.lower_triangle(
            compute.buffer_node(self.view), whole_number(diagonal, "a diagonal")
        )
        return Buffer._from_view(compute.compute_value(value, self.device))

    def float(self) -> Buffer:
        """The values as float32."""
        if self.dtype is dtypes.float32:
            return self
        return Buffer._from_view(
            compute.compute_value(
                compute.cast(compute.buffer_node(self.view), dtypes.float32), self.device
            )
        )

    # ------------------------------------------------------------------ access to values

    def to_python(self) -> Any:
        """A number, or nested lists of numbers."""
        view = self.view
        if self.dtype.format is None:
            return self.float().to_python()
        if not self.numel:
            return _empty_lists(view.shape)
        return (view if view.is_contiguous else compute.copy(view)).tolist()

    def numpy(self) -> numpy.ndarray[Any, Any]:
        """A NumPy array that shares this memory."""
        return self.view.numpy()

    def memoryview(self) -> PythonView:
        """A memoryview of this memory, with its strides."""
        return self.view.memoryview()

    def __len__(self) -> int:
        if not self.shape:
            raise DTypeError("a single number has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Buffer]:
        return (self[number] for number in range(len(self)))

    def __float__(self) -> float:  # type: ignore[valid-type]
        return float(self._single("float"))

    def __int__(self) -> int:
        return int(self._single("int"))

    def __bool__(self) -> bool:
        return bool(self._single("bool"))

    def _single(self, what: str) -> Any:
        if self.numel != 1:
            raise ShapeError(f"{what}() needs exactly one element, but the shape is {self.shape}")
        return self.reshape(()).to_python()

    def __copy__(self) -> Buffer:
        return Buffer(self)

    def __repr__(self) -> str:
        return f"Buffer({_shown(self)}, shape={self.shape}, dtype={self.dtype.name})"

    # ------------------------------------------------------------------ to other libraries

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self.view.shared().__array_interface__

    def __buffer__(self, flags: int) -> PythonView:
        return self.view.shared().__buffer__(flags)

    def __dlpack__(self, **options: Any) -> Any:
        return self.view.shared().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.view.shared().__dlpack_device__()

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        return self.view.shared().__arrow_c_array__(requested_schema)


def _without_axis(shape: Ints, axis: int) -> Ints:
    return shape[:axis] + shape[axis + 1 :]


def _empty_lists(shape: Ints) -> Any:
    """Nested lists of a shape without elements."""
    return [_empty_lists(shape[1:]) for _ in range(shape[0])] if shape else None


EDGE_ITEMS, MAX_SHOWN_ITEMS = 3, 8  # items shown at each end of an axis longer than MAX_SHOWN_ITEMS


def _shown(buffer: Buffer) -> str:
    """The elements as nested lists, with dots in the middle of long axes."""
    if not buffer.shape:
        value = buffer.to_python()
        return f"{value:.6g}" if isinstance(value, float) else str(value)
    size = len(buffer)
    indices = (
        list(range(size))
        if size <= MAX_SHOWN_ITEMS
        else [*range(EDGE_ITEMS), -1, *range(size - EDGE_ITEMS, size)]
    )
    return "[" + ", ".join(["…" if i < 0 else _shown(buffer[i]) for i in indices]) + "]"


def _export(buffer: Buffer, flags: int) -> MemoryView:
    return buffer.view.shared()


register(Buffer, get=_export)
