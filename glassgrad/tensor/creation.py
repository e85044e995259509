"""Creation: tensors made of nothing but a shape: constants, ranges, and empty memory."""

from __future__ import annotations

from math import ceil
from typing import Any, Self, TypeVar

from glassgrad.base.dtype import ConstType, DTypeLike, dtypes
from glassgrad.base.errors import DTypeError, ShapeError
from glassgrad.ir.ops import Ops
from glassgrad.ir.shape import Shape
from glassgrad.ir.uop import UOp
from glassgrad.memory.view import View
from glassgrad.tensor.core import copied
from glassgrad.tensor.data import own
from glassgrad.tensor.place import canonical
from glassgrad.tensor.record import axis_of, dtype_of, expanded, record, scalar, sizes_of
from glassgrad.tensor.reduce import Reduce

T = TypeVar("T", bound=Reduce)


def checked_shape(shape: tuple[Any, ...]) -> Shape:
    sizes = sizes_of(shape)
    if any(size < 0 for size in sizes):
        raise ShapeError(f"a shape has no negative sizes: {sizes}")
    return sizes


class Creation(Reduce):
    """Class methods that make tensors, and the *_like methods."""

    __slots__ = ()

    @classmethod
    def empty(
        cls,
        *shape: Any,
        device: str | None = None,
        dtype: DTypeLike | None = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """Memory of its own. Nobody has written to it yet.

        >>> Tensor.empty(2, 3).shape
        (2, 3)
        """
        wanted = dtypes.default_float if dtype is None else dtype_of(dtype)
        view = View.empty(canonical(device), checked_shape(shape), wanted)
        return cls._of(UOp(Ops.BUFFER, wanted, (), view), requires_grad is not False)

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
        """One number everywhere.

        >>> Tensor.full((2, 3), 7).dtype
        dtypes.int
        """
        if not isinstance(fill_value, (int, float)):
            raise DTypeError(f"a tensor is filled with a number, not {fill_value!r}")
        wanted = dtypes.from_py(fill_value) if dtype is None else dtype_of(dtype)
        sizes = checked_shape(tuple(shape) if isinstance(shape, (tuple, list)) else (shape,))
        value = expanded(scalar(_rounded(fill_value, wanted), wanted), sizes)
        return cls._of(own(copied(value, canonical(device))), requires_grad is not False)

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
    def _line(cls, size: int, dtype: DTypeLike = dtypes.int32) -> Self:
        """0, 1, 2, … size-1"""
        return cls._of(record(Ops.IOTA, dtype_of(dtype), (), size))

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
        """start, start + step, … while it is below stop.

        >>> Tensor.arange(2, 10, 3).shape
        (3,)
        """
        first, last = (0, start) if stop is None else (start, stop)
        numbers = (first, last, step)
        if not all(isinstance(value, (int, float)) for value in numbers):
            raise DTypeError(f"arange takes numbers, not {numbers}")
        if step == 0:
            raise ShapeError("arange with step 0 never ends", hint="use a step that is not 0")
        is_float = any(isinstance(value, float) for value in numbers)
        kind = dtypes.default_float if is_float else dtypes.default_int
        wanted = kind if dtype is None else dtype_of(dtype)
        count = max(0, ceil((last - first) / step))
        line = cls._line(count).cast(kind)
        value = line if step == 1 else line * step
        value = value if first == 0 else value + first
        uop = own(copied(value.cast(wanted).uop, canonical(device)))
        return cls._of(uop, requires_grad is not False)

    @classmethod
    def linspace(
        cls, start: float, stop: float, steps: int, dtype: DTypeLike | None = None, **kwargs: Any
    ) -> Self:
        """Evenly spaced values from start to stop, both included.

        >>> Tensor.linspace(0, 1, 5).tolist()
        [0.0, 0.25, 0.5, 0.75, 1.0]
        """
        if steps < 0:
            raise ShapeError(f"linspace cannot have {steps} steps")
        wanted = dtypes.default_float if dtype is None else dtype_of(dtype)
        if steps == 1:
            return cls.full((1,), start, wanted, **kwargs)
        part = (stop - start) / max(steps - 1, 1)
        line = cls.arange(steps, dtype=dtypes.default_float, **kwargs)
        return cls._of((line * part + start).cast(wanted).uop, line.is_param)

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
        rows, columns = checked_shape((n, n if m is None else m))
        wanted = dtypes.default_float if dtype is None else dtype_of(dtype)
        if not rows or not columns:
            return cls.zeros(
                rows, columns, dtype=wanted, device=device, requires_grad=requires_grad
            )
        value = cls._line(rows).unsqueeze(1).eq(cls._line(columns)).cast(wanted)
        return cls._of(own(copied(value.uop, canonical(device))), requires_grad is not False)

    # ------------------------------------------------------------------ like another tensor

    def full_like(
        self,
        fill_value: ConstType,
        dtype: DTypeLike | None = None,
        device: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """One number, in this tensor's shape and dtype.

        >>> Tensor([1, 2]).full_like(7).tolist()
        [7, 7]
        """
        place = self.device if device is None else device
        return type(self).full(self.shape, fill_value, dtype or self.uop.dtype, place, **kwargs)

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
        """Memory of its own, in this tensor's shape and dtype.

        >>> Tensor([1, 2]).empty_like().shape
        (2,)
        """
        place = self.device if device is None else device
        return type(self).empty(self.shape, dtype=dtype or self.uop.dtype, device=place, **kwargs)

    # ------------------------------------------------------------------ padding and joining

    def pad(self, padding: Any, mode: str = "constant", value: ConstType = 0.0) -> Self:
        """More elements around: ((before, after), …) per axis, or flat and from the last axis on.

        >>> Tensor.ones(2, 3).pad((1, 1)).shape, Tensor.ones(2, 3).pad(((1, 0), None)).shape
        ((2, 5), (3, 3))
        """
        pairs = _pairs(padding, self.ndim)
        if mode != "constant":
            raise ValueError(f'pad mode {mode!r} is not there yet; use "constant"')
        moved = self._padded(pairs)
        if value == 0:
            return moved
        inside = self._made(expanded(scalar(True, dtypes.bool), self.shape))._padded(pairs)
        return inside.where(moved, value)

    def pad_to(self, *shape: Any, value: ConstType = 0) -> Self:
        """Padded at the end of each axis up to this shape; None keeps an axis.

        >>> Tensor([[1, 2]]).pad_to(2, 3).tolist()
        [[1, 2, 0], [0, 0, 0]]
        """
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        if len(sizes) != self.ndim:
            raise ShapeError(f"pad_to of {self.shape} needs {self.ndim} sizes, not {len(sizes)}")
        grown = [
            (0, (n if to is None else to) - n) for n, to in zip(self.shape, sizes, strict=True)
        ]
        return self.pad(tuple(grown), value=value)

    def cat(self, *args: Self, dim: int = 0) -> Self:
        """Several tensors one after the other along an axis.

        >>> Tensor([1, 2]).cat(Tensor([3])).tolist()
        [1, 2, 3]
        """
        tensors = [self, *args]
        axis = axis_of(dim, self.ndim)
        if self.ndim == 0:
            raise ShapeError("cannot join tensors that have no axes", hint="stack() makes one")
        for tensor in tensors:
            rest = [(a, b) for i, (a, b) in enumerate(zip(tensor.shape, self.shape)) if i != axis]
            if tensor.ndim != self.ndim or any(a != b for a, b in rest):
                raise ShapeError(
                    f"cannot join {self.shape} and {tensor.shape} along axis {axis}",
                    hint="all other axes must be equal",
                )
        return _joined(tensors, axis)

    def stack(self, *args: Self, dim: int = 0) -> Self:
        """Several tensors of one shape along a new axis.

        >>> Tensor([1, 2]).stack(Tensor([3, 4])).tolist()
        [[1, 2], [3, 4]]
        """
        for tensor in args:
            if tensor.shape != self.shape:
                raise ShapeError(
                    f"cannot stack {self.shape} and {tensor.shape}", hint="shapes must be equal"
                )
        axis = axis_of(dim, self.ndim + 1)
        return self.unsqueeze(axis).cat(*[tensor.unsqueeze(axis) for tensor in args], dim=axis)

    def tril(self, diagonal: int = 0) -> Self:
        """The lower triangle; zeros above the diagonal.

        >>> Tensor.ones(2, 2).tril().tolist()
        [[1.0, 0.0], [1.0, 1.0]]
        """
        return (self._below() <= diagonal).where(self, self.const_like(0))

    def triu(self, diagonal: int = 0) -> Self:
        """The upper triangle; zeros below the diagonal.

        >>> Tensor.ones(2, 2).triu().tolist()
        [[1.0, 1.0], [0.0, 1.0]]
        """
        return (self._below() >= diagonal).where(self, self.const_like(0))

    def _below(self) -> Self:
        """column - row of the last two axes."""
        if self.ndim < 2:
            raise ShapeError(f"a triangle needs two axes, but the shape is {self.shape}")
        rows, columns = self.shape[-2:]
        return self._line(columns) - self._line(rows).unsqueeze(1)


def _joined(tensors: list[T], axis: int) -> T:
    """Each padded with zeros to the whole, and added up."""
    sizes = [tensor.shape[axis] for tensor in tensors]
    whole, start = sum(sizes), 0
    parts = []
    is_bool = all(tensor.dtype is dtypes.bool for tensor in tensors)
    for tensor, size in zip(tensors, sizes, strict=True):
        pairs = [(0, 0)] * tensor.ndim
        pairs[axis] = (start, whole - start - size)
        parts.append(tensor._padded(tuple(pairs)))
        start += size
    total = parts[0]
    for part in parts[1:]:
        total = total | part if is_bool else total + part
    return total


def _pairs(padding: Any, ndim: int) -> tuple[tuple[int, int], ...]:
    """One (before, after) per axis."""
    if isinstance(padding, int):
        padding = (padding, padding)
    if all(isinstance(width, int) for width in padding):
        flat = list(padding)
        if len(flat) % 2 or len(flat) > 2 * ndim:
            raise ShapeError(
                f"padding {tuple(padding)} does not fit {ndim} axes",
                hint="give (before, after) for each axis, the last axis first",
            )
        found = [(flat[i], flat[i + 1]) for i in range(0, len(flat), 2)][::-1]
        return tuple([(0, 0)] * (ndim - len(found)) + found)
    if len(padding) != ndim:
        raise ShapeError(f"padding {padding} does not fit {ndim} axes")
    return tuple((0, 0) if pair is None else (int(pair[0]), int(pair[1])) for pair in padding)


def _rounded(value: ConstType, dtype: Any) -> ConstType:
    """Filling ints with 2.7 fills them with 2."""
    return int(value) if dtype.kind in ("int", "uint") else value
