"""Printing nodes and reading them back."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassgrad.base.dtype import dtypes
from glassgrad.base.errors import FormatError
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.show import MAX_NESTING, listing, read, show
from glassgrad.ir.stages import Param
from glassgrad.ir.uop import UOp, const, make_range, variable

ONE = UOp(Ops.CONST, dtypes.float, arg=1.0)
# A number that no other test computes with: nodes whose value was computed leave the table.
ODD = UOp(Ops.CONST, dtypes.float, arg=1234.5)


def test_print_shows_a_repeated_node_once():
    assert str(UOp(Ops.ADD, dtypes.float, src=(ONE, ONE), arg=None)) == (
        "UOp(Ops.ADD, dtypes.float, arg=None, src=(\n"
        "  x0:=UOp(Ops.CONST, dtypes.float, arg=1.0, src=()),\n"
        "   x0,))"
    )


def test_nodes_are_indented_by_two_per_level_and_named_in_order_of_appearance():
    v = variable("v", 0, 3)
    assert show((v + 2) * (v + 2) - v) == (
        "UOp(Ops.SUB, dtypes.index, arg=None, src=(\n"
        "  UOp(Ops.MUL, dtypes.index, arg=None, src=(\n"
        "    x0:=UOp(Ops.ADD, dtypes.index, arg=None, src=(\n"
        "      x1:=UOp(Ops.VARIABLE, dtypes.index, arg=('v', 0, 3), src=()),\n"
        "      UOp(Ops.CONST, dtypes.index, arg=2, src=()),)),\n"
        "     x0,)),\n"
        "   x1,))"
    )


@pytest.mark.parametrize(
    "node",
    [
        const(math.inf, dtypes.float),
        const(-math.inf, dtypes.half),
        const(-0.0, dtypes.double),
        const(math.nan, dtypes.bfloat16),
        const(-7, dtypes.long),
        const(True, dtypes.bool),
        make_range(3, 16, AxisKind.UPCAST),
        UOp(Ops.PARAM, dtypes.float, (), Param(1, (4, 3), (3, 1))),
        UOp(Ops.REDUCE, dtypes.float, (ODD,), (Ops.ADD, ())),
        UOp(Ops.SPECIAL, dtypes.int, (), ("gidx0", 16)),
        UOp(Ops.STACK, dtypes.float.vec(2), (ODD, ODD)),
        UOp(Ops.CAST, dtypes.fp8e4m3.vec(4), (ODD,)),
        UOp(Ops.PAD, dtypes.float, (UOp(Ops.RESHAPE, dtypes.float, (ODD,), (1,)),), ((0, 2),)),
        UOp(Ops.IOTA, dtypes.int, (), 12_345),
    ],
    ids=lambda node: f"{node.op.name}-{node.dtype.alias}",
)
def test_parsing_a_printed_node_gives_the_same_node(node):
    assert read(show(node)) is node
    assert read(listing(node.toposort())) is node


@st.composite
def graphs(draw):
    nodes = [variable("a", 0, 9), const(draw(st.integers(-9, 9)))]
    for _ in range(draw(st.integers(1, 60))):
        op = draw(st.sampled_from([Ops.ADD, Ops.MUL, Ops.NEG, Ops.MAX]))
        nodes.append(
            UOp(op, dtypes.index, tuple(draw(st.sampled_from(nodes)) for _ in range(op.arity)))
        )
    return nodes[-1]


@given(graphs())
def test_any_graph_is_read_back(graph):
    assert read(show(graph)) is graph


@pytest.mark.parametrize("depth", [MAX_NESTING - 2, MAX_NESTING, 10_000])
def test_deep_graphs_are_printed_and_read_back(depth):
    node = variable("deep", 0, 9)
    for _ in range(depth):
        node = -node
    text = show(node)
    assert text.startswith("UOp(" if depth < MAX_NESTING else "x0 = UOp(")
    assert len(text) < 100 * depth + 4_000
    assert read(text) is node


def test_a_listing_says_where_a_source_is_missing():
    assert listing([-ONE]) == "x0 = UOp(Ops.NEG, dtypes.float, arg=None, src=(...,))"


def test_buffers_cannot_be_read_back():
    class View:
        shape = (4,)

    with pytest.raises(FormatError, match="device memory"):
        read(show(UOp(Ops.BUFFER, dtypes.float, (), View())))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "UOp(",
        "x0",
        "UOp(Ops.NONE, dtypes.float)",
        "UOp(Ops.CONST, dtypes.named, arg=1.0)",
        "UOp(Ops.CONST, dtypes.float, arg='a')",
        "UOp(Ops.NEG, dtypes.float, src=(1,))",
        "UOp(Ops.CONST, dtypes.float, arg=open('x'))",
        "import os",
        "Ops.ADD.__class__",
        "dtypes.float.vec('2')",
        "-'a'",
        "Param(1)",
        "(" * 300,
    ],
)
def test_other_text_is_refused(text):
    with pytest.raises(FormatError):
        read(text)


def test_reading_runs_no_code(tmp_path):
    made = Path(tmp_path / "made")
    with pytest.raises(FormatError):
        read(f"UOp(Ops.CONST, dtypes.float, arg=open({str(made)!r}, 'w'), src=())")
    assert not made.exists()
