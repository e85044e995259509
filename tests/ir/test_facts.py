"""Facts: free ranges, bounds that hold for every value, substitution."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassgrad.base.dtype import dtypes
from glassgrad.ir.fold import fold
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Param
from glassgrad.ir.uop import UOp, const, make_range, variable

i, j = make_range(0, 4), make_range(1, 5, AxisKind.REDUCE)
param = UOp(Ops.PARAM, dtypes.float, (), Param(0, (4, 5), (5, 1)))
load = param.index(i, j).load()


def test_ranges_are_free_until_something_binds_them():
    total = UOp(Ops.REDUCE, dtypes.float, (load, j), Ops.ADD)
    assert load.ranges == {i, j}
    assert total.ranges == {i}
    store = UOp(Ops.STORE, dtypes.void, (param.index(i, const(0)), total, i))
    assert store.ranges == frozenset()
    assert const(3).ranges == frozenset()


def test_the_size_of_a_range_may_have_ranges():
    triangle = make_range(2, i + 1)
    assert triangle.ranges == {i, triangle}


def test_substitution_replaces_everywhere_and_once():
    v, w = variable("v", 0, 9), variable("w", 0, 9)
    assert (v * 2 + v).substitute({v: w}) is w * 2 + w
    assert (v + w).substitute({v: w, w: v}) is w + v
    assert (v + w).substitute({v: v + 1}) is v + 1 + w
    kept = v * 3
    assert kept.substitute({w: v}) is kept


OPERATIONS = [
    Ops.ADD, Ops.SUB, Ops.MUL, Ops.FLOORDIV, Ops.FLOORMOD, Ops.CDIV, Ops.MAX, Ops.MIN, Ops.AND,
    Ops.OR, Ops.XOR, Ops.SHL, Ops.SHR, Ops.CMPLT, Ops.CMPEQ, Ops.CMPNE, Ops.NEG, Ops.CAST,
    Ops.WHERE,
]  # fmt: skip
INTS = [dtypes.index, dtypes.int, dtypes.uchar, dtypes.char]


@st.composite
def expressions(draw):
    """An integer expression of variables, and values for these."""
    dtype = draw(st.sampled_from(INTS))
    low = draw(st.integers(max(int(dtypes.min(dtype)), -20), 20))
    high = draw(st.integers(low, 40))
    other = draw(st.integers(max(int(dtypes.min(dtype)), -3), 5))
    leaves = {
        UOp(Ops.VARIABLE, dtype, (), ("a", low, high)): draw(st.integers(low, high)),
        UOp(Ops.VARIABLE, dtype, (), ("b", other, other + 3)): draw(st.integers(other, other + 3)),
    }
    nodes = [*leaves, const(draw(st.integers(-4, 9)), dtype)]
    bools = []
    for _ in range(draw(st.integers(1, 6))):
        op = draw(st.sampled_from(OPERATIONS))
        if op is Ops.WHERE and bools:
            nodes.append(
                draw(st.sampled_from(bools)).where(*[draw(st.sampled_from(nodes)) for _ in "xy"])
            )
        elif op is Ops.CAST and bools:
            nodes.append(draw(st.sampled_from(bools)).cast(dtype))
        elif op.arity == 2 or op is Ops.NEG:
            made = draw(st.sampled_from(nodes)).alu(
                op, *[draw(st.sampled_from(nodes)) for _ in range(op.arity - 1)]
            )
            (bools if made.dtype is dtypes.bool else nodes).append(made)
    return draw(st.sampled_from([nodes[-1], *bools[-1:]])), leaves


@settings(max_examples=600)
@given(expressions())
def test_bounds_hold(expression):
    root, leaves = expression
    result = dict(leaves)
    for node in root.toposort():
        if node.op is Ops.CONST:
            result[node] = node.arg
        elif node not in result:
            args = tuple(result[source] for source in node.src)
            result[node] = fold(node.op, node.dtype, args, node.src[-1].dtype)
        assert node.vmin <= result[node] <= node.vmax, f"{node.bounds} of {node}"


@pytest.mark.parametrize(
    "node, bounds",
    [
        (i, (0, 3)),
        (i * 5 + j, (0, 19)),
        (i - j, (-4, 3)),
        ((i * 5 + j) // 5, (0, 3)),
        ((i * 5 + j) % 7, (0, 6)),
        (j % 7, (0, 4)),
        (i < 4, (True, True)),
        (i < 0, (False, False)),
        (i.eq(7), (False, False)),
        (i.ne(7), (True, True)),
        (-i, (-3, 0)),
        (i.maximum(2), (2, 3)),
        ((i < 2).where(i, const(9)), (0, 9)),
        (make_range(0, 0), (0, 0)),
        (variable("n", 2, 8), (2, 8)),
        (UOp(Ops.SPECIAL, dtypes.int, (), ("gidx0", 16)), (0, 15)),
    ],
)
def test_bounds_are_tight(node, bounds):
    assert node.bounds == bounds


def test_bounds_that_would_wrap_are_those_of_the_dtype():
    byte = UOp(Ops.VARIABLE, dtypes.uchar, (), ("byte", 0, 255))
    assert (byte + 1).bounds == (0, 255)
    assert (-byte).bounds == (0, 255)


def test_bounds_of_a_deep_expression_need_no_recursion():
    node = variable("deep", 0, 1)
    for _ in range(10_000):
        node = node + 1
    assert node.bounds == (10_000, 10_001)
