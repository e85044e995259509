"""The expansion of Threefry agrees with the op."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.compiler.on_cpu import apply

from glassgrad.base.dtype import dtypes
from glassgrad.ir.fold import threefry as meaning
from glassgrad.lower.math.threefry import threefry

words = st.lists(st.integers(0, (1 << 64) - 1), min_size=16, max_size=16)


@given(words, words)
def test_every_counter_and_key_gives_the_bits_that_the_op_means(
    counters: list[int], keys: list[int]
) -> None:
    arrays = [np.array(counters, np.uint64), np.array(keys, np.uint64)]
    got = apply(threefry, arrays, [dtypes.uint64] * 2, dtypes.uint64)
    assert got.tolist() == [meaning(*pair) for pair in zip(counters, keys, strict=True)]


def test_threefry_equals_the_published_vectors() -> None:
    published = {  # counter, key: result
        (0, 0): 0x99BA4EFE6B200159,
        (0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF): 0xBB002BE71CB996FC,
        (0x85A308D3243F6A88, 0x0370734413198A2E): 0x483DF7A0C4923A9C,
    }
    counters, keys = np.array(list(published), np.uint64).T.copy()
    got = apply(threefry, [counters, keys], [dtypes.uint64] * 2, dtypes.uint64)
    assert got.tolist() == list(published.values())
