"""Every row of the table, on every dtype that it allows, against the semantics of ops."""

import math
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.values.numbers import same, values

from glassgrad.base.dtype import dtypes
from glassgrad.ir.algebra import ALGEBRA, can_skip, is_lossless
from glassgrad.ir.fold import fold
from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.pattern import Apply, Constant, Literal, Rule, Rules, Wild
from glassgrad.ir.rewrite import rewrite
from glassgrad.ir.uop import UOp, const, variable

ROWS = [rule for rule in ALGEBRA.rules if isinstance(rule, Rule)]
EVERY = (*dtypes.all, dtypes.index)
FLOATS_ONLY = {Ops.FDIV, Ops.POW, Ops.RECIPROCAL, Ops.SQRT, Ops.EXP2, Ops.LOG2, Ops.SIN}
INTS_ONLY = {Ops.FLOORDIV, Ops.FLOORMOD, Ops.CDIV, Ops.CMOD, Ops.SHL, Ops.SHR}
NOT_FLOATS = {Ops.AND, Ops.OR, Ops.XOR}
NOT_BOOLS = {Ops.NEG, Ops.SUB, Ops.TRUNC}


class DoesNotFit(Exception):
    """The pattern cannot be built with these dtypes."""


def allows(op, dtype):
    if op is Ops.THREEFRY:
        return dtype is dtypes.uint64
    if op in FLOATS_ONLY:
        return dtype.kind == "float"
    if op in INTS_ONLY:
        return dtypes.is_int(dtype)
    if op in NOT_FLOATS:
        return dtype.kind != "float"
    return op not in NOT_BOOLS or dtype.kind != "bool"


def build(pattern, dtype, compared, numbers):
    """The left side of a rule as nodes: variables are VARIABLEs, constants have drawn values."""
    if isinstance(pattern, Wild):
        if pattern.kinds and dtype.kind not in pattern.kinds:
            raise DoesNotFit
        return UOp(Ops.VARIABLE, dtype, (), (pattern.name, dtypes.min(dtype), dtypes.max(dtype)))
    if isinstance(pattern, Constant):
        return const(numbers(dtype, pattern.name), dtype)
    if isinstance(pattern, Literal):
        if isinstance(pattern.value, bool) != (dtype.kind == "bool"):
            raise DoesNotFit
        return const(pattern.value, dtype)
    assert isinstance(pattern, Apply)
    inner = [dtype] * len(pattern.src)
    if pattern.op in OpGroup.COMPARISON:
        if dtype.kind != "bool":
            raise DoesNotFit
        inner = [compared] * 2
    elif pattern.op is Ops.WHERE:
        inner[0] = dtypes.bool
    if not allows(pattern.op, inner[-1]):
        raise DoesNotFit
    src = [build(*pair, compared, numbers) for pair in zip(pattern.src, inner, strict=True)]
    return src[0].alu(pattern.op, *src[1:])


def compares(pattern):
    if not isinstance(pattern, Apply):
        return False
    return pattern.op in OpGroup.COMPARISON or any(map(compares, pattern.src))


@cache
def choices(row):
    """The dtypes that a row can be built with: (of the root, of what comparisons compare)."""
    found = []
    for dtype in EVERY:
        for compared in EVERY if compares(row.left) else (dtype,):
            try:
                build(row.left, dtype, compared, lambda dtype, name: 1)
            except DoesNotFit:
                continue
            found.append((dtype, compared))
    return found


def evaluate(root, numbers):
    result = {}
    for node in root.toposort():
        if node.op is Ops.CONST:
            result[node] = fold(Ops.CAST, node.dtype, (node.arg,))
        elif node.op is Ops.VARIABLE:
            result[node] = numbers(node.dtype, node.arg[0])
        else:
            args = tuple(result[source] for source in node.src)
            result[node] = fold(node.op, node.dtype, args, node.src[-1].dtype)
    return result[root]


def drawn(data):
    seen = {}

    def number(dtype, name):
        if (dtype, name) not in seen:
            seen[dtype, name] = data.draw(values(dtype), label=f"{name}: {dtype.name}")
        return seen[dtype, name]

    return number


@pytest.mark.parametrize("row", ROWS, ids=str)
@settings(max_examples=12)
@given(data=st.data())
def test_both_sides_of_a_row_are_equal(row, data):
    for dtype, compared in choices(row):
        numbers = drawn(data)
        left = build(row.left, dtype, compared, numbers)
        right = rewrite_once(left, row)
        assert right.dtype is left.dtype
        assert same(evaluate(left, numbers), evaluate(right, numbers), signed=not has_choice(left))


def rewrite_once(left, row):
    after = Rules("row", row).matchers()[left.op](left, None)
    return left if after is None else after


def has_choice(root):
    """MAX and MIN of 0.0 and -0.0 may give either."""
    return any(node.op in (Ops.MAX, Ops.MIN) for node in root.toposort())


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_every_row_fires(row):
    for dtype, compared in choices(row):
        for number in (3, 2):
            left = build(row.left, dtype, compared, lambda dtype, name, n=number: n)
            if rewrite_once(left, row) is not left:
                return
    raise AssertionError("no dtype makes this row fire")


