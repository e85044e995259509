"""Operations are graphs that run at once; plans are cached by layouts."""

from __future__ import annotations

import numpy as np

from glassgrad.base.config import Context
from glassgrad.base.dtype import dtypes
from glassgrad.buffer.buffer import Buffer
from glassgrad.buffer.compute import PLANS, integer_power, may_overlap, number_buffer
from glassgrad.memory.view import View


def test_windows_overlap_if_their_bytes_do() -> None:
    raw = np.zeros(16, np.int32)
    one = View.from_host(raw[:8])
    assert may_overlap(one, View.from_host(raw[7:]))
    assert not may_overlap(one, View.from_host(raw[8:]))
    assert not may_overlap(one, View.from_host(raw[:0]))
    assert may_overlap(View.from_host(raw[::-1]), View.from_host(raw[15:]))


def test_a_number_in_memory_is_kept_but_zeros_keep_their_sign() -> None:
    assert number_buffer(2.5, dtypes.float32, "CPU") is number_buffer(2.5, dtypes.float32, "CPU")
    assert number_buffer(1, dtypes.int32, "CPU") is not number_buffer(True, dtypes.int32, "CPU")
    minus = Buffer._from_view(number_buffer(-0.0, dtypes.float32, "CPU").arg)
    assert np.signbit(minus.numpy())
    assert not np.signbit(Buffer._from_view(number_buffer(0.0, dtypes.float32, "CPU").arg).numpy())


def test_a_plan_serves_every_pair_of_one_layout_and_no_other() -> None:
    one, two = Buffer([1.0, 2.0, 3.0]), Buffer([10.0, 20.0, 30.0])
    assert (one - two).to_python() == [-9.0, -18.0, -27.0]
    count = len(PLANS)
    assert (two - one).to_python() == [9.0, 18.0, 27.0]
    assert len(PLANS) == count
    assert (one - one).to_python() == [0.0, 0.0, 0.0]
    assert (one - two[::-1]).to_python() == [-29.0, -18.0, -7.0]
    assert (one - 1.0).to_python() == [0.0, 1.0, 2.0]
    assert len(PLANS) == count + 3
    with Context(NOOPT=1):
        assert (two - one).to_python() == [9.0, 18.0, 27.0]
    assert len(PLANS) == count + 4


def test_powers_are_products() -> None:
    leaf = Buffer([3])._as_operand
    for exponent in range(1, 9):
        value = integer_power(leaf, exponent)
        (got,) = Buffer([3])._compute(value).to_python()
        assert got == 3**exponent
