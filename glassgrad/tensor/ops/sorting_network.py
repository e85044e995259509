"""Words -> the first of them in order: a bitonic sorting network on whole vectors.

Bitonic merge: two sorted runs, one of them reversed, are merged by comparing ever closer
neighbours. Which elements are compared does not depend on their values, so all lanes of a vector do
the same. A *step* is the size of the blocks whose halves are compared, and whether the upper half
is reversed first. A few steps at a time are one statement; intermediate values stay in L1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from math import prod
from typing import Any

LANES = 8
MAX_ROW_PER_LANE = 1024  # elements; fewer than LANES rows up to this length get a lane each
PART = 1024  # elements of a lane; all lanes of a part fit L1
MIN_PARTS = 16  # fewer parts make no loop that statements share
STEPS_PER_STATEMENT = 2  # three take twice as long to compile and are no faster

Step = tuple[int, bool]
Words = list[Any]  # compared lexicographically


def first_in_order(words: Words, count: int, read: Callable[[Words], Any]) -> Any:
    """The first elements of the last axis, whose length is a power of two: `count` results of
    `read` on the sorted words.
    """
    shape = words[0].shape
    rows = prod(shape[:-1])
    if rows < LANES and int(shape[-1]) > MAX_ROW_PER_LANE:
        return read(_few_rows(words, count))[..., :count]
    found = _first_of_lanes([_rows_side_by_side(word, rows) for word in words], count)
    apart = read([word.transpose(-1, -2)[..., :count] for word in found])
    return apart.reshape((-1, count))[:rows].reshape((*shape[:-1], count))


def _rows_side_by_side(word: Any, rows: int) -> Any:
    """(…, length) -> (groups, length, lanes): each lane is a row."""
    length = int(word.shape[-1])
    even = word.reshape((rows, length)).pad(((0, -rows % LANES), (0, 0)))
    return even.reshape((-1, LANES, length)).transpose(-1, -2)._computed_once()


def _few_rows(words: Words, count: int, lanes: int = LANES) -> Words:
    """Each lane is a run of elements: first each run is sorted, then runs are merged."""
    size = int(words[0].shape[-1])
    lanes = lanes if size >= lanes * lanes else 1
    length = size // lanes
    words = [word.unflatten(-1, (length, lanes)) for word in words]
    if count <= length:
        words = [_runs_flattened(word) for word in _first_of_lanes(words, count)]
        return words if lanes == 1 else _few_rows(words, count, lanes=1)
    words = _run_steps(words, sort_steps(length))
    block = 2 * length
    while block <= size:
        words = _merge_across_lanes(words, block)
        block *= 2
    return [_runs_flattened(word) for word in words]


def _runs_flattened(word: Any) -> Any:
    """(…, length, lanes) -> (…, lanes * length): one run after the other."""
    return word.transpose(-1, -2).flatten(-2)


def _merge_across_lanes(words: Words, block: int) -> Words:
    """Compare distant elements in the layout with runs one after the other, near ones in the layout
    with runs side by side.
    """
    length, lanes = (int(n) for n in words[0].shape[-2:])
    flat = [_runs_flattened(word)._computed_once().unflatten(-1, (length, lanes)) for word in words]
    flat = _run_steps(
        flat, [(block // lanes, True), *merge_steps(block // lanes // 2)], lanes_are_neighbours=True
    )
    back = [word.flatten(-2).unflatten(-1, (lanes, length)).transpose(-1, -2) for word in flat]
    return _run_steps([word._computed_once() for word in back], merge_steps(lanes))


def _first_of_lanes(words: Words, count: int) -> Words:
    """The first `count` elements, or more, of each lane of (…, length, lanes), in order.

    Of two sorted blocks the better half is kept: the lesser of each element and its mirror image in
    the other block. A bitonic merge sorts it again.
    """
    count = 1 << (count - 1).bit_length()
    words = _run_steps(words, sort_steps(count))
    while (length := int(words[0].shape[-2])) > count:
        pairs = [word.unflatten(-2, (length // count // 2, 2, count)) for word in words]
        ones = [pair[..., 0, :, :] for pair in pairs]
        others = [pair[..., 1, :, :].flip(-2) for pair in pairs]
        better = _chosen(_are_less(others, ones), others, ones)
        words = _run_steps(
            [word.flatten(-3, -2)._computed_once() for word in better], merge_steps(count)
        )
    return words


# ---------------------------------------------------------------------- steps


def sort_steps(size: int) -> list[Step]:
    """The steps that sort blocks of two, of four, … of `size`."""
    steps: list[Step] = []
    block = 2
    while block <= size:
        steps += [(block, True), *merge_steps(block // 2)]
        block *= 2
    return steps


def merge_steps(block: int) -> list[Step]:
    """The bitonic merge: steps that sort blocks which rise and fall once."""
    steps: list[Step] = []
    while block >= 2:
        steps.append((block, False))
        block //= 2
    return steps


def _run_steps(words: Words, steps: Sequence[Step], lanes_are_neighbours: bool = False) -> Words:
    """Run steps. Those that stay within a part of each lane run part by part, so that the part
    stays in L1. With `lanes_are_neighbours`, a lane holds the nearest neighbours.
    """
    *rows, length, _ = (int(n) for n in words[0].shape)
    part = _part_size(prod(rows), length)
    for is_near, found in groupby(steps, key=lambda step: step[0] <= part):
        together = list(found)
        if is_near and length > part:
            parts = [word.unflatten(-2, (length // part, part)) for word in words]
            words = [
                word.flatten(-3, -2) for word in _run_grouped(parts, together, lanes_are_neighbours)
            ]
        else:
            words = _run_grouped(words, together, lanes_are_neighbours)
    return words


def _part_size(rows: int, length: int) -> int:
    """The elements of a lane in one part: a power of two, or all of a short lane."""
    if length <= PART:
        return length
    return min(PART, 1 << (rows * length // MIN_PARTS).bit_length() - 1)


def _run_grouped(words: Words, steps: Sequence[Step], lanes_are_neighbours: bool) -> Words:
    """Run STEPS_PER_STATEMENT steps per statement."""
    for start in range(0, len(steps), STEPS_PER_STATEMENT):
        words = _statement(words, steps[start : start + STEPS_PER_STATEMENT], lanes_are_neighbours)
    return words


def _statement(words: Words, steps: Sequence[Step], lanes_are_neighbours: bool) -> Words:
    """One statement. Every step gets an axis of size 2, so that both halves are unrolled."""
    shape = words[0].shape
    sizes, axes = split_at(int(shape[-2]), {block // 2 for block, _ in steps})
    first = len(shape) - 2
    words = [word.unflatten(-2, sizes) for word in words]
    last = words[0].ndim - (1 if lanes_are_neighbours else 2)
    for block, is_mirrored in steps:
        axis = first + axes[block // 2]
        mirrored_axes = range(axis + 1, last + 1) if is_mirrored else ()
        words = _compare_exchange(words, axis, tuple(mirrored_axes))
    return [word._computed_once().reshape(shape) for word in words]


def split_at(length: int, distances: set[int]) -> tuple[tuple[int, ...], dict[int, int]]:
    """Axis sizes for a length such that each distance is a step along an axis of size 2; and which
    axis that is.

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


def _compare_exchange(words: Words, axis: int, mirrored_axes: tuple[int, ...]) -> Words:
    """Compare-exchange along an axis: the smaller element of each pair first."""
    ones = (1,) * (words[0].ndim - axis - 1)
    is_low = words[0]._iota(2).eq(0).reshape((2, *ones))
    if mirrored_axes:
        words = [is_low.where(word, word.flip(mirrored_axes)) for word in words]
    others = [word.flip(axis) for word in words]
    if len(words) == 1:
        return [is_low.where(words[0].minimum(others[0]), words[0].maximum(others[0]))]
    return _chosen(_are_less(others, words).eq(is_low), others, words)


def _are_less(ones: Words, others: Words) -> Any:
    """Lexicographic comparison of words."""
    if len(ones) == 1:
        return ones[0] < others[0]
    return (ones[0] < others[0]) | (ones[0].eq(others[0]) & (ones[1] < others[1]))


def _chosen(condition: Any, ones: Words, others: Words) -> Words:
    return [condition.where(one, other) for one, other in zip(ones, others, strict=True)]
