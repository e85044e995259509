"""Sorting: a bitonic network over keys that carry their indices, pruned for small k.

A value becomes a signed key of the same order, and a compare-exchange a minimum and a maximum. For
values, keys alone are sorted. For indices, 32-bit keys share a 64-bit word with the index, so that
the sort is stable; wider keys travel beside their index. Which of the two networks runs depends on
the result that is read; gradients read indices.
"""

from __future__ import annotations

from typing import Any, Self

from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.errors import ShapeError
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.tensor.autograd.gradient import gradients
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.ops.bitcasts import UNSIGNED
from glassgrad.tensor.ops.sorting_network import Words, first_in_order
from glassgrad.tensor.record import axis_of, record
from glassgrad.tensor.symbolic_sizes import with_concrete_arguments

# Axis length, and its ratio to k, from which topk sorts only candidate groups.
MIN_PARTIAL_SORT_LENGTH, MIN_PARTIAL_SORT_RATIO = 512, 32
SIGNED = {32: dtypes.int32, 64: dtypes.int64}


class Sorting(TensorCore):
    """argsort, sort and topk."""

    __slots__ = ()

    @with_concrete_arguments
    def argsort(self, dim: int = -1, descending: bool = False) -> Self:
        """The indices that sort the tensor. The sort is stable, and nan is the largest.

        >>> Tensor([3, 1, 2]).argsort().tolist()
        [1, 2, 0]
        """
        axis = axis_of(dim, self.ndim)
        if not self.shape or 0 in self.uop.shape:
            return self.zeros_like(dtype=dtypes.int32)
        return self._first(axis, int(self.shape[axis]), descending)

    def _first(self, axis: int, count: int, descending: bool) -> Self:
        """The indices of the first elements in order."""
        order: Self = _order(self.detach().transpose(axis, -1), count, descending)
        return order.transpose(axis, -1)

    @with_concrete_arguments
    def sort(self, dim: int = -1, descending: bool = False) -> tuple[Self, Self]:
        """The elements in order, and their indices.

        >>> [x.tolist() for x in Tensor([3, 1, 2]).sort()]
        [[1, 2, 3], [1, 2, 0]]
        """
        if not self.shape:
            return self._wrap(self.uop), self.argsort(dim)
        index = self.argsort(dim, descending)
        if 0 in self.uop.shape:
            return self._wrap(self.uop), index
        axis = axis_of(dim, self.ndim)
        found = _sort_values(self.detach().transpose(axis, -1), descending).transpose(axis, -1)
        rule = _SortedGradient(self._wrap(index.uop), axis)
        made = record(Ops.CUSTOM, self.uop.dtype, (found.uop, self.uop), rule)
        return self._wrap(made), index

    @with_concrete_arguments
    def topk(
        self, k: int, dim: int = -1, largest: bool = True, sorted_: bool = True
    ) -> tuple[Self, Self]:
        """The k largest or smallest elements in order, and their indices.

        >>> [x.tolist() for x in Tensor([3, 1, 2]).topk(2)]
        [[3, 2], [0, 2]]
        """
        axis = axis_of(dim, self.ndim)
        size = int(self.shape[axis]) if self.shape else 1
        if not 0 <= k <= size:
            raise ShapeError(f"cannot take the top {k} of {size} elements on axis {axis}")
        if not self.shape:
            return self.sort(dim)
        if not k or 0 in self.uop.shape:
            pairs: list[tuple[int, int] | None] = [None] * self.ndim
            pairs[axis] = (0, k)
            nothing = self.shrink(pairs)
            return nothing, nothing.cast(dtypes.int32)
        index = self._first(axis, k, largest)
        return self._gather_unchecked(axis, index), index


class _SortedGradient:
    """The gradient of sorted values: that of a gather at their indices.

    `index` is a tensor of its own: pending writes that are rebuilt redirect tensors, not nodes.
    """

    def __init__(self, index: Any, axis: int) -> None:
        self.index, self.axis = index, axis

    def __call__(self, node: UOp, g: UOp, depends: set[UOp]) -> dict[UOp, UOp]:
        x = node.src[1]
        looked_up = UOp(Ops.GATHER, x.dtype, (x, self.index.uop), self.axis)
        return gradients(looked_up, (x,), g, are_ends=True)


