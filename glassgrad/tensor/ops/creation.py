"""Tensors from a shape alone: constants, ranges and uninitialized memory."""

from __future__ import annotations

from math import ceil, isfinite
from typing import Any, Self

from glassgrad.base.dtype import ConstType, DType, DTypeLike, dtypes
from glassgrad.base.errors import DTypeError, ShapeError
from glassgrad.ir.ops import Ops
from glassgrad.ir.shape import Shape
from glassgrad.ir.symbolic import SymbolicInt, greatest, internal, shown_size
from glassgrad.ir.uop import UOp
from glassgrad.memory.storage import UNDEFINED
from glassgrad.memory.view import View
from glassgrad.tensor.core import TensorCore, copy_to_device
from glassgrad.tensor.data import unique_node
from glassgrad.tensor.device_names import canonical_device
from glassgrad.tensor.record import (
    SCALARS,
    dtype_of,
    expanded,
    number_dtype,
    record,
    scalar,
    sizes_of,
    whole_number,
)
from glassgrad.tensor.symbolic_sizes import is_symbolic, require_concrete, with_concrete_arguments


def checked_shape(shape: tuple[Any, ...]) -> Shape:
    sizes = sizes_of(shape)
    if any(_value_range(shown_size(size))[0] < 0 for size in sizes):
        raise ShapeError(f"a shape has no negative sizes: {sizes}")
    return sizes


def range_dtype(*numbers: float) -> DType:
    """The integer dtype for a range: int32, or the 64-bit dtype that holds all its values."""
    low, high = min(numbers), max(numbers)
    for dtype in (dtypes.int32, dtypes.int64):
        if dtypes.min(dtype) <= low and high <= dtypes.max(dtype):
            return dtype
    return dtypes.uint64


def _exact_float(count: int, first: float, step: float) -> DType:
    """float32 if it holds every first + i·step exactly, else float64."""
    largest = max(abs(first), abs(first + step * count))
    is_exact = float(first).is_integer() and float(step).is_integer() and largest <= 1 << 24
    return dtypes.float32 if is_exact else dtypes.float64


