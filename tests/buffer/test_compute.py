"""Operations are graphs that are computed at once, and found again by their layouts."""

from __future__ import annotations

import numpy as np

from glassgrad.base.config import Context
from glassgrad.base.dtype import dtypes
from glassgrad.buffer.buffer import Buffer
from glassgrad.buffer.compute import READY, may_overlap, number, power
from glassgrad.memory.view import View


def test_windows_overlap_if_their_bytes_do() -> None:
    raw = np.zeros(16, np.int32)
    one = View.from_host(raw[:8])
    assert may_overlap(one, View.from_host(raw[7:]))
    assert not may_overlap(one, View.from_host(raw[8:]))
    assert not may_overlap(one, View.from_host(raw[:0]))
    assert may_overlap(View.from_host(raw[::-1]), View.from_host(raw[15:]))


def test_a_number_in_memory_is_kept_but_zeros_keep_their_sign() -> None:
    assert number(2.5, dtypes.float32, "CPU") is number(2.5, dtypes.float32, "CPU")
    assert number(1, dtypes.int32, "CPU") is not number(True, dtypes.int32, "CPU")
    minus = Buffer._of(number(-0.0, dtypes.float32, "CPU").arg)
    assert np.signbit(minus.numpy())
    assert not np.signbit(Buffer._of(number(0.0, dtypes.float32, "CPU").arg).numpy())


def test_a_plan_serves_every_pair_of_one_layout_and_no_other() -> None:
    one, two = Buffer([1.0, 2.0, 3.0]), Buffer([10.0, 20.0, 30.0])
    assert (one - two).to_python() == [-9.0, -18.0, -27.0]
    count = len(READY)
    assert (two - one).to_python() == [9.0, 18.0, 27.0]
    assert len(READY) == count
    assert (one - one).to_python() == [0.0, 0.0, 0.0]
    assert (one - two[::-1]).to_python() == [-29.0, -18.0, -7.0]
    assert (one - 1.0).to_python() == [0.0, 1.0, 2.0]
    assert len(READY) == count + 3
    with Context(NOOPT=1):
        assert (two - one).to_python() == [9.0, 18.0, 27.0]
    assert len(READY) == count + 4


def test_powers_are_products() -> None:
    leaf = Buffer([3])._leaf
    for exponent in range(1, 9):
        value = power(leaf, exponent)
        (got,) = Buffer([3])._made(value).to_python()
        assert got == 3**exponent
