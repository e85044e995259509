"""Indexing: ints, slices, None and Ellipsis make views; integer and bool tensors gather."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple, Self, TypeVar

from glassgrad.base.dtype import dtypes
from glassgrad.base.errors import AxisError, DTypeError, ShapeError
from glassgrad.base.fast_dataclasses import field, mutable
from glassgrad.ir.ops import Ops
from glassgrad.ir.shape import Shape, Sizes
from glassgrad.memory.allocator import is_host
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.lazy.exclusive import exclusive
from glassgrad.tensor.record import axis_of, cast_to, expanded, record, whole_number
from glassgrad.tensor.symbolic_sizes import (
    checked_slice,
    index_at_launch,
    is_symbolic,
    slice_at_launch,
    with_concrete_sizes,
)

SHRINK, FLIP, WINDOW, RESHAPE = Ops.SHRINK, Ops.FLIP, Ops.WINDOW, Ops.RESHAPE
GATHER, CHECK = Ops.GATHER, Ops.CHECK
INDEX_DTYPES = dict.fromkeys((dtypes.int64, dtypes.uint64, dtypes.uint32), dtypes.int64)
Step = tuple[Ops, Any]
REORDERING = frozenset((Ops.RESHAPE, Ops.PERMUTE, Ops.EXPAND, Ops.FLIP, Ops.DETACH))
MAX_EAGERLY_CHECKED = 1 << 20  # indices; checking more now would take over a millisecond
T = TypeVar("T", bound=TensorCore)


class Lookup(NamedTuple):
    """An index tensor: its axis after the movement steps, and before them."""

    moved_axis: int
    tensor: TensorCore
    axis: int


@mutable
class IndexPlan:
    """What an index does: movement steps, then lookups by index tensors."""

    steps: list[Step] = field(default_factory=list)
    lookups: list[Lookup] = field(default_factory=list)
    is_separated: bool = False  # slices separate ints and index tensors


def plan_index(index: Any, shape: Shape) -> IndexPlan:
    """Parse an index as NumPy does."""
    parts = _one_part_per_axis(index if isinstance(index, tuple) else (index,), shape)
    pairs: list[tuple[int, int]] = []
    flips: list[int] = []
    strides: list[tuple[int, int]] = []
    kept: list[int] = []  # the shape without int axes and with new axes
    plan = IndexPlan(is_separated=_are_separated(parts))
    axis = 0
    for part in parts:
        if part is None:
            kept.append(1)
            continue
        size = shape[axis]
        if isinstance(part, slice):
            start, stop, step = _slice(part, size, axis)
            pairs.append((start, stop))
            flips += [axis] if step < 0 else []
            strides += [(axis, abs(step))] if abs(step) > 1 else []
            kept.append(-(-(stop - start) // abs(step)))
        elif isinstance(part, TensorCore):
            plan.lookups.append(Lookup(len(kept), part, axis))
            pairs.append((0, size))
            kept.append(size)
        else:
            at = _int_index(part, axis, size)
            pairs.append((at, at + 1))
        axis += 1
    _add_steps(plan, shape, tuple(pairs), tuple(flips), strides, tuple(kept))
    return plan


def _are_separated(parts: list[Any]) -> bool:
    """True if slices or Nones separate ints and index tensors; NumPy then puts the indexed axes
    first.
    """
    at = [i for i, part in enumerate(parts) if part is not None and not isinstance(part, slice)]
    return bool(at) and at[-1] - at[0] != len(at) - 1


def _add_steps(
    plan: IndexPlan,
    shape: Shape,
    pairs: tuple[tuple[int, int], ...],
    flips: tuple[int, ...],
    strides: list[tuple[int, int]],
    kept: Shape,
) -> None:
    """Add the movement steps: slice, flip, take every n-th element, drop and add axes."""
    if any(pair != (0, size) for pair, size in zip(pairs, shape, strict=True)):
        plan.steps.append((SHRINK, pairs))
    now = [stop - start for start, stop in pairs]
    if flips:
        plan.steps.append((FLIP, flips))
    for axis, step in strides:  # as windows of one element
        plan.steps.append((WINDOW, (axis, 1, step, 1)))
        now[axis] = -(-now[axis] // step)
        plan.steps.append((RESHAPE, tuple(now)))
    if tuple(now) != kept:
        plan.steps.append((RESHAPE, kept))


def _one_part_per_axis(parts: tuple[Any, ...], shape: Shape) -> list[Any]:
    """One part per axis, with the Ellipsis expanded."""
    used = sum(part is not None and part is not Ellipsis for part in parts)
    dots = sum(part is Ellipsis for part in parts)
    if used > len(shape):
        raise AxisError(f"{used} indices are too many for a tensor of shape {shape}")
    if dots > 1:
        raise AxisError("an index has at most one '...'")
    rest = [slice(None)] * (len(shape) - used)
    found: list[Any] = []
    for part in parts:
        found.extend(rest if part is Ellipsis else [part])
    return found if dots else found + rest


def _slice(part: slice, size: int, axis: int) -> tuple[int, int, int]:
    """(start, stop, step) with 0 <= start <= stop; a negative step flips."""
    if Sizes.exist and is_symbolic(part.start, part.stop, part.step, size):
        return slice_at_launch(part, size, axis)
    try:
        start, stop, step = part.indices(size)
    except (TypeError, ValueError) as error:
        text = str(error)
        hint = "a step is not 0" if "zero" in text else "bounds of a slice are whole numbers"
        raise AxisError(f"cannot slice by {part.start}:{part.stop}:{part.step}", hint) from None
    count = len(range(start, stop, step))
    if count == 0:
        return 0, 0, 1
    last = start + (count - 1) * step
    if step > 0:
        return start, last + 1, step
    return last, start + 1, step


def _int_index(part: Any, axis: int, size: int) -> int:
    if isinstance(part, bool) or not hasattr(part, "__index__"):
        raise AxisError(
            f"cannot index axis {axis} by {part!r}",
            hint="use ints, slices, None, ... or tensors of ints",
        )
    if Sizes.exist and is_symbolic(part, size):
        return index_at_launch(part, size, axis)
    at: int = part.__index__()
    if not -size <= at < size:
        raise AxisError(
            f"index {at} is out of range for axis {axis} of size {size}",
            hint=f"use {-size} to {size - 1}" if size else "the axis is empty",
        )
    return at + size if at < 0 else at


class Indexing(TensorCore):
    """x[...], gather, one_hot, len and iteration."""

    __slots__ = ()

    def __getitem__(self, indices: Any) -> Self:
        plan = plan_index(self._index_parts(indices), self.uop.shape)
        if Sizes.are_shown and any(is_symbolic(self.shape[at.axis]) for at in plan.lookups):
            x, known = with_concrete_sizes("indexing", (self, indices))
            return x[known]  # type: ignore[no-any-return]
        moved = self._apply_steps(plan.steps)
        return gather_indexed(moved, plan) if plan.lookups else moved

    @exclusive
    def _apply_steps(self, steps: list[Step]) -> Self:
        uop = self.uop
        for op, arg in steps:
            uop = record(op, uop.dtype, (uop,), arg)
        return self._as_view(uop, *steps)

    def _index_parts(self, indices: Any) -> tuple[Any, ...]:
        """Lists and arrays inside an index become tensors, masks become indices."""
        parts = [
            self._index_part(part) for part in (indices if type(indices) is tuple else (indices,))
        ]
        found: list[Any] = []
        for number, part in enumerate(parts):
            if isinstance(part, TensorCore) and part.dtype is dtypes.bool:
                axis = sum(map(_width, parts[:number]))
                if any(one is Ellipsis for one in parts[:number]):
                    axis = self.ndim - sum(map(_width, parts[number:]))
                found += self._mask_indices(part, axis)
            else:
                found.append(part)
        return tuple(found)

    def _index_part(self, part: Any) -> Any:
        if isinstance(part, list) or (_ndim(part) and not isinstance(part, TensorCore)):
            part = type(self)(part)
        if isinstance(part, TensorCore) and part.dtype is not dtypes.bool:
            check_index(part)
        return part

    def _mask_indices(self, mask: Any, axis: int) -> list[Any]:
        """The indices where a mask over some axes is True, one index tensor per axis."""
        covered = self.shape[axis : axis + mask.ndim]
        if not mask.ndim or mask.shape != covered:
            raise AxisError(
                f"a mask of shape {mask.shape} does not fit axes of shape {covered}",
                hint="a mask has the sizes of the axes that it chooses from",
            )
        rows = mask.nonzero()
        return [rows[:, column] for column in range(mask.ndim)]

    def gather(self, dim: int, index: Self) -> Self:
        """y[i][j] = x[index[i][j]][j] for dim 0, and so on: one element per element of index.

        >>> Tensor([[1, 2], [3, 4]]).gather(1, Tensor([[1], [0]])).shape
        (2, 1)
        """
        axis = axis_of(dim, self.ndim)
        check_index(index)
        if is_symbolic(self.shape[axis] if self.shape else 1):
            x, indices = with_concrete_sizes("gather", (self, index))
            return x.gather(axis, indices)  # type: ignore[no-any-return]
        if index.ndim != self.ndim:
            raise ShapeError(f"gather needs an index of {self.ndim} axes, not {index.shape}")
        pairs = []
        for number, (size, wanted) in enumerate(zip(self.shape, index.shape, strict=True)):
            if number != axis and is_symbolic(wanted, size):
                checked_slice(0, wanted, size, number)
            elif number != axis and wanted > size:
                raise ShapeError(
                    f"gather from {self.shape} by {index.shape}: axis {number} is too long",
                    hint="only the gathered axis may be longer",
                )
            pairs.append((0, size if number == axis else wanted))
        safe = checked_index(index, self.shape[axis], axis, can_wrap=False)
        return self._shrink(tuple(pairs))._gather_unchecked(axis, safe)

    def _gather_unchecked(self, dim: int, index: Self) -> Self:
        """gather for indices that are known to be valid; shapes are equal except at the axis."""
        src = (self.uop, index.uop)
        return self._wrap(record(GATHER, self.uop.dtype, src, axis_of(dim, self.ndim)))

    def one_hot(self, num_classes: int) -> Self:
        """1 at the index and 0 elsewhere, along a new last axis.

        >>> Tensor([2, 0]).one_hot(3).tolist()
        [[0, 0, 1], [1, 0, 0]]
        """
        check_index(self)
        classes = self._iota(whole_number(num_classes, "the number of classes", 1), self.uop.dtype)
        return self.unsqueeze(-1).eq(classes).cast(dtypes.default_int)

    def __len__(self) -> int:
        if not self.shape:
            raise ShapeError("a tensor without axes has no length")
        return int(self.shape[0])

    def __iter__(self) -> Any:
        if not self.shape:
            raise ShapeError("cannot iterate over a tensor without axes", hint="use item()")
        return (self[i] for i in range(self.shape[0]))


def _width(part: Any) -> int:
    """The number of axes that a part of an index covers."""
    if isinstance(part, TensorCore) and part.dtype is dtypes.bool:
        return part.ndim
    return 0 if part is None or part is Ellipsis else 1


def _ndim(value: Any) -> int:
    found: int = getattr(value, "ndim", 0)
    return found


def checked_index(index: T, size: int, axis: int, can_wrap: bool) -> T:
    """Indices from 0 to size-1; others raise an IndexError, now or when they are computed.

    With `can_wrap`, negative indices count from the end.
    """
    check_range(index, -size if can_wrap else 0, size, axis)
    uop = cast_to(index.uop, INDEX_DTYPES.get(index.dtype, dtypes.int32))
    if can_wrap and uop.vmin < 0:
        uop = (index._wrap(uop) < 0).where(index._wrap(uop) + size, index._wrap(uop)).uop
    if size and not (uop.vmin >= 0 and uop.vmax < size):
        uop = record(CHECK, uop.dtype, (uop,), (size, axis, can_wrap))
    return index._wrap(cast_to(uop, dtypes.int32) if size < 2**31 else uop)


def check_range(index: TensorCore, least: int, size: int, axis: int) -> None:
    """Raise an error for invalid indices, if their values are in host memory already."""
    if not size and index.numel():
        raise AxisError(f"cannot index axis {axis}, which is empty")
    uop = index.uop
    while uop.op in REORDERING:
        uop = uop.src[0]
    if uop.op is not Ops.BUFFER or not 0 < uop.arg.numel <= MAX_EAGERLY_CHECKED:
        return
    view = uop.arg
    if not is_host(view.device) or not view.storage.is_allocated():
        return
    values = view.numpy()
    low, high = int(values.min()), int(values.max())
    if least <= low and high < size:
        return
    bad = high if high >= size else low
    raise AxisError(
        f"index {bad} is out of range for axis {axis} of size {size}",
        hint=f"use {least} to {size - 1}" if size else "the axis is empty",
    )


def check_index(index: Any) -> None:
    if not isinstance(index, TensorCore):
        raise DTypeError(f"tensors index by tensors of ints, not by {index!r}")
    if index.dtype.kind not in ("int", "uint"):
        raise DTypeError(
            f"tensors index by ints, not by {index.dtype.name}",
            hint="use where() with a mask" if index.dtype is dtypes.bool else "cast it to int",
        )


def gather_indexed(x: T, plan: IndexPlan) -> T:
    """Elements at several index tensors, as one index into their flattened axes."""
    axes = [lookup.moved_axis for lookup in plan.lookups]
    chosen = _flat_index(x, plan.lookups)
    found = take_rows(_flattened_in_front(x, axes), chosen)
    return _axes_moved_to(found, chosen.ndim, 0 if plan.is_separated else axes[0])


def _flattened_in_front(x: T, axes: list[int]) -> T:
    """Some axes flattened to one and moved to the front."""
    rest = [axis for axis in range(x.ndim) if axis not in axes]
    return x.permute((*axes, *rest)).flatten(0, len(axes) - 1)


def scatter_indexed(x: Any, plan: IndexPlan, value: Any) -> Any:
    """x with a value written at the elements that its index tensors name."""
    axes = [lookup.moved_axis for lookup in plan.lookups]
    chosen = _flat_index(x, plan.lookups)
    front = _flattened_in_front(x, axes)
    first_axis, count = 0 if plan.is_separated else axes[0], chosen.ndim
    wide = value.permute(
        (
            *range(first_axis, first_axis + count),
            *range(first_axis),
            *range(first_axis + count, value.ndim),
        )
    )
    rows = wide.reshape((chosen.numel(), *front.shape[1:]))
    changed = front._with_rows(chosen.flatten(), rows)
    rest = [axis for axis in range(x.ndim) if axis not in axes]
    apart = changed.reshape((*[x.shape[axis] for axis in axes], *changed.shape[1:]))
    order = (*axes, *rest)
    return apart.permute(tuple(order.index(axis) for axis in range(x.ndim)))


def _flat_index(x: T, lookups: list[Lookup]) -> T:
    """The index tensors as one index into their flattened axes."""
    sizes: list[int] = [x.shape[dim] for dim, _, _ in lookups]
    found = [
        checked_index(x._wrap(tensor.uop), size, axis, can_wrap=True)
        for (_, tensor, axis), size in zip(lookups, sizes, strict=True)
    ]
    flat, *others = found[0]._broadcast(*found[1:])
    if prod(sizes) >= 2**31:
        flat = flat.cast(dtypes.int64)
    for index, size in zip(others, sizes[1:], strict=True):
        flat = flat * size + index
    return flat


def take_rows(x: T, index: T) -> T:
    """Rows of x (n, …) at an index (…): (index…, …)."""
    rest = x.shape[1:]
    count = prod(index.shape)
    column = index.reshape((count, *(1,) * len(rest)))
    spread = x._wrap(expanded(column.uop, (count, *rest)))
    found = x._wrap(record(GATHER, x.dtype, (x.uop, spread.uop), 0))
    return found.reshape((*index.shape, *rest))


def _axes_moved_to(x: T, count: int, first_axis: int) -> T:
    """The first `count` axes moved to begin at axis `first_axis`."""
    if not first_axis:
        return x
    order = [*range(count, count + first_axis), *range(count), *range(count + first_axis, x.ndim)]
    return x.permute(tuple(order))
