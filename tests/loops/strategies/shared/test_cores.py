"""Block sizes: equal blocks, and as many for every core."""

from __future__ import annotations

import pytest

from glassgrad.loops.strategies.shared.cores import balanced_block_size, block_size, is_balanced


@pytest.mark.parametrize(
    ("size", "most", "count"), [(128, 62, 32), (32, 7, 4), (128, 32, 32), (127, 16, 16)]
)
def test_blocks_overlap_as_little_as_they_can(size: int, most: int, count: int) -> None:
    assert block_size(size, most, must_divide=False) == count
    assert size % block_size(size, most, must_divide=True) == 0


@pytest.mark.parametrize("cores", [2, 3, 8])
@pytest.mark.parametrize("size", [96, 171, 342])
def test_every_core_gets_as_many_blocks(size: int, cores: int) -> None:
    amount = balanced_block_size(size, 30, cores, must_divide=False)
    count = -(-size // amount)
    assert amount <= 30 and is_balanced(count, cores)
    assert count * amount - size < count, "nearly nothing is done twice"


def test_blocks_for_the_cores_overlap_as_little_as_they_can() -> None:
    assert balanced_block_size(24, 8, cores=2, must_divide=False) == 6, (
        "four of 7 would do 4 of 24 twice"
    )
