"""Sorting: a network of exchanges over keys that carry their places.

A value becomes an unsigned key of the same order. Keys of up to 32 bits share a word with the
index, so that an exchange is a minimum and a maximum and equal values keep their order; wider
keys travel beside their index. Elements are then looked up, which also gives their gradients.
"""

from __future__ import annotations

from typing import Any, Self

from glassgrad.base.dtype import dtypes
from glassgrad.base.errors import ShapeError
from glassgrad.tensor.bitcasts import UNSIGNED
from glassgrad.tensor.record import BOOL, axis_of
from glassgrad.tensor.scan import Scan


class Sorting(Scan):
    """argsort, sort and topk."""

    __slots__ = ()

    def argsort(self, dim: int = -1, descending: bool = False) -> Self:
        """The places of the elements in order; equal ones keep theirs, nan is the largest.

        >>> Tensor([3, 1, 2]).argsort().tolist()
        [1, 2, 0]
        """
        axis = axis_of(dim, self.ndim)
        if not self.shape or 0 in self.shape:
            return self.zeros_like(dtype=dtypes.int32)
        order: Self = _order(self.detach().transpose(axis, -1), descending)
        return order.transpose(axis, -1)

    def sort(self, dim: int = -1, descending: bool = False) -> tuple[Self, Self]:
        """The elements in order, and their places.

        >>> [x.tolist() for x in Tensor([3, 1, 2]).sort()]
        [[1, 2, 3], [1, 2, 0]]
        """
        if not self.shape:
            return self._made(self.uop), self.argsort(dim)
        index = self.argsort(dim, descending)
        return self._at(dim, index), index

    def topk(
        self, k: int, dim: int = -1, largest: bool = True, sorted_: bool = True
    ) -> tuple[Self, Self]:
        """The k largest or smallest elements in order, and their places.

        >>> [x.tolist() for x in Tensor([3, 1, 2]).topk(2)]
        [[3, 2], [0, 2]]
        """
        axis = axis_of(dim, self.ndim)
        size = int(self.shape[axis]) if self.shape else 1
        if not 0 <= k <= size:
            raise ShapeError(f"cannot take the top {k} of {size} elements on axis {axis}")
        if not self.shape:
            return self.sort(dim)
        pairs: list[tuple[int, int] | None] = [None] * self.ndim
        pairs[axis] = (0, k)
        index = self.argsort(axis, descending=largest).shrink(pairs)
        return self._at(axis, index), index


def _order(x: Any, descending: bool) -> Any:
    """The places of the elements of the last axis in order."""
    size = int(x.shape[-1])
    whole = 1 << (size - 1).bit_length()
    keys = _keys(x)
    keys = keys.bitwise_not() if descending else keys
    around = ((0, 0),) * (x.ndim - 1) + ((0, whole - size),)
    if keys.dtype.itemsize <= 4:
        place = x._line(size, dtypes.uint64)
        word = (keys.cast(dtypes.uint64) << 32) | place
        words = [word.pad(around, value=dtypes.max(dtypes.uint64))]
    else:
        place = x._line(whole).expand((*x.shape[:-1], whole))
        words = [keys.pad(around, value=dtypes.max(keys.dtype)), place]
    words = _network(words, whole)
    index = words[-1] & 0xFFFFFFFF if len(words) == 1 else words[-1]
    return index.cast(dtypes.int32)[..., :size]


def _keys(x: Any) -> Any:
    """Unsigned numbers in the order of the values; all nans are one, and so are both zeros."""
    if x.dtype is BOOL:
        return x.cast(dtypes.uint8)
    if x.dtype.kind == "float":
        wide = x if x.dtype.bits >= 32 else x.cast(dtypes.float32)
        plain = wide.eq(0.0).where(0.0, wide.isnan().where(float("nan"), wide))
        bits = plain.bitcast(UNSIGNED[plain.dtype.bits])
        top = 1 << (bits.dtype.bits - 1)
        # Negative numbers count down as their bits count up; the canonical nan is positive.
        return (bits >= top).where(bits.bitwise_not(), bits | top)
    if x.dtype.kind == "int":
        unsigned = UNSIGNED[x.dtype.bits]
        return x.bitcast(unsigned) ^ (1 << (x.dtype.bits - 1))
    return x


def _network(words: list[Any], size: int) -> list[Any]:
    """Bitonic: blocks double; mirrored halves are compared first, then ever closer neighbours."""
    for number, (block, is_mirrored) in enumerate(_steps(size), start=1):
        words = _exchanged(words, block, is_mirrored)
        if number % 2 == 0:  # two steps at a time read four elements for one; three gain nothing
            words = [word.contiguous() for word in words]
    return words


def _steps(size: int) -> list[tuple[int, bool]]:
    """The blocks of a network over `size` elements, and whether their halves are mirrored."""
    steps = []
    block = 2
    while block <= size:
        steps.append((block, True))
        near = block // 2
        while near >= 2:
            steps.append((near, False))
            near //= 2
        block *= 2
    return steps


def _exchanged(words: list[Any], block: int, is_mirrored: bool) -> list[Any]:
    """The smaller element of each pair to the lower half of its block, the larger to the upper."""
    shape = words[0].shape
    apart = [word.reshape((*shape[:-1], -1, 2, block // 2)) for word in words]
    others = [word.flip((-1, -2) if is_mirrored else -2) for word in apart]
    is_low = words[0]._line(2).eq(0).unsqueeze(1)
    if len(words) == 1:
        one, other = apart[0], others[0]
        found = [is_low.where(one.minimum(other), one.maximum(other))]
    else:
        tied = apart[0].eq(others[0])
        is_less = (others[0] < apart[0]) | (tied & (others[1] < apart[1]))
        takes = is_less.eq(is_low)
        found = [takes.where(theirs, mine) for mine, theirs in zip(apart, others, strict=True)]
    return [word.reshape(shape) for word in found]