def _order(x: Any, count: int, descending: bool) -> Any:
    """The indices of the first elements of the last axis in order."""
    keys = _keys(x.eq(0).where(0, x) if x.dtype.kind == "float" else x)
    keys = keys.bitwise_not() if descending else keys
    size = int(x.shape[-1])
    if size >= MIN_PARTIAL_SORT_LENGTH and size >= MIN_PARTIAL_SORT_RATIO * count:
        return _partial_sort(keys, count)
    return first_in_order(_sort_words(keys, x._iota(size)), count, _index_part)


def _partial_sort(keys: Any, count: int) -> Any:
    """The first elements by groups of neighbours: only groups whose own first elements are among
    the first can hold them, besides the remainder that makes no group.

    The first element of any other group comes after the first elements of `count` groups.
    """
    size = int(keys.shape[-1])
    width = 1 << (size // count).bit_length() // 2
    groups = size // width
    grouped = keys[..., : groups * width].unflatten(-1, (groups, width))
    best = first_in_order(_sort_words(grouped.min(-1), keys._iota(groups)), count, _index_part)
    chosen = best.unsqueeze(-1).expand((*best.shape, width))
    indices = (chosen * width + keys._iota(width)).flatten(-2)
    found = grouped._gather_unchecked(-2, chosen).flatten(-2)
    if size > groups * width:
        rest = keys[..., groups * width :]
        found = found.cat(rest, dim=-1)
        line = keys._iota(int(rest.shape[-1])) + groups * width
        indices = indices.cat(line.expand(rest.shape), dim=-1)
    return first_in_order(_sort_words(found, indices), count, _index_part)


def _sort_words(keys: Any, indices: Any) -> Words:
    """Keys with their indices, padded to the length of a network."""
    if keys.dtype.itemsize <= 4:
        return [_padded((keys.cast(dtypes.int64) << 32) | indices.cast(dtypes.int64))]
    return [_padded(keys), _padded(indices.expand(keys.shape))]


def _index_part(words: Words) -> Any:
    last = words[-1] & 0xFFFFFFFF if len(words) == 1 else words[-1]
    return last.cast(dtypes.int32)


def _sort_values(x: Any, descending: bool) -> Any:
    """The elements of the last axis in order, by sorting keys alone."""
    keys = _keys(x)
    keys = keys.bitwise_not() if descending else keys

    def read(words: Words) -> Any:
        return _values(words[0].bitwise_not() if descending else words[0], x.dtype)

    return first_in_order([_padded(keys)], int(x.shape[-1]), read)


def _padded(keys: Any) -> Any:
    """Padded to a power of two with the largest key."""
    size = int(keys.shape[-1])
    more = (1 << (size - 1).bit_length()) - size
    around = ((0, 0),) * (keys.ndim - 1) + ((0, more),)
    return keys.pad(around, value=dtypes.max(keys.dtype)) if more else keys


def _keys(x: Any) -> Any:
    """Signed integers of 32 or 64 bits in the order of the values; all nans become the largest."""
    if x.dtype.kind == "float":
        wide = x if x.dtype.bits >= 32 else x.cast(dtypes.float32)
        bits = wide.isnan().where(float("nan"), wide).bitcast(SIGNED[wide.dtype.bits])
        return _reverse_negative_order(bits)
    if x.dtype in UNSIGNED.values() and x.dtype.bits >= 32:
        top = 1 << (x.dtype.bits - 1)
        return (x ^ top).bitcast(SIGNED[x.dtype.bits])
    return x if x.dtype.bits == 64 else x.cast(dtypes.int32)


def _values(keys: Any, dtype: DType) -> Any:
    """The inverse of `_keys`."""
    if dtype.kind == "float":
        wide = dtypes.float64 if dtype.bits == 64 else dtypes.float32
        return _reverse_negative_order(keys).bitcast(wide).cast(dtype)
    if dtype in UNSIGNED.values() and dtype.bits >= 32:
        return keys.bitcast(dtype) ^ (1 << (dtype.bits - 1))
    return keys.cast(dtype)


def _reverse_negative_order(bits: Any) -> Any:
    """Reverses the order of the bits of negative floats; applied twice, it is the identity."""
    last = bits.dtype.bits - 1
    return bits ^ ((bits >> last) & ((1 << last) - 1))
