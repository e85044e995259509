"""How an axis is cut: into blocks of one size, as many for every core."""

from __future__ import annotations

import pytest

from glassgrad.loops.cores import even_blocks, is_even, shared_blocks


@pytest.mark.parametrize(("size", "most", "count"), [(128, 62, 43), (128, 32, 32), (127, 16, 16)])
def test_blocks_overlap_as_little_as_they_can(size: int, most: int, count: int) -> None:
    assert even_blocks(size, most, must_divide=False) == count
    assert size % even_blocks(size, most, must_divide=True) == 0


@pytest.mark.parametrize("cores", [2, 3, 8])
@pytest.mark.parametrize("size", [96, 171, 342])
def test_every_core_gets_as_many_blocks(size: int, cores: int) -> None:
    amount = shared_blocks(size, even_blocks(size, 40, False), cores, must_divide=False)
    assert amount <= 40 and is_even(-(-size // amount), cores)
