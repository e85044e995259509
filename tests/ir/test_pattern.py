"""Patterns: expressions of variables, rules made of them, and how they print."""

import pytest

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.pattern import (
    Apply,
    Literal,
    Rule,
    Rules,
    c,
    d,
    f,
    fold,
    guard,
    i,
    node,
    orders,
    p,
    positive,
    varying,
    x,
    y,
    z,
)
from glassgrad.ir.rewrite import rewrite
from glassgrad.ir.uop import UOp, const, variable

v, w = variable("v", -5, 10), variable("w", 1, 9)
u = UOp(Ops.VARIABLE, dtypes.float, (), ("u", 0, 1))


def test_operators_build_patterns_of_their_op():
    built = {
        Ops.ADD: x + y, Ops.SUB: x - y, Ops.MUL: x * y, Ops.FDIV: x / y, Ops.FLOORDIV: x // y,
        Ops.FLOORMOD: x % y, Ops.AND: x & y, Ops.OR: x | y, Ops.XOR: x ^ y, Ops.SHL: x << y,
        Ops.SHR: x >> y, Ops.CMPLT: x < y, Ops.CMPEQ: x.eq(y), Ops.CMPNE: x.ne(y),
        Ops.MAX: x.maximum(y), Ops.MIN: x.minimum(y),
    }  # fmt: skip
    for op, pattern in built.items():
        assert pattern == Apply(op, (x, y))
    assert -x == Apply(Ops.NEG, (x,))
    assert p.where(x, 0) == Apply(Ops.WHERE, (p, x, Literal(0)))


def test_rules_print_as_they_are_written():
    assert str(Rule((x + c) + d, x + fold(c + d))) == "(x + c) + d  ->  x + fold(c + d)"
    assert str(Rule(p.where(x, x), x)) == "where(p, x, x)  ->  x"


def test_commutative_patterns_are_tried_in_all_orders():
    assert len(orders((x + c) + d)) == 4
    assert len(orders(x + x)) == 1
    assert len(orders(x - c)) == 1


@pytest.mark.parametrize("left, right", [(v, 3), (v, w)])
def test_a_variable_that_stands_twice_matches_one_node_only(left, right):
    same = Rules("same", Rule(x - x, 0))
    assert rewrite(v - v, same) is const(0)
    assert rewrite(left - right, same) is left - right


def test_variables_of_a_kind_match_only_that_kind():
    rules = Rules("kinds", Rule(i + 0, i), Rule(f * 1, f))
    assert rewrite(v + 0, rules) is v
    assert rewrite(u + 0, rules) is u + 0
    assert rewrite(u * 1, rules) is u
    assert rewrite(v * 1, rules) is v * 1


def test_zero_is_not_minus_zero():
    rules = Rules("zero", Rule(x + -0.0, x))
    assert rewrite(u + -0.0, rules) is u
    assert rewrite(u + 0.0, rules) is u + 0.0


def test_true_is_not_one():
    rules = Rules("true", Rule(x & True, x))
    assert rewrite(v & 1, rules) is v & 1
    assert rewrite((v < w) & True, rules) is (v < w)


def test_when_sees_what_variables_matched():
    guarded = Rules("guard", Rule((x // c) // d, x // fold(c * d), when=positive(c, d)))
    assert rewrite(v // 2 // 3, guarded) is v // 6
    assert rewrite(v // -2 // 3, guarded) is v // -2 // 3
    by_name = Rules("names", Rule(x * c, x, when=lambda c: c.arg == 7))
    assert rewrite(v * 7, by_name) is v
    assert rewrite(v * 8, by_name) is v * 8


def test_guards_join():
    rules = Rules(
        "join", Rule(x + y, y, when=guard(lambda f: f.dtype.kind != "float", x) & varying(x, y))
    )
    assert rewrite(v + w, rules) in (v, w)
    assert rewrite(v + 1, rules) is v + 1
    assert rewrite(u + u.alu(Ops.NEG), rules) is u + -u


def test_numbers_on_the_right_take_the_dtype_around_them():
    rules = Rules("dtype", Rule(x < y, (y + 1).ne(0)), Rule(p.where(x, x), 2), Rule(x - x, 0))
    compared = rewrite(u < u.alu(Ops.SQRT), rules)
    assert compared.dtype is dtypes.bool
    assert compared.src[1] is const(0.0, dtypes.float)
    condition = UOp(Ops.VARIABLE, dtypes.bool, (), ("b", 0, 1))
    assert rewrite(condition.where(u, u), rules) is const(2.0, dtypes.float)


def test_a_fold_on_the_left_is_refused():
    with pytest.raises(TypeError, match="right side"):
        Rules("bad", Rule(x + fold(c + d), x)).matchers()[Ops.ADD]


def test_numbers_without_a_dtype_are_refused():
    with pytest.raises(TypeError, match="dtype"):
        Rules("bad", Rule(x + y, node(Ops.CMPLT, 1, 2))).matchers()[Ops.ADD]


def test_rules_add_up_in_order():
    first, second = Rules("first", Rule(x + y, x)), Rules("second", Rule(x + y, y), Rule(-x, x))
    both = first + second
    assert (both.name, len(both)) == ("first + second", 3)
    assert rewrite(v + w, both) is v
    assert rewrite(v + w, second + first) is w
    assert rewrite(v + 1, Rules("z", Rule(z + 1, z))) is v


def test_functions_become_rules_and_may_take_a_context():
    rules = Rules("functions")

    @rules.rule(Ops.NEG)
    def drop(found):
        return found.src[0]

    @rules.rule({Ops.ADD, Ops.SUB})
    def count(found, seen):
        seen.append(found.op)

    seen = []
    assert rewrite((-v + w) - 1, rules, ctx=seen) is (v + w) - 1
    assert seen == [Ops.ADD, Ops.SUB]


def test_a_rule_added_later_is_used():
    rules = Rules("late", Rule(x + 0, x))
    assert rewrite(-v, rules) is -v

    @rules.rule(Ops.NEG)
    def drop(found):
        return found.src[0]

    assert rewrite(-v, rules) is v
