"""Rewriting: fixed points, both directions, depth, origins, announcements."""

import pytest

from glassgrad.base.dtype import dtypes
from glassgrad.base.events import RuleFired, listen
from glassgrad.base.origin import Origin
from glassgrad.ir.ops import Ops
from glassgrad.ir.pattern import Rule, Rules, c, d, fold, i, x, y
from glassgrad.ir.rewrite import rewrite
from glassgrad.ir.uop import UOp, const, variable

v, w = variable("v", 0, 10), variable("w", 0, 10)
SUMS = Rules("sums", Rule(i + 0, i), Rule(i * 1, i), Rule((i + c) + d, i + fold(c + d)))


def test_a_graph_that_no_rule_matches_is_returned_as_it_is():
    graph = (v * w) // 3 + v
    assert rewrite(graph, SUMS) is graph


def test_what_a_rule_makes_is_rewritten_again():
    assert rewrite((v + 2) + -2, SUMS) is v
    distribute = SUMS + Rules("more", Rule(x * (y + c), x * y + x * c))
    assert rewrite(v * ((w * 1 + 1) + 2), distribute) is v * w + v * 3


def test_parents_see_rewritten_sources():
    assert rewrite(((v + 0) * 1 + 0) // 3, SUMS) is v // 3


def test_shared_nodes_are_rewritten_once():
    calls = []
    rules = Rules("count")

    @rules.rule(Ops.NEG)
    def seen(node):
        calls.append(node)

    shared = -v
    rewrite((shared + w) * shared - shared, rules)
    assert calls == [shared]


@pytest.mark.parametrize("bottom_up", [True, False])
def test_deep_chains_need_no_recursion(bottom_up):
    deep = v
    for _ in range(10_000):
        deep = -(deep + 0)
    expected = v
    for _ in range(10_000):
        expected = -expected
    assert rewrite(deep, SUMS, bottom_up=bottom_up) is expected


def test_a_long_chain_of_firings_needs_no_recursion():
    push = Rules("push", Rule(-(x + y), -x + -y))
    deep = v
    for n in range(5_000):
        deep = deep + variable(f"w{n}", 0, 1)
    assert rewrite(-deep, push).src[1] is -variable("w4999", 0, 1)


def test_the_number_of_matches_grows_linearly():
    calls = []
    rules = Rules("count", Rule(i + 0, i))

    @rules.rule(Ops.NEG)
    def seen(node):
        calls.append(node)

    deep = v
    for _ in range(500):
        deep = -(deep + 0)
    rewrite(deep, rules)
    assert len(calls) == 500


def test_top_down_sees_a_node_before_its_sources():
    rules = Rules("outer first", Rule(-(x + y), x), Rule(x + 0, x * 2))
    assert rewrite(-(v + 0), rules, bottom_up=False) is v
    assert rewrite(-(v + 0), rules) is -(v * 2)


def test_top_down_rewrites_what_a_rule_made_and_its_sources():
    rules = Rules("swap", Rule(x - y, -(y * 1)), Rule(x * 1, x))
    assert rewrite((v - w) // 2, rules, bottom_up=False) is -w // 2


@pytest.mark.parametrize("bottom_up", [True, False])
@pytest.mark.parametrize(
    "rules",
    [
        Rules("to and fro", Rule(x + y, x - y), Rule(x - y, x + y)),
        Rules("wrap", Rule(x + y, -(x + y))),
    ],
    ids=lambda rules: rules.name,
)
def test_rules_that_never_rest_are_reported(rules, bottom_up, monkeypatch):
    monkeypatch.setattr("glassgrad.ir.rewrite.MAX_FIRINGS", 1_000)
    with pytest.raises(AssertionError, match="do not terminate"):
        rewrite(v + w, rules, bottom_up=bottom_up)


def test_rules_that_grow_for_ever_are_reported(monkeypatch):
    monkeypatch.setattr("glassgrad.ir.rewrite.MAX_FIRINGS", 1_000)
    with pytest.raises(AssertionError, match="'growth'"):
        rewrite(v + 1, Rules("growth", Rule(x + c, x + fold(c + c))))


def test_a_rule_that_returns_the_node_itself_does_not_fire():
    rules = Rules("still", Rule(x + y, y + x))
    assert rewrite(v + v, rules) is v + v


@pytest.mark.parametrize("bottom_up", [True, False])
def test_the_replacement_inherits_the_origin(bottom_up):
    before = UOp(Ops.ADD, dtypes.index, (v, const(987_654)))
    before.origin = Origin("train.py", 17)
    rules = Rules("origin", Rule(x + c, -x * c))
    assert rewrite(before, rules, bottom_up=bottom_up).origin is before.origin


def test_a_rebuilt_node_inherits_the_origin():
    before = (v + 0) // 12_345
    before.origin = Origin("train.py", 18)
    assert rewrite(before, SUMS).origin is before.origin


def test_rules_that_fire_are_announced_to_listeners():
    seen = []
    with listen(seen.append):
        rewrite((v + 0) * w, SUMS)
    (fired,) = seen
    assert isinstance(fired, RuleFired)
    assert (fired.rewrite, fired.rule) == (SUMS.name, "i + 0  ->  i")
    assert (fired.before, fired.after) == (v + 0, v)


def test_functions_that_fire_are_announced_by_name():
    rules = Rules("named")

    @rules.rule(Ops.NEG)
    def drop_sign(node):
        return node.src[0]

    seen = []
    with listen(seen.append):
        rewrite(-v, rules)
    assert seen[0].rule == "drop_sign"
