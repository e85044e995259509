"""Sorting: a network of exchanges over keys that carry their places, cut short where few are asked.

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

LANES = 8


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
        return self._first(axis, int(self.shape[axis]), descending)

    def _first(self, axis: int, count: int, descending: bool) -> Self:
        """The places of the first elements in order."""
        order: Self = _order(self.detach().transpose(axis, -1), count, descending)
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
        if not k or 0 in self.shape:
            pairs: list[tuple[int, int] | None] = [None] * self.ndim
            pairs[axis] = (0, k)
            nothing = self.shrink(pairs)
            return nothing, nothing.cast(dtypes.int32)
        index = self._first(axis, k, largest)
        return self._at(axis, index), index


def _order(x: Any, count: int, descending: bool) -> Any:
    """The places of the first elements of the last axis in order."""
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
    lanes = LANES if whole >= LANES * LANES else 1
    words = [word.unflatten(-1, (whole // lanes, lanes)) for word in words]
    last = _smallest(words, 1 << (count - 1).bit_length())[-1]
    index = last & 0xFFFFFFFF if len(words) == 1 else last
    return index.cast(dtypes.int32)[..., :count]


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


def _smallest(words: list[Any], count: int) -> list[Any]:
    """The first `count` elements, or more, of words (…, length, lanes) in order: (…, count).

    A lane holds a run of the network's elements, so that most exchanges are between whole vectors.
    If few are asked for, each lane is cut down to as many before they meet.
    """
    length, lanes = (int(size) for size in words[0].shape[-2:])
    if count > length:
        words = _network(words, _steps(length * lanes))
    else:
        words = _best(_network(words, _steps(count)), count)
        if lanes > 1:
            runs = [word.transpose(-1, -2).flatten(-2).unsqueeze(-1) for word in words]
            words = _best([run.contiguous() for run in runs], count)
    return [word.transpose(-1, -2).flatten(-2) for word in words]


def _best(words: list[Any], count: int) -> list[Any]:
    """Of blocks of `count` in order, the first `count` of all: of two blocks the better half stays.

    The lesser of each element and its mirror image in the other block: these are the first ones of
    both, and need only the last steps of a network to be in order.
    """
    while (length := int(words[0].shape[-2])) > count:
        pairs = [word.unflatten(-2, (length // count // 2, 2, count)) for word in words]
        ones = [pair[..., 0, :, :] for pair in pairs]
        others = [pair[..., 1, :, :].flip(-2) for pair in pairs]
        better = _chosen(_are_less(others, ones), others, ones)
        words = [word.flatten(-3, -2).contiguous() for word in better]
        words = _network(words, _nearing(count))
    return words


def _network(words: list[Any], steps: list[tuple[int, bool]]) -> list[Any]:
    for number, (block, is_mirrored) in enumerate(steps, start=1):
        words = _exchanged(words, block, is_mirrored)
        if number % 2 == 0:  # two steps at a time read four elements for one; three gain nothing
            words = [word.contiguous() for word in words]
    return words


def _steps(size: int) -> list[tuple[int, bool]]:
    """Bitonic: blocks double; mirrored halves are compared first, then ever closer neighbours.

    Each step is the size of its blocks, and whether their halves are mirrored.
    """
    steps = []
    block = 2
    while block <= size:
        steps += [(block, True), *_nearing(block // 2)]
        block *= 2
    return steps


def _nearing(block: int) -> list[tuple[int, bool]]:
    """The steps that order a block which rises and falls once."""
    steps = []
    while block >= 2:
        steps.append((block, False))
        block //= 2
    return steps


def _exchanged(words: list[Any], block: int, is_mirrored: bool) -> list[Any]:
    """The smaller element of each pair to the lower half of its block, the larger to the upper."""
    shape = words[0].shape
    length = int(shape[-2])
    axes: tuple[int, ...]
    ones: tuple[int, ...]
    if block <= length:
        apart = [word.unflatten(-2, (length // block, 2, block // 2)) for word in words]
        axes, ones = (-3, -2), (1, 1)
    else:  # blocks of whole lanes
        width = block // length
        apart = [word.unflatten(-1, (shape[-1] // width, 2, width // 2)) for word in words]
        axes, ones = (-2, -1, -4), (1,)
    others = [word.flip(axes if is_mirrored else axes[0]) for word in apart]
    is_low = words[0]._line(2).eq(0).reshape((2, *ones))
    if len(words) == 1:
        one, other = apart[0], others[0]
        found = [is_low.where(one.minimum(other), one.maximum(other))]
    else:
        found = _chosen(_are_less(others, apart).eq(is_low), others, apart)
    return [word.reshape(shape) for word in found]


def _are_less(ones: list[Any], others: list[Any]) -> Any:
    """By the first word, and where that is equal by the next."""
    if len(ones) == 1:
        return ones[0] < others[0]
    return (ones[0] < others[0]) | (ones[0].eq(others[0]) & (ones[1] < others[1]))


def _chosen(condition: Any, ones: list[Any], others: list[Any]) -> list[Any]:
    return [condition.where(one, other) for one, other in zip(ones, others, strict=True)]