@settings(max_examples=400)
@given(st.sampled_from(EVERY), st.sampled_from(EVERY), st.sampled_from(EVERY), st.data())
def test_a_skipped_cast_changes_nothing(first, middle, last, data):
    value = data.draw(values(first))
    if can_skip(first, middle, last):
        there = fold(Ops.CAST, middle, (value,), first)
        assert same(fold(Ops.CAST, last, (there,), middle), fold(Ops.CAST, last, (value,), first))


@settings(max_examples=400)
@given(st.sampled_from(EVERY), st.sampled_from(EVERY), st.data())
def test_a_lossless_cast_can_be_undone(first, second, data):
    value = data.draw(values(first))
    if is_lossless(first, second) and second.kind != "bool":
        there = fold(Ops.CAST, second, (value,), first)
        assert same(fold(Ops.CAST, first, (there,), second), value)


def test_small_ints_fit_floats_and_large_ones_do_not():
    assert is_lossless(dtypes.int16, dtypes.float)
    assert not is_lossless(dtypes.int32, dtypes.float)
    assert is_lossless(dtypes.int32, dtypes.double)
    assert is_lossless(dtypes.uint8, dtypes.bfloat16)
    assert not is_lossless(dtypes.uint16, dtypes.bfloat16)
    assert not is_lossless(dtypes.uint8, dtypes.fp8e4m3)


@st.composite
def expressions(draw):
    """An expression of one dtype, bools and casts, with a few shared nodes and constants."""
    dtype = draw(st.sampled_from(EVERY))
    bounds = dtypes.min(dtype), dtypes.max(dtype)
    nodes = [UOp(Ops.VARIABLE, dtype, (), (name, *bounds)) for name in "ab"]
    nodes += [const(draw(st.sampled_from([0, 1, 2, 7])), dtype) for _ in range(2)]
    bools = [UOp(Ops.VARIABLE, dtypes.bool, (), (name, False, True)) for name in "pq"]
    bools += [const(True, dtypes.bool), const(False, dtypes.bool)]
    plain = OpGroup.ELEMENTWISE - {Ops.CAST, Ops.BITCAST}
    for _ in range(draw(st.integers(2, 14))):
        op = draw(st.sampled_from(sorted(plain)))
        on_bools = draw(st.integers(0, 3)) == 0
        pool = bools if on_bools else nodes
        if not allows(op, pool[0].dtype):
            continue
        src = [draw(st.sampled_from(pool)) for _ in range(op.arity)]
        if op is Ops.WHERE:
            src[0] = draw(st.sampled_from(bools))
        made = src[0].alu(op, *src[1:])
        (bools if made.dtype is dtypes.bool else nodes).append(made)
    return draw(st.sampled_from([nodes[-1], bools[-1]]))


@settings(max_examples=500)
@given(expressions(), st.data())
def test_whole_expressions_keep_their_value_and_come_to_rest(before, data):
    after = rewrite(before, ALGEBRA)
    assert rewrite(after, ALGEBRA) is after
    numbers = drawn(data)
    found, expected = evaluate(after, numbers), evaluate(before, numbers)
    assert same(found, expected, signed=not has_choice(before))


v, w = variable("v", 0, 10), variable("w", 0, 10)
u = UOp(Ops.VARIABLE, dtypes.float, (), ("u", 0, 1))


@pytest.mark.parametrize(
    "before, after",
    [
        ((v + 2) * 3 + v, v * 4 + 6),
        (((v + 1) + w) + 2, (v + w) + 3),
        ((v * 4 + 8) // 1 - v * 4, const(8)),
        (const(2) + v, v + 2),
        ((v + 3) < 5, v < 2),
        ((v < w).ne(True).where(v, w), (v < w).where(w, v)),
        (u.cast(dtypes.double).cast(dtypes.float), u),
        (u.alu(Ops.FDIV, u.const_like(4.0)), u * 0.25),
        (v.bitcast(dtypes.long).bitcast(dtypes.index), v),
    ],
)
def test_expressions_become_simple(before, after):
    assert rewrite(before, ALGEBRA) is after


@pytest.mark.parametrize(
    "kept", [u * 0.0, u + 0.0, u - u, u.ne(u), u.alu(Ops.FDIV, u.const_like(3.0)), (u + 1.0) + 2.0]
)
def test_what_is_not_exact_for_floats_is_kept(kept):
    assert rewrite(kept, ALGEBRA) is kept


def test_the_bits_of_nan_are_not_folded():
    bits = const(math.nan, dtypes.float).bitcast(dtypes.int)
    assert rewrite(bits, ALGEBRA) is bits


def test_constants_of_every_dtype_are_folded():
    for dtype in EVERY:
        three = const(3, dtype)
        assert rewrite(three + three * three, ALGEBRA).op is Ops.CONST
