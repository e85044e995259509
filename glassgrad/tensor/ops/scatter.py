"""Scatter and selection: writes to indices, and elements selected by masks."""

from __future__ import annotations

from typing import Any, Self, TypeVar

from glassgrad.base.dtype import ConstType, dtypes
from glassgrad.base.errors import ShapeError
from glassgrad.ir.facts import identity
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.ops.indexing import check_index, checked_index, take_rows
from glassgrad.tensor.record import BOOL, axis_of, record
from glassgrad.tensor.symbolic_sizes import with_concrete_arguments

ADD, MUL, MAX, MIN = Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN
REDUCTIONS = {"sum": ADD, "mean": ADD, "prod": MUL, "amax": MAX, "amin": MIN}
T = TypeVar("T", bound=TensorCore)


class Scatter(TensorCore):
    """scatter, scatter_reduce, nonzero and masked_select."""

    __slots__ = ()

    @with_concrete_arguments
    def scatter(self, dim: int, index: Self, src: Any, reduce: str | None = None) -> Self:
        """A copy with y[index[i][j]][j] = src[i][j] for dim 0, and so on; the last of several
        writes stays.

        `reduce` "add" or "multiply" combines with the present value instead.

        >>> Tensor([0, 0, 0]).scatter(0, Tensor([2, 0]), Tensor([5, 6])).tolist()
        [6, 0, 5]
        """
        if reduce not in (None, "add", "multiply"):
            raise ValueError(f'reduce is None, "add" or "multiply", not {reduce!r}')
        source = _source(self, index, src)
        if reduce is not None:
            return self.scatter_reduce(dim, index, source, "sum" if reduce == "add" else "prod")
        axis = axis_of(dim, self.ndim)
        indices, values = _lines(self, axis, index, source)
        if not index.numel():
            return self.contiguous()
        cut = [
            whole if number == axis else n
            for number, (whole, n) in enumerate(zip(self.shape, index.shape, strict=True))
        ]
        own = self.shrink_to(tuple(cut))
        found = _written(own, indices, values, axis)
        if own.shape == self.shape:
            return found
        is_there = self._wrap(found.full_like(True, dtype=BOOL).uop).pad_to(self.shape)
        return is_there.where(found.pad_to(self.shape), self)

    @with_concrete_arguments
    def scatter_reduce(
        self, dim: int, index: Self, src: Self, reduce: str, include_self: bool = True
    ) -> Self:
        """Elements of src combined at their indices: sum, prod, mean, amax or amin.

        >>> x, indices = Tensor([1.0, 1.0]), Tensor([0, 0, 0])
        >>> x.scatter_reduce(0, indices, Tensor([2.0, 3.0, 4.0]), "sum").tolist()
        [10.0, 1.0]
        """
        if reduce not in REDUCTIONS:
            raise ValueError(f"reduce is one of {', '.join(REDUCTIONS)}, not {reduce!r}")
        if self.is_floating_point() and self.uop.dtype.bits < 32:  # round once
            wide = self.cast(dtypes.float32)
            source = _source(self, index, src).cast(dtypes.float32)
            return wide.scatter_reduce(dim, index, source, reduce, include_self).cast(self.dtype)
        axis = axis_of(dim, self.ndim)
        op = REDUCTIONS[reduce]
        indices, values = _lines(self, axis, index, _source(self, index, src))
        size, start = int(self.shape[axis]), identity(op, self.dtype)
        total = _restore_axis(_combined(indices, values, size, op), self, axis, start)
        ones = indices.full_like(1, dtype=dtypes.int32)
        count = _restore_axis(_combined(indices, self._wrap(ones.uop), size, ADD), self, axis)
        own = self if include_self else (count > 0).where(self.const_like(start), self)
        result = own._binary(op, total, "combine")
        if reduce != "mean":
            return result
        parts = (count + int(include_self)).maximum(1)
        return result / parts if self.is_floating_point() else result // parts.cast(self.dtype)

    @with_concrete_arguments
    def _with_rows(self, indices: Self, rows: Self) -> Self:
        """This tensor (n, …) with rows (k, …) written to indices (k); the last of several writes
        stays.
        """
        last = _last_writers(indices, int(self.shape[0]))
        found = take_rows(rows, (last - 1).maximum(0))
        is_new = (last > 0).reshape((-1, *(1,) * (self.ndim - 1)))
        return is_new.where(found, self)

    # ------------------------------------------------------------------ selection

    @with_concrete_arguments
    def nonzero(self, size: int | None = None, fill_value: ConstType = 0) -> Self:
        """The indices of nonzero elements, one row each.

        Their number is computed now, unless `size` gives the number of rows.

        >>> Tensor([[0, 5], [7, 0]]).nonzero().tolist()
        [[0, 1], [1, 0]]
        """
        indices, is_there = _true_indices(self.ne(0), size)
        columns = []
        stride = self.numel()
        for width in self.shape:
            stride = stride // width if width else 0
            columns.append(indices // max(stride, 1) % max(width, 1))
        if not columns:
            return indices.unsqueeze(-1)[:, :0]
        rows = columns[0].stack(*columns[1:], dim=-1)
        return is_there.unsqueeze(-1).where(rows, rows.const_like(int(fill_value)))

    @with_concrete_arguments
    def masked_select(self, mask: Self, size: int | None = None, fill_value: ConstType = 0) -> Self:
        """The elements where a mask is True, as a vector.

        Their number is computed now, unless `size` gives it.

        >>> Tensor([1, 2, 3]).masked_select(Tensor([True, False, True])).tolist()
        [1, 3]
        """
        x, condition = self._broadcast(mask)
        indices, is_there = _true_indices(condition.cast(BOOL), size)
        # A fill of 0 must not widen bools
        fill = bool(fill_value) if x.dtype is BOOL else fill_value
        if not x.numel():
            return x.flatten().pad_to(indices.shape, value=fill)
        return is_there.where(take_rows(x.flatten(), indices), fill)


def _source(x: T, index: T, src: Any) -> T:
    if isinstance(src, (int, float)):
        return x._wrap(index.full_like(src, dtype=x.dtype).uop)
    source = x._wrap(x._operand(src, "scatter"))
    if source.dtype is not x.dtype:
        source = source.cast(x.dtype)
    return source


def _lines(x: T, axis: int, index: T, src: T) -> tuple[T, T]:
    """Index and source in one shape, with the axis last."""
    check_index(index)
    if not x.ndim == index.ndim == src.ndim or not x.ndim:
        raise ShapeError(
            f"scatter into {x.shape} by {index.shape} from {src.shape}",
            hint="all three have the same number of axes, at least 1",
        )
    for number, (whole, wanted, given) in enumerate(
        zip(x.shape, index.shape, src.shape, strict=True)
    ):
        if wanted > given or (number != axis and wanted > whole):
            raise ShapeError(
                f"scatter into {x.shape} by {index.shape} from {src.shape}: axis {number} of the "
                "index is too long",
                hint="an index is no longer than the source, nor than the target but on its axis",
            )
    index = checked_index(index, int(x.shape[axis]), axis, can_wrap=False)
    values = src.shrink_to(index.shape).transpose(axis, -1)
    return index.transpose(axis, -1), values


def _index_matches(indices: T, size: int) -> T:
    """Which source element goes to which index: (…, index, element)."""
    return indices.unsqueeze(-2).eq(indices._iota(size, indices.dtype).unsqueeze(-1))


def _last_writers(indices: T, size: int) -> T:
    """The last source element, counted from 1, that goes to each of `size` indices; 0 for none."""
    numbers = indices._iota(int(indices.shape[-1])).expand(indices.shape)
    return (_combined(indices, numbers, size, MAX) + 1).maximum(0)


def _combined(indices: T, values: T, size: int, op: Ops) -> T:
    """Source elements (…, n) combined at each of `size` indices."""
    has_rule = op in (MAX, MIN) and values.is_floating_point()
    plain = values.detach() if has_rule else values
    chosen = _index_matches(indices, size).where(
        plain.unsqueeze(-2), plain.const_like(identity(op, plain.dtype))
    )
    found = chosen._reduce(op, (chosen.ndim - 1,), keepdim=False)
    if not has_rule:
        return found
    rule = _ExtremeGradient(indices, plain, found)
    return values._wrap(record(Ops.CUSTOM, values.uop.dtype, (found.uop, values.uop), rule))


def _written(x: T, indices: T, values: T, axis: int) -> T:
    """x with elements of lines (…, n) written to indices along an axis, in order."""
    at, new = (
        line.transpose(axis, -1).unsqueeze(-1).transpose(axis, -1) for line in (indices, values)
    )
    size = int(x.shape[axis])
    numbers = indices._iota(size, indices.dtype).reshape((size,) + (1,) * (x.ndim - axis))
    body = at.eq(numbers).where(new.detach(), x.detach().unsqueeze(-1))
    found = body._reduce(Ops.ASSIGN, (x.ndim,), keepdim=False)
    if not x.is_floating_point():
        return found
    rule = _ScatterGradient(indices, axis, x)
    return x._wrap(record(Ops.CUSTOM, x.uop.dtype, (found.uop, x.uop, values.uop), rule))


class _ScatterGradient:
    """The gradient of writing: for the last write to each index, and for elements that were not
    written.
    """

    def __init__(self, indices: Any, axis: int, x: Any) -> None:
        self.indices, self.axis, self.x = indices, axis, x

    def __call__(self, node: UOp, g: UOp, depends: set[UOp]) -> dict[UOp, UOp]:
        indices, lines = self.indices, self.x._wrap(g).transpose(self.axis, -1)
        last = _last_writers(indices, int(self.x.shape[self.axis]))
        numbers = indices._iota(int(indices.shape[-1])) + 1
        is_last = last._gather_unchecked(-1, indices).eq(numbers)
        of_x = (last > 0).where(0, lines).transpose(self.axis, -1)
        return {
            node.src[1]: of_x.uop,
            node.src[2]: is_last.where(lines._gather_unchecked(-1, indices), 0).uop,
        }


class _ExtremeGradient:
    """The gradient of extremes: all elements equal to the extreme share it."""

    def __init__(self, indices: Any, values: Any, found: Any) -> None:
        self.indices, self.values, self.found = indices, values, found

    def __call__(self, node: UOp, g: UOp, depends: set[UOp]) -> dict[UOp, UOp]:
        indices, values, found = self.indices, self.values, self.found
        is_kept = values.eq(found._gather_unchecked(-1, indices))
        count = _combined(indices, is_kept.cast(values.dtype), int(found.shape[-1]), ADD)
        share = (values._wrap(g) / count.maximum(1))._gather_unchecked(-1, indices)
        return {node.src[1]: is_kept.where(share, 0).uop}


def _restore_axis(line: T, x: T, axis: int, fill: ConstType = 0) -> T:
    """The last axis moved back, filled at indices beyond the lines."""
    return line.transpose(axis, -1).pad_to(x.shape, value=fill)


def _true_indices(mask: T, size: int | None) -> tuple[T, T]:
    """The flat indices where a mask is True, and which of these are valid."""
    if not mask.numel():
        none = mask._wrap(type(mask).zeros(size or 0, dtype=dtypes.int32).uop)
        return none, none.ne(0)
    counts = mask.flatten().cast(dtypes.int32).cumsum().contiguous()
    total = counts[-1]
    count = _read_count(total) if size is None else size
    wanted = mask._iota(count) + 1
    indices = _lower_bound(counts, wanted).minimum(mask.numel() - 1)
    return indices, wanted <= total


def _read_count(x: Any) -> int:
    """The value of a count, computed now."""
    return int(x.item())


def _lower_bound(line: T, values: T) -> T:
    """Binary search: how many elements of increasing lines (…, n) are less than values (…, k)."""
    size = int(line.shape[-1])
    position = (values * 0).cast(dtypes.int32)
    step = 1 << (size.bit_length() - 1)
    while step:
        further = position + step
        there = line._gather_unchecked(-1, (further - 1).minimum(size - 1))
        position = ((further <= size) & (there < values)).where(further, position)
        step //= 2
    return position
