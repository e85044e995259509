"""dtypes: names, vectors, bounds, the promotion lattice."""

import math
import pickle

import numpy as np
import pytest

from glassgrad.base.dtype import (
    NAMES,
    dtypes,
    promote,
    promote_float,
    sum_dtype,
    to_dtype,
    wrap,
)
from glassgrad.base.errors import DTypeError


@pytest.mark.parametrize("dtype", dtypes.all, ids=lambda dtype: dtype.name)
def test_there_is_one_instance_per_dtype(dtype):
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert pickle.loads(pickle.dumps(dtype.vec(4))) is dtype.vec(4)
    assert dtype.vec(4).vec(1) is dtype.vec(1) is dtype
    assert dtypes.named(dtype.name) is dtypes.named(dtype.alias.upper()) is dtype
    assert eval(repr(dtype), {"dtypes": dtypes}) is dtype
    assert eval(repr(dtype.vec(8)), {"dtypes": dtypes}) is dtype.vec(8)


def test_vectors_have_the_size_of_their_elements():
    assert dtypes.float.vec(4).itemsize == 16
    assert dtypes.float.vec(4).scalar is dtypes.float
    assert dtypes.bool.vec(4).itemsize == 4


def test_unknown_names_are_refused_with_the_names_there_are():
    with pytest.raises(DTypeError, match="no dtype 'float23'") as caught:
        dtypes.named("float23")
    assert "float16" in str(caught.value)


def test_to_dtype_takes_dtypes_and_names():
    assert to_dtype("half") is to_dtype(dtypes.half) is dtypes.float16


@pytest.mark.parametrize("dtype", dtypes.ints, ids=lambda dtype: dtype.name)
def test_int_bounds_equal_numpy(dtype):
    found = np.iinfo(dtype.name)
    assert (dtypes.min(dtype), dtypes.max(dtype)) == (found.min, found.max)
    assert dtype.itemsize == np.dtype(dtype.name).itemsize
    assert np.dtype(dtype.fmt) == np.dtype(dtype.name)


def test_float_bounds_are_infinite_where_there_is_infinity():
    assert dtypes.max(dtypes.float) == -dtypes.min(dtypes.float) == math.inf
    assert dtypes.max(dtypes.fp8e4m3) == 448.0
    assert dtypes.max(dtypes.bool) is True


NUMPY_PAIRS = [
    (left, right)
    for left in (dtypes.bool, *dtypes.ints)
    for right in (dtypes.bool, *dtypes.ints)
    if {left, right} & set(dtypes.sints) == set() or dtypes.uint64 not in (left, right)
]


@pytest.mark.parametrize("left, right", NUMPY_PAIRS, ids=lambda dtype: dtype.name)
def test_ints_promote_as_in_numpy(left, right):
    assert promote(left, right).name == np.promote_types(left.name, right.name).name


@pytest.mark.parametrize("left", dtypes.all, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("right", dtypes.all, ids=lambda dtype: dtype.name)
def test_promotion_is_symmetric_and_associative(left, right):
    met = promote(left, right)
    assert met is promote(right, left)
    assert promote(met, left) is promote(met, right) is met
    for third in dtypes.all:
        if {left, right, third} != {*dtypes.fp8s, dtypes.bfloat16}:
            assert promote(left, promote(right, third)) is promote(met, third)


def test_fp8s_and_bfloat16_are_the_one_triple_whose_order_matters():
    one, other = dtypes.fp8s
    assert promote(promote(one, other), dtypes.bfloat16) is dtypes.float
    assert promote(promote(one, dtypes.bfloat16), other) is dtypes.bfloat16


@pytest.mark.parametrize(
    "left, right, met",
    [
        (dtypes.uint64, dtypes.int8, dtypes.uint64),
        (dtypes.int64, dtypes.half, dtypes.half),
        (dtypes.half, dtypes.bfloat16, dtypes.float),
        (dtypes.fp8e4m3, dtypes.fp8e5m2, dtypes.half),
        (dtypes.bool, dtypes.float, dtypes.float),
        (dtypes.float, dtypes.double, dtypes.double),
    ],
)
def test_promotions_that_differ_from_numpy(left, right, met):
    assert promote(left, right) is met


def test_ints_become_the_default_float():
    assert promote_float(dtypes.int64, dtypes.bool) is dtypes.float
    assert promote_float(dtypes.int64, dtypes.half) is dtypes.half


def test_sums_of_small_ints_have_larger_dtypes():
    assert sum_dtype(dtypes.int8) is sum_dtype(dtypes.bool) is dtypes.int32
    assert sum_dtype(dtypes.uint16) is dtypes.uint32
    assert sum_dtype(dtypes.int64) is dtypes.int64
    assert sum_dtype(dtypes.half) is dtypes.half


def test_the_dtype_of_python_values():
    assert dtypes.from_py(True) is dtypes.bool
    assert dtypes.from_py(3) is dtypes.int
    assert dtypes.from_py([1, [2.0, True]]) is dtypes.float
    assert dtypes.from_py([]) is dtypes.float
    with pytest.raises(DTypeError, match="cannot infer a dtype from str"):
        dtypes.from_py(["a"])


def test_constants_wrap():
    assert wrap(300, dtypes.uchar) == 44
    assert wrap(200, dtypes.char) == -56
    assert wrap(2, dtypes.bool) is True
    assert wrap(1, dtypes.float).__class__ is float
    assert wrap(1 << 70, dtypes.index) == 1 << 70
    with pytest.raises(DTypeError, match="inf"):
        wrap(math.inf, dtypes.int)


def test_names_and_aliases_do_not_collide():
    assert len({id(dtype) for dtype in NAMES.values()}) == len(dtypes.all) + 2


def test_groups():
    assert dtypes.is_float(dtypes.half)
    assert dtypes.is_int(dtypes.index)
    assert not dtypes.is_int(dtypes.bool)
    assert dtypes.is_unsigned(dtypes.uchar)
    assert dtypes.is_bool(dtypes.bool)
    assert dtypes.finfo(dtypes.half) == (5, 10)
