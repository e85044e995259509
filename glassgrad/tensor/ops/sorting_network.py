"""Words -> the first of them in order: a network of exchanges, whole vectors at a time.

Bitonic: two runs in order, one of them turned around, become one by comparing ever closer
neighbours. Which elements meet does not depend on what they are, so that all lanes of a vector do
the same. A *step* is the size of the blocks whose halves are compared, and whether the upper half
is turned around before. A few steps at a time are one statement; what lies between is kept in the
nearest memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from math import prod
from typing import Any

LANES = 8
SHORT = 1024  # a few rows so short have lanes of their own, even if some stay empty
PART = 1024  # elements of a lane that fit the nearest cache with all lanes
PARTS = 16  # fewer are no loop that statements would share
TOGETHER = 2  # steps: three take twice as long to compile, and are no faster

Step = tuple[int, bool]
Words = list[Any]  # compared by the first; where that is equal, by the next


def first_in_order(words: Words, count: int, read: Callable[[Words], Any]) -> Any:
    """The first elements of the last axis, a power of two long: `count` of what `read` makes
    of their words.
    """
    shape = words[0].shape
    rows = prod(shape[:-1])
    if rows < LANES and int(shape[-1]) > SHORT:
        return read(_few_rows(words, count))[..., :count]
    found = _smallest([_rows_side_by_side(word, rows) for word in words], count)
    apart = read([word.transpose(-1, -2)[..., :count] for word in found])
    return apart.reshape((-1, count))[:rows].reshape((*shape[:-1], count))


def _rows_side_by_side(word: Any, rows: int) -> Any:
    """(…, length) -> (groups, length, lanes): each lane is a row."""
    length = int(word.shape[-1])
    even = word.reshape((rows, length)).pad(((0, -rows % LANES), (0, 0)))
    return even.reshape((-1, LANES, length)).transpose(-1, -2)._once()


def _few_rows(words: Words, count: int, lanes: int = LANES) -> Words:
    """A lane is a run of the network's elements: first each is put in order, then all of them."""
    size = int(words[0].shape[-1])
    lanes = lanes if size >= lanes * lanes else 1
    length = size // lanes
    words = [word.unflatten(-1, (length, lanes)) for word in words]
    if count <= length:
        words = [_turned(word) for word in _smallest(words, count)]
        return words if lanes == 1 else _few_rows(words, count, lanes=1)
    words = _run(words, steps_up_to(length))
    block = 2 * length
    while block <= size:
        words = _across_lanes(words, block)
        block *= 2
    return [_turned(word) for word in words]


def _turned(word: Any) -> Any:
    """(…, length, lanes) -> (…, lanes * length): one run after the other."""
    return word.transpose(-1, -2).flatten(-2)