class Creation(TensorCore):
    """empty, full, arange, linspace, eye, the *_like methods and triangles."""

    __slots__ = ()

    @classmethod
    @with_concrete_arguments
    def empty(
        cls,
        *shape: Any,
        device: str | None = None,
        dtype: DTypeLike | None = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """Uninitialized memory.

        >>> Tensor.empty(2, 3).shape
        (2, 3)
        """
        wanted = dtypes.default_float if dtype is None else dtype_of(dtype)
        view = View.empty(canonical_device(device), checked_shape(shape), wanted, UNDEFINED)
        return cls._leaf(UOp(Ops.BUFFER, wanted, (), view), requires_grad)

    @classmethod
    def _constant_leaf(cls, value: UOp, device: str | None, requires_grad: bool | None) -> Self:
        """A value without memory on a device, as a leaf that no other tensor shares."""
        uop = unique_node(copy_to_device(value, canonical_device(device)))
        return cls._leaf(uop, requires_grad)

    @classmethod
    def full(
        cls,
        shape: Any,
        fill_value: ConstType,
        dtype: DTypeLike | None = None,
        device: str | None = None,
        requires_grad: bool | None = None,
        buffer: bool = True,  # noqa: ARG003  scripts pass it; here constants need no memory
    ) -> Self:
        """A tensor filled with one number.

        >>> Tensor.full((2, 3), 7).dtype
        dtypes.int
        """
        if not isinstance(fill_value, SCALARS):
            raise DTypeError(f"a tensor is filled with a number, not {fill_value!r}")
        wanted = number_dtype(fill_value) if dtype is None else dtype_of(dtype)
        sizes = checked_shape(tuple(shape) if isinstance(shape, (tuple, list)) else (shape,))
        value = expanded(scalar(_rounded(fill_value, wanted), wanted), sizes)
        return cls._constant_leaf(value, device, requires_grad)

    @classmethod
    def zeros(cls, *shape: Any, dtype: DTypeLike | None = None, **kwargs: Any) -> Self:
        """Zeros, of the default float if no dtype is given.

        >>> Tensor.zeros(2, 2).tolist()
        [[0.0, 0.0], [0.0, 0.0]]
        """
        wanted = dtypes.default_float if dtype is None else dtype
        return cls.full(checked_shape(shape), 0, wanted, **kwargs)

    @classmethod
    def ones(cls, *shape: Any, dtype: DTypeLike | None = None, **kwargs: Any) -> Self:
        """Ones, of the default float if no dtype is given.

        >>> Tensor.ones(3, dtype=dtypes.int8).tolist()
        [1, 1, 1]
        """
        wanted = dtypes.default_float if dtype is None else dtype
        return cls.full(checked_shape(shape), 1, wanted, **kwargs)

    @classmethod
    def _iota(cls, size: int, dtype: DTypeLike | None = None) -> Self:
        """0, 1, … size-1 as int32, or int64 if necessary."""
        wanted = (
            range_dtype(0, *_value_range(shown_size(internal(size) - 1)))
            if dtype is None
            else dtype_of(dtype)
        )
        return cls._from_uop(record(Ops.IOTA, wanted, (), size))

    @classmethod
    def arange(
        cls,
        start: float,
        stop: float | None = None,
        step: float = 1,
        dtype: DTypeLike | None = None,
        device: str | None = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """start, start + step, … up to but not including stop.

        >>> Tensor.arange(2, 10, 3).shape
        (3,)
        """
        first, last = (0, start) if stop is None else (start, stop)
        numbers = (first, last, step)
        if is_symbolic(*numbers):
            steps = cls._steps_at_launch(numbers, dtype)
            return cls._constant_leaf(steps.uop, device, requires_grad)
        if not all(isinstance(value, (int, float)) for value in numbers):
            raise DTypeError(f"arange takes numbers, not {numbers}")
        if not all(map(isfinite, numbers)):
            raise ShapeError(f"arange from {first} to {last} by {step} has no end")
        if step == 0:
            raise ShapeError("arange with step 0 never ends", hint="use a step that is not 0")
        if any(isinstance(value, float) for value in numbers):
            count = max(0, ceil((last - first) / step))
            kind = _exact_float(count, first, step)
            wanted = dtypes.default_float if dtype is None else dtype_of(dtype)
        else:
            count = max(0, -int((first - last) // step))
            kind = range_dtype(0, first, first + step * max(0, count - 1), step, count)
            default = dtypes.default_int if kind is dtypes.int32 else kind
            wanted = default if dtype is None else dtype_of(dtype)
        line = cls._iota(count).cast(kind)
        value = line if step == 1 else line * step
        value = value if first == 0 else value + first
        return cls._constant_leaf(value.cast(wanted).uop, device, requires_grad)

    @classmethod
    def _steps_at_launch(cls, numbers: tuple[Any, Any, Any], dtype: DTypeLike | None) -> Self:
        """arange with bounds that are known only at launch."""
        first, last, step = numbers
        if not all(isinstance(number, (int, SymbolicInt)) for number in numbers):
            raise DTypeError(f"arange takes whole numbers beside a SymbolicInt, not {numbers}")
        if require_concrete(step, "how many numbers there are") == 0:
            raise ShapeError("arange with step 0 never ends", hint="use a step that is not 0")
        count = shown_size(greatest(internal(-((first - last) // step)), 0))
        if isinstance(count, int) and count == 0:
            return cls.zeros(0, dtype=dtype or dtypes.default_int)
        ends = [end for n in (first, first + step * count) for end in _value_range(n)]
        kind = range_dtype(0, *ends, step, *_value_range(count))
        default = dtypes.default_int if kind is dtypes.int32 else kind
        line = cls._iota(count).cast(kind)
        value = line if step == 1 else line * step
        value = value + first if is_symbolic(first) or first else value
        return value.cast(default if dtype is None else dtype_of(dtype))

    @classmethod
    def linspace(
        cls, start: float, stop: float, steps: int, dtype: DTypeLike | None = None, **kwargs: Any
    ) -> Self:
        """Evenly spaced values from start to stop, both included.

        >>> Tensor.linspace(0, 1, 5).tolist()
        [0.0, 0.25, 0.5, 0.75, 1.0]
        """
        steps = whole_number(steps, "the number of steps")
        wanted = dtypes.default_float if dtype is None else dtype_of(dtype)
        if is_symbolic(start, stop, steps):
            line = cls.arange(steps, dtype=dtypes.float64, **kwargs)
            begin, end, gaps = (
                cls._from_uop(scalar(n, dtypes.float64)) for n in (start, stop, steps - 1)
            )
            value = line * ((end - begin) / gaps.maximum(1)) + begin
            return cls._leaf(value.cast(wanted).uop, line._requires_grad)
        if steps == 1:
            return cls.full((1,), start, wanted, **kwargs)
        part = (stop - start) / max(steps - 1, 1)
        line = cls.arange(steps, dtype=_exact_float(steps, start, part), **kwargs)
        return cls._leaf((line * part + start).cast(wanted).uop, line._requires_grad)

    @classmethod
    def eye(
        cls,
        n: int,
        m: int | None = None,
        dtype: DTypeLike | None = None,
        device: str | None = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """Ones on the diagonal.

        >>> Tensor.eye(2).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        rows, columns = internal(checked_shape((n, n if m is None else m)))
        wanted = dtypes.default_float if dtype is None else dtype_of(dtype)
        if not rows or not columns:
            return cls.zeros(
                rows, columns, dtype=wanted, device=device, requires_grad=requires_grad
            )
        value = cls._iota(rows).unsqueeze(1).eq(cls._iota(columns)).cast(wanted)
        return cls._constant_leaf(value.uop, device, requires_grad)

    # ------------------------------------------------------------------ like another tensor

    def full_like(
        self,
        fill_value: ConstType,
        dtype: DTypeLike | None = None,
        device: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """One number in this tensor's shape and dtype.

        >>> Tensor([1, 2]).full_like(7).tolist()
        [7, 7]
        """
        device_name = self.device if device is None else device
        return type(self).full(
            self.shape, fill_value, dtype or self.uop.dtype, device_name, **kwargs
        )

    def zeros_like(self, **kwargs: Any) -> Self:
        """Zeros, in this tensor's shape and dtype.

        >>> Tensor([1, 2]).zeros_like().tolist()
        [0, 0]
        """
        return self.full_like(0, **kwargs)

    def ones_like(self, **kwargs: Any) -> Self:
        """Ones, in this tensor's shape and dtype.

        >>> Tensor([1, 2]).ones_like().tolist()
        [1, 1]
        """
        return self.full_like(1, **kwargs)

    def empty_like(
        self, dtype: DTypeLike | None = None, device: str | None = None, **kwargs: Any
    ) -> Self:
        """Uninitialized memory in this tensor's shape and dtype.

        >>> Tensor([1, 2]).empty_like().shape
        (2,)
        """
        device_name = self.device if device is None else device
        return type(self).empty(
            self.shape, dtype=dtype or self.uop.dtype, device=device_name, **kwargs
        )

    # ------------------------------------------------------------------ triangles

    def tril(self, diagonal: int = 0) -> Self:
        """The lower triangle; zeros above the diagonal.

        >>> Tensor.ones(2, 2).tril().tolist()
        [[1.0, 0.0], [1.0, 1.0]]
        """
        return self._wrap(
            (self._column_minus_row() <= diagonal).where(self, self.const_like(0)).uop
        )

    def triu(self, diagonal: int = 0) -> Self:
        """The upper triangle; zeros below the diagonal.

        >>> Tensor.ones(2, 2).triu().tolist()
        [[1.0, 1.0], [0.0, 1.0]]
        """
        return self._wrap(
            (self._column_minus_row() >= diagonal).where(self, self.const_like(0)).uop
        )

    def _column_minus_row(self) -> Self:
        """column - row of the last two axes."""
        if self.ndim < 2:
            raise ShapeError(f"a triangle needs two axes, but the shape is {self.shape}")
        rows, columns = self.shape[-2:]
        return self._iota(columns) - self._iota(rows).unsqueeze(1)


def _value_range(number: Any) -> tuple[int, int]:
    """The smallest and the largest value of a number that may be symbolic."""
    return (number.vmin, number.vmax) if isinstance(number, SymbolicInt) else (number, number)


def _rounded(value: ConstType, dtype: Any) -> ConstType:
    """A fill value for a dtype: ints are filled with 2 for 2.7."""
    if isinstance(value, SymbolicInt):
        return value
    return int(value) if dtype.kind in ("int", "uint") else value
