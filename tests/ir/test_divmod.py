"""Index algebra: a simplified expression has the same value for every value of its ranges."""

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st
from support.compiler.index_expressions import RANGES, value_of

from glassgrad.base.dtype import dtypes
from glassgrad.ir.divmod import TRUE, floordiv, less, mod, within
from glassgrad.ir.linear import (
    add,
    build,
    flat,
    linear,
    minimum,
    scale,
    sub,
    total,
    without_remainders,
)
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp, const, make_range


@st.composite
def expressions(draw: st.DrawFn, depth: int = 4) -> tuple[UOp, object]:
    """A canonical expression and a plain function of the ranges' values with the same meaning."""
    if depth == 0 or (draw(st.booleans()) and depth < 3):
        which = draw(st.integers(0, 3))
        return RANGES[which], lambda v: v[which]
    left, f = draw(expressions(depth - 1))
    kind = draw(st.sampled_from(["add", "scale", "div", "mod", "shift", "sub", "min"]))
    if kind in ("add", "sub", "min"):
        right, g = draw(expressions(depth - 1))
        if kind == "add":
            return add(left, right), lambda v: f(v) + g(v)
        if kind == "min":
            return minimum(left, right), lambda v: min(f(v), g(v))
        return sub(left, right), lambda v: f(v) - g(v)
    amount = draw(st.integers(-7, 7)) if kind in ("scale", "shift") else draw(st.integers(1, 12))
    if kind == "scale":
        return scale(left, amount), lambda v: f(v) * amount
    if kind == "shift":
        return add(left, amount), lambda v: f(v) + amount
    if kind == "div":
        return floordiv(left, amount), lambda v: f(v) // amount
    return mod(left, amount), lambda v: f(v) % amount


@settings(max_examples=1500, deadline=None)
@given(expressions(), st.integers(-20, 20))
def test_simplified_expressions_keep_their_value_and_stay_in_bounds(pair, limit):
    node, meaning = pair
    condition = less(node, limit)
    for values in product(*(range(r.size) for r in RANGES)):
        at = dict(zip(RANGES, values, strict=True))
        expected = meaning(values)
        assert value_of(node, at) == expected
        assert node.vmin <= expected <= node.vmax
        assert value_of(condition, at) == (expected < limit)


def test_splitting_and_joining_an_axis_gives_the_axis_back():
    r = make_range(0, 24)
    assert total((floordiv(r, 6), mod(r, 6)), (6, 1)) is r
    assert total((floordiv(r, 12), mod(floordiv(r, 3), 4), mod(r, 3)), (12, 3, 1)) is r


def test_joining_and_splitting_axes_gives_the_axes_back():
    a, b, c = make_range(0, 3), make_range(1, 4), make_range(2, 5)
    flat = total((a, b, c), (20, 5, 1))
    assert floordiv(flat, 20) is a
    assert mod(floordiv(flat, 5), 4) is b
    assert mod(flat, 5) is c


def test_a_flat_address_is_the_sum_of_its_terms():
    i, j, k, n = RANGES
    places = (
        ((i, j, k), (12, 4, 1)),
        ((floordiv(n, 2), mod(n, 2)), (2, 1)),  # these are n again
        ((add(i, j), sub(const(7), j)), (3, 3)),  # j is gone
        ((add(scale(k, 2), 1), const(3)), (5, 0)),
    )
    for indices, strides in places:
        assert flat(indices, strides) == linear(total(indices, strides))


def test_equal_sums_are_the_same_node():
    a, b = make_range(0, 3), make_range(1, 4)
    assert add(a, b, 1) is add(1, b, a)
    assert sub(add(a, b), a) is b
    assert linear(scale(add(a, 2), 3)).constant == 6


def test_known_conditions_vanish():
    r = make_range(0, 8)
    assert within(r, 0, 8) == ()
    assert less(r, 8) is TRUE
    assert len(within(sub(r, 1), 0, 6)) == 2


def test_common_factors_leave_comparisons():
    r = make_range(0, 8)
    assert less(scale(r, 4), 10) is less(r, 3)
    assert less(const(0), const(1)) is TRUE
    assert less(r, 3).dtype is dtypes.bool


def test_a_remainder_without_multiples_of_its_divisor_still_meets_its_quotient():
    block, step = make_range(0, 10), make_range(1, 8)
    place = add(scale(block, 8), step)
    whole, rest = floordiv(place, 3), mod(place, 3)
    assert linear(rest.src[0]).terms[block] == 2, "eight are two and a multiple of three"
    assert total((floordiv(whole, 3), mod(whole, 3), rest), (9, 3, 1)) is place
    assert total((whole, rest), (3, 2)) is not place


@given(st.integers(2, 7), st.integers(-9, 9), st.integers(-9, 9), st.integers(0, 4))
def test_a_quotient_beside_its_remainder_is_all_that_is_divided(
    divisor: int, a: int, b: int, offset: int
) -> None:
    x = add(scale(RANGES[2], 5), RANGES[3], offset)
    found = flat((floordiv(x, divisor), mod(x, divisor)), (a, b))
    made = without_remainders(found)
    quotients = {atom.src for atom in made.terms if atom.op is Ops.FLOORDIV}
    assert not [n for n in made.terms if n.op is Ops.FLOORMOD and n.src in quotients]
    for values in product(*(range(r.size) for r in RANGES)):
        at = dict(zip(RANGES, values, strict=True))
        number = value_of(x, at)
        assert value_of(build(made), at) == a * (number // divisor) + b * (number % divisor)