def _across_lanes(words: Words, block: int) -> Words:
    """Elements of different runs meet where runs lie one behind the other; near ones where runs lie
    side by side.
    """
    length, lanes = (int(n) for n in words[0].shape[-2:])
    flat = [_turned(word)._once().unflatten(-1, (length, lanes)) for word in words]
    flat = _run(flat, [(block // lanes, True), *nearing(block // lanes // 2)], turns_lanes=True)
    back = [word.flatten(-2).unflatten(-1, (lanes, length)).transpose(-1, -2) for word in flat]
    return _run([word._once() for word in back], nearing(lanes))


def _smallest(words: Words, count: int) -> Words:
    """Of each lane of (…, length, lanes) the first `count` elements, or more, in order.

    Of two blocks in order the better half stays: the lesser of each element and its mirror image in
    the other block. These need only the last steps of a network to be in order.
    """
    count = 1 << (count - 1).bit_length()
    words = _run(words, steps_up_to(count))
    while (length := int(words[0].shape[-2])) > count:
        pairs = [word.unflatten(-2, (length // count // 2, 2, count)) for word in words]
        ones = [pair[..., 0, :, :] for pair in pairs]
        others = [pair[..., 1, :, :].flip(-2) for pair in pairs]
        better = _chosen(_are_less(others, ones), others, ones)
        words = _run([word.flatten(-3, -2)._once() for word in better], nearing(count))
    return words


# ---------------------------------------------------------------------- steps


def steps_up_to(size: int) -> list[Step]:
    """Blocks of two, of four, … of `size` are put in order."""
    steps: list[Step] = []
    block = 2
    while block <= size:
        steps += [(block, True), *nearing(block // 2)]
        block *= 2
    return steps


def nearing(block: int) -> list[Step]:
    """The steps that order blocks which rise and fall once."""
    steps: list[Step] = []
    while block >= 2:
        steps.append((block, False))
        block //= 2
    return steps


def _run(words: Words, steps: Sequence[Step], turns_lanes: bool = False) -> Words:
    """Steps that stay within a part of each lane are done part by part, which is in the nearest
    cache for all of them; `turns_lanes`: the lanes are the nearest neighbours.
    """
    *rows, length, _ = (int(n) for n in words[0].shape)
    part = _part(prod(rows), length)
    for is_near, found in groupby(steps, key=lambda step: step[0] <= part):
        together = list(found)
        if is_near and length > part:
            parts = [word.unflatten(-2, (length // part, part)) for word in words]
            words = [word.flatten(-3, -2) for word in _a_few(parts, together, turns_lanes)]
        else:
            words = _a_few(words, together, turns_lanes)
    return words


def _part(rows: int, length: int) -> int:
    """How many elements of a lane make a part: a power of two, and all of a short lane."""
    if length <= PART:
        return length
    return min(PART, 1 << (rows * length // PARTS).bit_length() - 1)


def _a_few(words: Words, steps: Sequence[Step], turns_lanes: bool) -> Words:
    """A few steps at a time."""
    for start in range(0, len(steps), TOGETHER):
        words = _statement(words, steps[start : start + TOGETHER], turns_lanes)
    return words


def _statement(words: Words, steps: Sequence[Step], turns_lanes: bool) -> Words:
    """Every step has an axis of two, so that the code for both of its halves is written out."""
    shape = words[0].shape
    sizes, axes = split_at(int(shape[-2]), {block // 2 for block, _ in steps})
    first = len(shape) - 2
    words = [word.unflatten(-2, sizes) for word in words]
    last = words[0].ndim - (1 if turns_lanes else 2)
    for block, is_mirrored in steps:
        axis = first + axes[block // 2]
        turned = range(axis + 1, last + 1) if is_mirrored else ()
        words = _exchanged(words, axis, tuple(turned))
    return [word._once().reshape(shape) for word in words]


def split_at(length: int, distances: set[int]) -> tuple[tuple[int, ...], dict[int, int]]:
    """Sizes of axes that a length is cut into so that each distance is a step along one of two; and
    which axis that is.

    >>> split_at(32, {8, 1})
    ((2, 2, 4, 2, 1), {8: 1, 1: 3})
    """
    sizes: list[int] = []
    axes: dict[int, int] = {}
    for distance in sorted(distances, reverse=True):
        sizes.append(length // (2 * distance))
        axes[distance] = len(sizes)
        sizes.append(2)
        length = distance
    return (*sizes, length), axes


def _exchanged(words: Words, axis: int, turned: tuple[int, ...]) -> Words:
    """The smaller element of each pair along an axis comes first, the larger second."""
    ones = (1,) * (words[0].ndim - axis - 1)
    is_low = words[0]._line(2).eq(0).reshape((2, *ones))
    if turned:
        words = [is_low.where(word, word.flip(turned)) for word in words]
    others = [word.flip(axis) for word in words]
    if len(words) == 1:
        return [is_low.where(words[0].minimum(others[0]), words[0].maximum(others[0]))]
    return _chosen(_are_less(others, words).eq(is_low), others, words)


def _are_less(ones: Words, others: Words) -> Any:
    """By the first word, and where that is equal by the next."""
    if len(ones) == 1:
        return ones[0] < others[0]
    return (ones[0] < others[0]) | (ones[0].eq(others[0]) & (ones[1] < others[1]))


def _chosen(condition: Any, ones: Words, others: Words) -> Words:
    return [condition.where(one, other) for one, other in zip(ones, others, strict=True)]
