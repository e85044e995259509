"""The table of ops: complete rows, groups that agree with it."""

from glassgrad.ir.ops import VARIADIC, AxisKind, OpGroup, Ops, Stage


def test_every_row_has_a_meaning_and_a_stage():
    for op in Ops:
        assert op.meaning
        assert op.stages
        assert op.arity == VARIADIC or 0 <= op.arity <= 3


def test_ops_are_numbered_without_gaps_and_print_their_name():
    assert [int(op) for op in Ops] == list(range(1, len(Ops) + 1))
    assert str(Ops.ADD) == "Ops.ADD"


def test_groups_have_the_arity_of_their_name():
    assert {op.arity for op in OpGroup.UNARY} == {1}
    assert {op.arity for op in OpGroup.BINARY} == {2}
    assert {op.arity for op in OpGroup.TERNARY} == {3}


def test_groups_do_not_overlap():
    groups = (OpGroup.UNARY, OpGroup.BINARY, OpGroup.TERNARY, OpGroup.MOVEMENT)
    assert len(frozenset().union(*groups)) == sum(map(len, groups))
    assert OpGroup.COMMUTATIVE < OpGroup.BINARY
    assert OpGroup.REDUCING < OpGroup.COMMUTATIVE


def test_movement_is_gone_after_the_graph():
    assert {op.stages for op in OpGroup.MOVEMENT} == {Stage.GRAPH}


def test_axis_kinds_differ_in_colour_and_print_their_name():
    assert len({kind.value for kind in AxisKind}) == len(AxisKind)
    assert repr(AxisKind.LANE) == "AxisKind.LANE"
    assert [kind for kind in AxisKind if kind.is_unrolled] == [
        AxisKind.UPCAST,
        AxisKind.LANE,
        AxisKind.UNROLL,
    ]
