"""Running sums, products and extremes against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.references.finite_differences import check
from support.values.arrays import SHAPES, distinct, numbers, same

from glassgrad import Tensor
from glassgrad.ir.ops import Ops

ON_BOTH_BACKENDS = True
LENGTHS = (1, 2, 3, 8, 16, 17, 32, 40, 69, 700)  # of vectors, and some that are not


@pytest.mark.parametrize("length", LENGTHS)
def test_scans_of_whole_vectors_and_of_others(length: int) -> None:
    x = numbers((length,), "float64")
    same(Tensor(x).cumsum(), np.cumsum(x))
    same(Tensor(x).cummax()[0], np.maximum.accumulate(x))
    same(Tensor(x).cummin()[0], np.minimum.accumulate(x))
    near = 1 + x / 50
    same(Tensor(near).cumprod(0), np.cumprod(near), rtol=1e-12)
    same(Tensor(x).logcumsumexp(), np.logaddexp.accumulate(x), rtol=1e-12, atol=1e-14)


@settings(max_examples=20)
@given(SHAPES, st.data())
def test_scans_along_any_axis(shape: tuple[int, ...], data: st.DataObject) -> None:
    if not shape:
        return
    x = numbers(shape, "float64")
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    same(Tensor(x).cumsum(axis), np.cumsum(x, axis))
    same(Tensor(x).cumprod(axis), np.cumprod(x, axis))
    same(Tensor(x).cummax(axis)[0], np.maximum.accumulate(x, axis))


def test_scans_of_ints_widen_as_sums_do() -> None:
    x = numbers((40,), "int8")
    for scan, wanted in ((Tensor(x).cumsum(), np.cumsum(x)), (Tensor(x).cumprod(0), None)):
        assert scan.dtype is Tensor(x).sum().dtype
        if wanted is not None:
            assert scan.tolist() == wanted.tolist()
    assert Tensor([True, False, True]).cumsum().tolist() == [1, 1, 2]
    assert Tensor([False, True, False]).cummax()[0].tolist() == [False, True, True]


def test_narrow_floats_are_added_in_wider_ones() -> None:
    x = Tensor.ones(3000, dtype="float16").cumsum()
    assert x.dtype.name == "float16"
    assert x[2047:2051].tolist() == [2048, 2048, 2050, 2052]


def test_extremes_say_where_they_were_last() -> None:
    x = np.array([1.0, 3.0, 2.0, 3.0, -1.0] * 20)
    _, index = Tensor(x).cummax()
    best, place = -np.inf, []
    for i, value in enumerate(x):
        if value >= best:
            best, at = value, i
        place.append(at)
    assert index.tolist() == place
    assert Tensor([2.0, 2.0, 5.0]).cummin()[1].tolist() == [0, 1, 1]


def test_nan_stays_once_it_is_met() -> None:
    x = [1.0, float("nan"), 3.0]
    values, index = Tensor(x).cummax()
    np.testing.assert_array_equal(values.numpy(), np.array([1, np.nan, np.nan], "f"))
    assert index.tolist() == [0, 1, 1]


def test_logcumsumexp_neither_overflows_nor_minds_nothing() -> None:
    x = np.array([-np.inf, 1e3, -1e3, 2e3] * 20)
    same(Tensor(x).logcumsumexp(), np.logaddexp.accumulate(x), rtol=1e-12)


def test_scans_of_a_single_number_are_itself() -> None:
    assert Tensor(3.0).cumsum().item() == 3
    assert Tensor(3.0).cummax()[0].item() == 3


def test_a_long_scan_costs_work_in_proportion() -> None:
    graph = Tensor.empty(1 << 20).cumsum().uop.toposort()
    windows = [np.prod(node.shape, dtype=np.int64) for node in graph if node.op is Ops.WINDOW]
    assert sum(windows) < 12 * (1 << 20)


def test_gradients_of_scans() -> None:
    x = distinct((2, 3))
    check(lambda t: t.cumsum(1), x)
    check(lambda t: t.cumprod(1), x)
    check(lambda t: t.cummax(1)[0], x)
    check(lambda t: t.cummin(0)[0], x)
    check(lambda t: t.logcumsumexp(1), x)
    check(lambda t: (t * t).cumsum(), distinct((40,)))
