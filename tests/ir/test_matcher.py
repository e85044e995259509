"""Generated matchers: compiled when needed, as short as the rules allow."""

import sys

from glassgrad.base.origin import _is_user_code
from glassgrad.ir.matcher import Names, compile_matcher, source_of
from glassgrad.ir.ops import Ops
from glassgrad.ir.pattern import Rule, Rules, c, d, fold, i, node, x, y
from glassgrad.ir.uop import UOp, const, variable

v, w = variable("v", 0, 10), variable("w", 0, 10)


def test_a_rule_becomes_tests_and_an_action():
    rules = Rules("one", Rule(x - (y + c), x))
    assert source_of(rules, Ops.SUB, Names()) == (
        "def match(n, ctx):\n"
        "    n_0, n_1, = n.src\n"
        "    if n_1.op is ADD:\n"
        "        n_1_0, n_1_1, = n_1.src\n"
        "        if n_1_1.op is CONST:\n"
        "            r = n_0\n"
        "            if r is not n:\n"
        "                return r\n"
        "        if n_1_0.op is CONST:\n"
        "            r = n_0\n"
        "            if r is not n:\n"
        "                return r\n"
        "    return None"
    )


def test_neighbours_share_their_first_tests():
    rules = Rules("two", Rule(x // (y * 2), x), Rule(x // (y * 3), y))
    assert source_of(rules, Ops.FLOORDIV, Names()).count("if n_1.op is MUL") == 1


def test_only_ops_that_are_met_are_compiled():
    matchers = Rules("lazy", Rule(x + 0, x), Rule(x * 1, x)).matchers()
    assert matchers[Ops.ADD] is not None
    assert matchers[Ops.NEG] is None
    assert set(matchers) == {Ops.ADD, Ops.NEG}


def test_compiled_matchers_are_kept():
    rules = Rules("kept", Rule(x + 0, x))
    assert rules.matchers()[Ops.ADD] is rules.matchers()[Ops.ADD]
    assert rules.matchers()[Ops.ADD] is not rules.matchers(traced=True)[Ops.ADD]


def test_ops_with_any_number_of_sources_match_by_number():
    match = compile_matcher(Rules("many", Rule(node(Ops.STACK, x, y), x)), Ops.STACK)
    assert match(UOp(Ops.STACK, v.dtype, (v, w)), None) is v
    assert match(UOp(Ops.STACK, v.dtype, (v, w, v)), None) is None


def test_constants_are_folded_with_the_dtype_they_have():
    match = compile_matcher(Rules("fold", Rule(i < c, i < fold(-(c + 1) * 2))), Ops.CMPLT)
    assert match(v < 3, None) is (v < -8)
    compare = compile_matcher(Rules("bool", Rule(i + (c * d), fold((c + 1) < d))), Ops.ADD)
    assert compare(v + UOp(Ops.MUL, v.dtype, (const(1), const(3))), None).arg is True


def test_generated_code_is_no_line_of_the_user():
    found = []

    def called_by_a_matcher(_):
        found.append(_caller())

    rules = Rules("origin")
    rules.rule(Ops.NEG)(called_by_a_matcher)
    rules.matchers()[Ops.NEG](-v, None)
    assert found == [False]


def _caller():
    """Whether the frame of the matcher would be taken for the user's."""
    frame = sys._getframe(2)
    assert frame.f_code.co_name == "match"
    return _is_user_code(frame.f_code.co_filename, frame)
