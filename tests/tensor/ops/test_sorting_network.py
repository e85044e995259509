"""Sorting networks: which elements are compared, in which order."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from support.compiler.schedules import memory, planned

from glassgrad import Tensor
from glassgrad.tensor.ops import sorting_network as exchanges
from glassgrad.tensor.ops.sorting_network import (
    LANES,
    first_in_order,
    merge_steps,
    sort_steps,
    split_at,
)


def run(values: list[int], steps: list[tuple[int, bool]]) -> list[int]:
    """The steps one after the other, on a plain list."""
    for block, is_mirrored in steps:
        half = block // 2
        for start in range(0, len(values), block):
            if is_mirrored:
                values[start + half : start + block] = values[start + half : start + block][::-1]
            for low in range(start, start + half):
                pair = values[low], values[low + half]
                values[low], values[low + half] = min(pair), max(pair)
    return values


@pytest.mark.parametrize("size", [2, 4, 8, 16])
def test_the_network_sorts_zeros_and_ones_and_so_everything(size: int) -> None:
    steps = sort_steps(size)
    for bits in product((0, 1), repeat=min(size, 12)):
        values = [*bits, *(1 - bit for bit in bits)][:size]
        assert run(list(values), steps) == sorted(values)


def test_a_network_has_half_a_square_of_logarithms_steps() -> None:
    assert len(sort_steps(1024)) == 10 * 11 // 2
    assert merge_steps(8) == [(8, False), (4, False), (2, False)]


def test_every_distance_has_an_axis_of_two() -> None:
    sizes, axes = split_at(64, {32, 4, 2})
    assert np.prod(sizes) == 64
    for distance, axis in axes.items():
        assert sizes[axis] == 2
        assert np.prod(sizes[axis + 1 :]) == distance


@pytest.mark.parametrize("rows", [1, LANES - 1, LANES, 3 * LANES + 1])
@pytest.mark.parametrize("count", [1, 3, 64, 256])
def test_the_first_of_each_row_come_in_order(rows: int, count: int) -> None:
    x = np.random.default_rng(rows).integers(-999, 999, (rows, 256)).astype(np.int32)
    found = first_in_order([Tensor(x)], count, lambda words: words[0])
    np.testing.assert_array_equal(found.numpy(), np.sort(x)[:, :count])


def test_where_first_words_are_equal_the_next_ones_decide() -> None:
    rng = np.random.default_rng(0)
    first, second = (
        rng.integers(0, 4, (9, 128)),
        rng.permuted(np.tile(np.arange(128), (9, 1)), axis=1),
    )
    words = [Tensor(first), Tensor(second)]
    found = first_in_order(words, 128, lambda words: words[0] * 1000 + words[1])
    np.testing.assert_array_equal(found.numpy(), np.sort(first * 1000 + second))


@pytest.mark.parametrize(("rows", "size"), [(1, 4096), (3, 2048), (9, 256), (19, 64), (41, 128)])
def test_steps_within_parts_put_all_in_order(
    rows: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchanges, "PART", 16)
    numbers = np.random.default_rng(size).permutation(rows * size).reshape(rows, size)
    x = Tensor(numbers.astype(np.float32))
    np.testing.assert_array_equal(x.sort()[0].numpy(), np.sort(numbers))
    np.testing.assert_array_equal(x.argsort().numpy(), np.argsort(numbers))


def test_a_part_goes_through_many_steps_in_one_kernel() -> None:
    kernels = planned(memory(1 << 16).sort()[0]).kernels
    assert len(kernels) < 36, "not one for every two of 136 steps"
    assert len(set(kernels)) < len(kernels), "the last steps are the same in every round"
