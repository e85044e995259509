"""Movement: reshapes, permutations, slices and windows, all of them views."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Self, cast

from glassgrad.base.errors import AxisError, ShapeError
from glassgrad.ir.ops import Ops
from glassgrad.ir.shape import Shape, broadcast
from glassgrad.ir.symbolic import at_most, greatest, internal
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.lazy.exclusive import exclusive
from glassgrad.tensor.lazy.views import Steps
from glassgrad.tensor.record import (
    axes_of,
    axis_of,
    can_expand,
    expanded,
    missing_size,
    record,
    reshaped,
    shape_mismatch,
    sizes_of,
    whole_number,
)
from glassgrad.tensor.symbolic_sizes import (
    checked_slice,
    is_symbolic,
    require_concrete,
    with_concrete_sizes,
)

PERMUTE, FLIP, SHRINK, PAD, WINDOW = Ops.PERMUTE, Ops.FLIP, Ops.SHRINK, Ops.PAD, Ops.WINDOW
RESHAPE, EXPAND = Ops.RESHAPE, Ops.EXPAND
Pairs = tuple[tuple[int, int], ...]


class Movement(TensorCore):
    """reshape, permute, expand, flip, shrink, pad, split, repeat and others."""

    __slots__ = ()

    # ------------------------------------------------------------------ primitives

    @exclusive
    def reshape(self, *shape: Any) -> Self:
        """The elements in row-major order as another shape; one size may be -1.

        >>> Tensor.arange(6).reshape(2, -1).shape
        (2, 3)
        """
        if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
            shape = tuple(shape[0])
        kept = [self._size_of(i) if size is None else size for i, size in enumerate(shape)]
        wanted = self._infer_shape(internal(sizes_of((kept,))))
        return self._as_view(reshaped(self.uop, wanted), (RESHAPE, wanted))

    def _size_of(self, axis: int) -> int:
        if axis >= self.ndim:
            raise ShapeError(f"None keeps the size of axis {axis}, but the shape is {self.shape}")
        size: int = self.shape[axis]
        return size

    def _infer_shape(self, shape: Shape) -> Shape:
        """The shape with its -1 replaced."""
        total = prod(self.uop.shape)
        unknown = [axis for axis, size in enumerate(shape) if size == -1]
        if len(unknown) > 1 or any(size < -1 for size in shape):
            raise ShapeError(f"cannot reshape to {shape}", hint="at most one size may be -1")
        if unknown:
            size = missing_size(self.uop.shape, shape)
            filled = tuple(size if n == -1 else n for n in shape)
        else:
            filled = shape
        if prod(filled) != total:
            raise ShapeError(
                f"cannot reshape {self.shape} to {shape}: it has {total!r} elements, not "
                f"{prod(size for size in shape if size != -1)}{' times something' * len(unknown)}",
                hint="the number of elements must stay the same",
            )
        return filled

    def permute(self, *order: Any) -> Self:
        """Axis i of the result is axis order[i] of this tensor.

        >>> Tensor([[1, 2, 3]]).permute(1, 0).tolist()
        [[1], [2], [3]]
        """
        wanted = sizes_of(order, "order of axes")
        axes = tuple(axis_of(axis, self.ndim) for axis in wanted)
        if sorted(axes) != list(range(self.ndim)):
            raise AxisError(
                f"cannot permute {self.shape} by {wanted}", hint="name every axis exactly once"
            )
        return self._permute(axes)

    @exclusive
    def _permute(self, axes: tuple[int, ...]) -> Self:
        uop = self.uop
        if axes == tuple(range(len(axes))):
            return self._as_view(uop)
        return self._as_view(record(PERMUTE, uop.dtype, (uop,), axes), (PERMUTE, axes))

    @exclusive
    def expand(self, *shape: Any) -> Self:
        """Broadcast to a shape; -1 or None keeps a size; new axes come in front.

        >>> Tensor([[1], [2]]).expand(2, 3).tolist()
        [[1, 1, 1], [2, 2, 2]]
        """
        if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
            shape = tuple(shape[0])
        given = internal(sizes_of(([-1 if size is None else size for size in shape],)))
        lead = len(given) - self.ndim
        full = (1,) * lead + self.uop.shape
        wanted = tuple(
            full[axis] if size == -1 and axis < len(full) else size
            for axis, size in enumerate(given)
        )
        if lead < 0 or min(wanted, default=0) < 0 or not can_expand(self.uop.shape, wanted):
            raise ShapeError(
                f"cannot expand {self.shape} to {given}",
                hint="only axes of size 1 grow; new axes come in front",
            )
        if wanted == self.uop.shape:
            return self._as_view(self.uop)
        steps: Steps = ((RESHAPE, full),) if lead else ()
        if wanted != full:
            steps += ((EXPAND, wanted),)
        return self._as_view(expanded(self.uop, wanted), *steps)

    @exclusive
    def flip(self, axis: Any, *args: int) -> Self:
        """The elements along some axes in reverse order.

        >>> Tensor([[1, 2], [3, 4]]).flip(1).tolist()
        [[2, 1], [4, 3]]
        """
        axes = axes_of((axis, *args) if args else axis, self.ndim)
        if not axes:
            return self._as_view(self.uop)
        return self._as_view(record(FLIP, self.uop.dtype, (self.uop,), axes), (FLIP, axes))

    def shrink(self, arg: Sequence[tuple[int, int] | None]) -> Self:
        """A slice of every axis: (start, stop) or None.

        >>> Tensor([[1, 2], [3, 4]]).shrink((None, (1, 2))).tolist()
        [[2], [4]]
        """
        is_row = isinstance(arg, (tuple, list))
        if (
            not is_row
            or len(arg) != self.ndim
            or not all(pair is None or is_pair(pair) for pair in arg)
        ):
            raise ShapeError(
                f"shrink of {self.shape} needs {self.ndim} pairs (start, stop) or None, not {arg!r}"
            )
        pairs = tuple(
            (0, size)
            if pair is None
            else (whole_number(pair[0], "a start"), whole_number(pair[1], "a stop"))
            for pair, size in zip(arg, self.shape, strict=True)
        )
        for axis, ((start, stop), size) in enumerate(zip(pairs, self.shape, strict=True)):
            if is_symbolic(start, stop, size):
                checked_slice(start, stop, size, axis)
            elif not 0 <= start <= stop <= size:
                raise ShapeError(
                    f"cannot shrink axis {axis} of {self.shape} to {start}…{stop}",
                    hint=f"0 <= start <= stop <= {size}",
                )
        return self._shrink(pairs)

    @exclusive
    def _shrink(self, pairs: Pairs) -> Self:
        pairs = internal(pairs)
        if all(pair == (0, size) for pair, size in zip(pairs, self.uop.shape, strict=True)):
            return self._as_view(self.uop)
        return self._as_view(record(SHRINK, self.uop.dtype, (self.uop,), pairs), (SHRINK, pairs))

    def _pad_zeros(self, pairs: Pairs) -> Self:
        """Padded with zeros; negative widths cut off."""
        pairs = internal(pairs)
        shape = self.uop.shape
        box = tuple(
            (greatest(-before, 0), size - greatest(-after, 0))
            for size, (before, after) in zip(shape, pairs, strict=True)
        )
        if not all(at_most(start, stop) for start, stop in box):
            raise ShapeError(f"padding {pairs} takes away more than {self.shape} has")
        kept = self._shrink(box)
        around = tuple((greatest(before, 0), greatest(after, 0)) for before, after in pairs)
        if all(pair == (0, 0) for pair in around):
            return self._wrap(kept.uop)
        return self._wrap(record(PAD, self.uop.dtype, (kept.uop,), around))

    @exclusive
    def _window(self, axis: int, size: int, stride: int = 1, dilation: int = 1) -> Self:
        """Sliding windows along an axis; the index in the window is a new last axis."""
        arg = (
            axis,
            require_concrete(size, "windows"),
            require_concrete(stride, "windows"),
            require_concrete(dilation, "windows"),
        )
        return self._as_view(record(WINDOW, self.uop.dtype, (self.uop,), arg), (WINDOW, arg))

    # ------------------------------------------------------------------ derived from primitives

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Self:
        """Several axes merged into one.

        >>> Tensor([[1, 2], [3, 4]]).flatten().tolist()
        [1, 2, 3, 4]
        """
        first, last = axis_of(start_dim, self.ndim), axis_of(end_dim, self.ndim)
        if first > last:
            raise AxisError(f"cannot flatten axes {first} to {last}", hint="start comes first")
        shape = self.shape
        return self.reshape(*shape[:first], prod(shape[first : last + 1]), *shape[last + 1 :])

    def unflatten(self, dim: int, sizes: tuple[int, ...]) -> Self:
        """One axis split into several.

        >>> Tensor.arange(6).unflatten(0, (2, 3)).tolist()
        [[0, 1, 2], [3, 4, 5]]
        """
        axis = axis_of(dim, self.ndim)
        return self.reshape(*self.shape[:axis], *sizes_of((sizes,)), *self.shape[axis + 1 :])

    @exclusive
    def squeeze(self, dim: int | None = None) -> Self:
        """All axes of size 1 removed, or one of them.

        >>> Tensor.ones(1, 3, 1).squeeze().shape
        (3,)
        """
        if dim is None:
            return self.reshape(tuple(size for size in self.shape if size != 1))
        axis = axis_of(dim, self.ndim)
        if not self.shape or self.shape[axis] != 1:
            return self._as_view(self.uop)
        return self.reshape(self.shape[:axis] + self.shape[axis + 1 :])

    @exclusive
    def unsqueeze(self, dim: int) -> Self:
        """A new axis of size 1.

        >>> Tensor([1, 2]).unsqueeze(1).tolist()
        [[1], [2]]
        """
        shape = self.uop.shape
        axis = axis_of(dim, len(shape) + 1)
        wide = (*shape[:axis], 1, *shape[axis:])
        return self._as_view(reshaped(self.uop, wide), (RESHAPE, wide))

    def transpose(self, dim0: int = 1, dim1: int = 0) -> Self:
        """Two axes swapped.

        >>> Tensor.ones(2, 3, 4).transpose(0, 2).shape
        (4, 3, 2)
        """
        first, second = axis_of(dim0, self.ndim), axis_of(dim1, self.ndim)
        order = list(range(self.ndim))
        if order:
            order[first], order[second] = second, first
        return self._permute(tuple(order))

    @property
    def T(self) -> Self:  # noqa: N802  the name that everybody uses
        """The two axes of a matrix swapped.

        >>> Tensor([[1, 2], [3, 4]]).T.tolist()
        [[1, 3], [2, 4]]
        """
        return self.transpose()

    def split(self, sizes: int | Sequence[int], dim: int = 0) -> tuple[Self, ...]:
        """Parts of one size, the last one perhaps smaller, or parts of the given sizes.

        >>> [part.tolist() for part in Tensor.arange(5).split(2)]
        [[0, 1], [2, 3], [4]]
        """
        axis, total = self._axis_to_cut(dim)
        if isinstance(sizes, (tuple, list)):
            sizes = [whole_number(size, "the size of a part") for size in sizes]
        else:
            if is_symbolic(total, sizes):
                return with_concrete_sizes("split", self).split(int(cast(Any, sizes)), axis)  # type: ignore[no-any-return]
            step = whole_number(sizes, "the size of the parts", least=1)
            sizes = [min(step, total - start) for start in range(0, max(total, 1), step)]
        if sum(sizes) != total:
            raise ShapeError(f"sizes {tuple(sizes)} do not add up to {total} on axis {axis}")
        parts, start = [], 0
        for size in sizes:
            pairs = [(0, n) for n in self.shape]
            pairs[axis] = (start, start + size)
            parts.append(self._shrink(tuple(pairs)))
            start += size
        return tuple(parts)

    def _axis_to_cut(self, dim: int) -> tuple[int, int]:
        """A valid axis and its size."""
        axis = axis_of(dim, self.ndim)
        if not self.shape:
            raise AxisError("a single number has no axis to cut", hint="unsqueeze() it first")
        return axis, self.shape[axis]

    def chunk(self, chunks: int, dim: int = 0) -> list[Self]:
        """At most this many parts of about equal size.

        >>> [part.tolist() for part in Tensor.arange(5).chunk(2)]
        [[0, 1, 2], [3, 4]]
        """
        count = whole_number(chunks, "the number of chunks", least=1)
        size = self._axis_to_cut(dim)[1]
        if is_symbolic(size, count):
            return with_concrete_sizes("chunk", self).chunk(int(count), dim)  # type: ignore[no-any-return]
        return list(self.split(-(-size // count) or 1, dim))

    def repeat(self, repeats: Any, *args: int) -> Self:
        """The whole tensor repeated along each axis.

        >>> Tensor([1, 2]).repeat(2, 2).tolist()
        [[1, 2, 1, 2], [1, 2, 1, 2]]
        """
        times = internal(sizes_of((repeats, *args), "number of repeats"))
        if not all(at_most(0, number) for number in times):
            raise ShapeError(f"cannot repeat {self.shape} {times} times")
        if len(times) < self.ndim:
            raise ShapeError(f"repeat of {self.shape} needs at least {self.ndim} numbers")
        base = (1,) * (len(times) - self.ndim) + self.uop.shape
        if any(is_symbolic(n) and t != 1 for t, n in zip(times, base, strict=True)):
            return with_concrete_sizes("repeat", self).repeat(times)  # type: ignore[no-any-return]
        split = tuple(size for n in base for size in (1, n))
        repeated = tuple(size for t, n in zip(times, base, strict=True) for size in (t, n))
        joined = tuple(t * n for t, n in zip(times, base, strict=True))
        return self._wrap(self.reshape(split).expand(repeated).reshape(joined).uop)

    def repeat_interleave(self, repeats: int, dim: int | None = None) -> Self:
        """Each element repeated next to itself.

        >>> Tensor([1, 2]).repeat_interleave(2).tolist()
        [1, 1, 2, 2]
        """
        repeats = whole_number(repeats, "the number of repeats")
        base = self.flatten() if dim is None else self
        axis = 0 if dim is None else axis_of(dim, self.ndim)
        shape = base.shape
        wide = (*shape[: axis + 1], repeats, *shape[axis + 1 :])
        apart = base.reshape((*shape[: axis + 1], 1, *shape[axis + 1 :])).expand(wide)
        repeated = apart.reshape((*shape[:axis], shape[axis] * repeats, *shape[axis + 1 :]))
        return self._wrap(repeated.uop)

    def unfold(self, dim: int, size: int, step: int) -> Self:
        """Sliding windows along an axis, as a new last axis.

        >>> Tensor.arange(5).unfold(0, 3, 2).tolist()
        [[0, 1, 2], [2, 3, 4]]
        """
        axis, total = self._axis_to_cut(dim)
        size, step = (
            whole_number(size, "the size of windows"),
            whole_number(step, "the step of windows"),
        )
        if is_symbolic(total):
            checked_slice(0, require_concrete(size, "a window"), total, axis)
        elif not 0 < size <= total or step < 1:
            raise ShapeError(f"cannot unfold windows of {size} every {step} from {total} elements")
        return self._window(axis, size, step)

    def shrink_to(self, *shape: Any) -> Self:
        """The leading slice of this shape; None keeps an axis.

        >>> Tensor([[1, 2], [3, 4]]).shrink_to(1, None).tolist()
        [[1, 2]]
        """
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        return self.shrink([None if size is None else (0, size) for size in sizes])

    def _broadcast(self, *others: TensorCore) -> tuple[Self, ...]:
        """This tensor and others broadcast to a common shape."""
        tensors = [self, *(self._as_tensor(other, "what is combined") for other in others)]
        shapes = [tensor.uop.shape for tensor in tensors]
        try:
            wide = broadcast(*shapes)
        except ValueError:
            raise shape_mismatch("combine", *shapes) from None
        return tuple(self._wrap(expanded(tensor.uop, wide)) for tensor in tensors)


def is_pair(pair: Any) -> bool:
    """True for two integers."""
    is_two = isinstance(pair, (tuple, list)) and len(pair) == 2
    return is_two and all(hasattr(number, "__index__") for number in pair)
