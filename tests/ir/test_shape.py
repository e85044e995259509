"""Shapes of graph nodes, against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.shape import broadcast
from glassgrad.ir.uop import UOp, const

ONE = const(1.0, dtypes.float)


def value(*shape):
    ones = UOp(Ops.RESHAPE, dtypes.float, (ONE,), (1,) * len(shape))
    return UOp(Ops.EXPAND, dtypes.float, (ones,), shape)


@given(
    st.lists(
        st.lists(st.sampled_from([0, 1, 1, 3, 4]), max_size=4).map(tuple), min_size=1, max_size=3
    )
)
def test_broadcasting_equals_numpy(shapes):
    try:
        expected = np.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(ValueError, match="do not broadcast"):
            broadcast(*shapes)
    else:
        assert broadcast(*shapes) == expected


@pytest.mark.parametrize(
    "op, arg, shape",
    [
        (Ops.RESHAPE, (6, 4), (6, 4)),
        (Ops.PERMUTE, (2, 0, 1), (4, 2, 3)),
        (Ops.PAD, ((1, 0), (0, 0), (2, 2)), (3, 3, 8)),
        (Ops.SHRINK, ((0, 1), (1, 3), (0, 0)), (1, 2, 0)),
        (Ops.FLIP, (0,), (2, 3, 4)),
        (Ops.WINDOW, (2, 2, 1, 1), (2, 3, 3, 2)),
        (Ops.WINDOW, (2, 2, 2, 1), (2, 3, 2, 2)),
        (Ops.WINDOW, (2, 2, 1, 3), (2, 3, 1, 2)),
        (Ops.WINDOW_ADJOINT, (0, 9, 1, 1), (9, 3, 4)),
        (Ops.REDUCE, (Ops.ADD, (0, 2)), (3,)),
        (Ops.REDUCE, (Ops.MAX, ()), (2, 3, 4)),
        (Ops.CONTIGUOUS, None, (2, 3, 4)),
        (Ops.DETACH, None, (2, 3, 4)),
        (Ops.COPY, "CPU", (2, 3, 4)),
        (Ops.CAST, None, (2, 3, 4)),
    ],
)
def test_shapes_follow_from_the_source(op, arg, shape):
    assert UOp(op, dtypes.float, (value(2, 3, 4),), arg).shape == shape


def test_elementwise_shapes_broadcast():
    assert (value(4, 1) + value(3)).shape == (4, 3)
    assert (ONE + value(3)).shape == (3,)
    condition = value(2, 1).ne(ONE)
    assert condition.where(value(3), ONE).shape == (2, 3)


def test_gathered_values_have_the_shape_of_the_index():
    index = UOp(Ops.CAST, dtypes.int, (value(2, 7),))
    assert UOp(Ops.GATHER, dtypes.float, (value(2, 5), index), 1).shape == (2, 7)


def test_leaves_have_their_own_shape():
    assert UOp(Ops.IOTA, dtypes.int, (), 5).shape == (5,)
    assert ONE.shape == ()
