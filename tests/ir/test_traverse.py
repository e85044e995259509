"""The traversal that passes share."""

from __future__ import annotations

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.traverse import transform, transform_all
from glassgrad.ir.uop import UOp


def number(value: int) -> UOp:
    return UOp(Ops.CONST, dtypes.int, (), value)


def one_more(_: UOp, node: UOp) -> UOp:
    return number(node.arg + 1) if node.op is Ops.CONST else node


def total(x: UOp, y: UOp) -> UOp:
    return UOp(Ops.ADD, dtypes.int, (x, y))


def test_a_node_is_rebuilt_over_what_its_sources_became():
    assert transform(total(number(1), number(2)), one_more) is total(number(2), number(3))


def test_a_node_whose_sources_stay_is_the_same_node():
    node = total(number(1), number(2))
    assert transform(node, lambda _, same: same) is node


def test_change_sees_the_node_as_it_was_and_over_its_new_sources():
    seen = []

    def look(before: UOp, after: UOp) -> UOp:
        seen.append((before, after))
        return one_more(before, after)

    node = total(number(1), number(2))
    transform(node, look)
    assert seen[-1] == (node, total(number(2), number(3)))


def test_values_that_share_nodes_are_changed_together():
    shared = number(1)
    first, second = total(shared, number(5)), total(number(7), shared)
    changed = transform_all([first, second], one_more)
    assert changed == [total(number(2), number(6)), total(number(8), number(2))]
