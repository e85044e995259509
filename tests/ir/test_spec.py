"""Specs: legal nodes pass at their stage, illegal ones are shown with the reason."""

from random import Random

import pytest
from support.random.graphs import random_graph

from glassgrad.base.config import Context
from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import AxisKind, Ops, Stage
from glassgrad.ir.spec import CLAIMS, check, find_problem
from glassgrad.ir.stages import Param
from glassgrad.ir.uop import UOp, const, make_range, variable

GRAPH, KERNEL, PROGRAM = Stage.GRAPH, Stage.KERNEL, Stage.PROGRAM


def leaf(shape, dtype=dtypes.float):
    return UOp(Ops.EXPAND, dtype, (ones(shape, dtype),), shape)


def ones(shape, dtype):
    return UOp(Ops.RESHAPE, dtype, (const(1, dtype),), (1,) * len(shape))


x, index = leaf((4, 6)), leaf((4, 2), dtypes.int)
i, j = make_range(0, 4), make_range(1, 6, AxisKind.REDUCE)
param = UOp(Ops.PARAM, dtypes.float, (), Param(0, (4, 6), (6, 1)))
row = UOp(Ops.PARAM, dtypes.float, (), Param(1, (4,), (1,)))
load = param.index(i, j).load()
total = UOp(Ops.REDUCE, dtypes.float, (load, j), Ops.ADD)
store = UOp(Ops.STORE, dtypes.void, (row.index(i), total, i))
staged = UOp(Ops.STAGE, dtypes.float, (load, j, j), (6,))


def graph(op, arg, *src, dtype=dtypes.float):
    return UOp(op, dtype, src or (x,), arg)


def elementwise(op, *dtypes_of_src, dtype):
    return UOp(op, dtype, tuple([const(1, one) for one in dtypes_of_src]))


LEGAL = [
    (GRAPH, graph(Ops.REDUCE, (Ops.ADD, (0, 1)))),
    (GRAPH, graph(Ops.GATHER, 1, x, index)),
    (GRAPH, graph(Ops.WINDOW, (1, 3, 2, 1))),
    (GRAPH, graph(Ops.WINDOW_ADJOINT, (0, 9, 1, 1))),
    (GRAPH, UOp(Ops.IOTA, dtypes.int, (), 3)),
    (KERNEL, UOp(Ops.SINK, dtypes.void, (store,))),
    (KERNEL, staged.index(i).load()),
    (KERNEL, param.index(i, i, gate=i < 3).load()),
]

ILLEGAL = [
    (GRAPH, graph(Ops.RESHAPE, (5, 5)), "multiply"),
    (GRAPH, graph(Ops.PERMUTE, (0, 0)), "order"),
    (GRAPH, graph(Ops.EXPAND, (8, 6)), "size 1"),
    (GRAPH, graph(Ops.PAD, ((0, 0), (-1, 0))), "pair"),
    (GRAPH, graph(Ops.SHRINK, ((0, 5), (0, 6))), "range"),
    (GRAPH, graph(Ops.FLIP, (1, 0)), "sorted"),
    (GRAPH, graph(Ops.WINDOW, (0, 5, 1, 1)), "fit"),
    (GRAPH, graph(Ops.WINDOW_ADJOINT, (0, 8, 1, 1)), "windows"),
    (GRAPH, graph(Ops.GATHER, 0, x, index), "index"),
    (GRAPH, graph(Ops.GATHER, 1, x, leaf((4, 2))), "int index"),
    (GRAPH, graph(Ops.REDUCE, (Ops.SUB, (0,))), "ADD"),
    (GRAPH, graph(Ops.REDUCE, (Ops.ADD, (2,))), "axes"),
    (GRAPH, graph(Ops.ASSIGN, (), x, x), "BUFFER"),
    (GRAPH, graph(Ops.CONTIGUOUS, None, dtype=dtypes.int), "dtype"),
    (GRAPH, graph(Ops.COPY, 3), "device"),
    (GRAPH, load, "no LOAD"),
    (GRAPH, UOp(Ops.ADD, dtypes.float, (x,)), "2 sources, not 1"),
    (GRAPH, elementwise(Ops.ADD, dtypes.int, dtypes.float, dtype=dtypes.float), "sources have"),
    (GRAPH, elementwise(Ops.CMPLT, dtypes.int, dtypes.int, dtype=dtypes.int), "bool"),
    (GRAPH, elementwise(Ops.WHERE, *[dtypes.int] * 3, dtype=dtypes.int), "bool"),
    (GRAPH, elementwise(Ops.SQRT, dtypes.int, dtype=dtypes.int), "floats"),
    (GRAPH, elementwise(Ops.FLOORDIV, *[dtypes.float] * 2, dtype=dtypes.float), "ints"),
    (GRAPH, elementwise(Ops.AND, *[dtypes.float] * 2, dtype=dtypes.float), "bools"),
    (GRAPH, elementwise(Ops.THREEFRY, *[dtypes.int] * 2, dtype=dtypes.int), "uint64"),
    (GRAPH, elementwise(Ops.BITCAST, dtypes.int, dtype=dtypes.long), "size"),
    (GRAPH, UOp(Ops.IOTA, dtypes.int, (), -1), "size"),
    (GRAPH, UOp(Ops.VARIABLE, dtypes.index, (), ("n", 3, 2)), "bounds"),
    (GRAPH, UOp(Ops.BIND, dtypes.index, (variable("n", 0, 9),), 10), "a value in its bounds"),
    (GRAPH, UOp(Ops.BIND, dtypes.index, (const(3),), 3), "a variable with a value"),
    (GRAPH, UOp(Ops.IOTA, dtypes.int, (const(3),), 4), "only the values of variables"),
    (KERNEL, x, "no EXPAND"),
    (KERNEL, param.index(i), "per axis"),
    (KERNEL, param.index(i, const(0, dtypes.int)), "per axis"),
    (KERNEL, staged.index(i, j), "per axis"),
    (KERNEL, UOp(Ops.STAGE, dtypes.float, (load, j), (6, 2)), "per axis"),
    (KERNEL, UOp(Ops.LOAD, dtypes.float, (param,)), "INDEX"),
    (KERNEL, UOp(Ops.LOAD, dtypes.int, (param.index(i, j),)), "dtype"),
    (KERNEL, UOp(Ops.REDUCE, dtypes.float, (load, i + j), Ops.ADD), "RANGEs"),
    (KERNEL, UOp(Ops.REDUCE, dtypes.float, (load, j), Ops.SUB), "ADD"),
    (KERNEL, UOp(Ops.STORE, dtypes.void, (row.index(i), i, i)), "dtype"),
    (KERNEL, UOp(Ops.SINK, dtypes.void, (total,)), "STOREs"),
    (KERNEL, UOp(Ops.RANGE, dtypes.int, (const(4),), (0, AxisKind.LOOP)), "index dtype"),
    (KERNEL, UOp(Ops.PARAM, dtypes.float, (), 3), "Param"),
    (KERNEL, elementwise(Ops.NEG, dtypes.float.vec(4), dtype=dtypes.float.vec(4)), "vectors"),
]


@pytest.mark.parametrize("stage, node", LEGAL)
def test_legal_nodes_pass(stage, node):
    for found in node.toposort():
        assert find_problem(found, stage) is None
    assert check(node, stage) is node


@pytest.mark.parametrize("stage, node, words", ILLEGAL)
def test_an_illegal_node_is_shown_with_what_is_wrong(stage, node, words):
    problem = find_problem(node, stage)
    assert problem is not None
    assert words in problem
    with pytest.raises(AssertionError) as caught:
        check(node, stage)
    assert f"not legal in a {stage.name}" in str(caught.value)


def test_nothing_is_checked_where_the_setting_is_off():
    bad = UOp(Ops.ADD, dtypes.float, (x,))
    with Context(SPEC=0):
        assert check(bad, GRAPH) is bad


def test_random_graphs_are_legal():
    for seed in range(20):
        check(random_graph(Random(seed), 10), "graph")


def test_every_op_has_claims_at_its_stages_or_is_free():
    free = {Ops.SINK, Ops.BARRIER, Ops.SPECIAL, Ops.SCRATCH, Ops.VARIABLE, Ops.MULACC, Ops.PARAM}
    for stage in Stage:
        for op in Ops:
            if stage in op.stages and op not in free:
                assert CLAIMS[stage].get(op), f"nothing is said of {op} in a {stage.name}"


# ---------------------------------------------------------------------- programs

size = const(4, dtypes.long)
loop = UOp(Ops.RANGE, dtypes.long, (size,), (0, AxisKind.LOOP))
place = UOp(Ops.INDEX, dtypes.float, (row, loop))
value = UOp(Ops.LOAD, dtypes.float, (place,))
start = const(0.0, dtypes.float)
acc = UOp(Ops.ACC, dtypes.float, (start,), 0)
added = acc + value
assign = UOp(Ops.ASSIGN, dtypes.float, (acc, added))
end = UOp(Ops.END, dtypes.void, (loop,))
after = UOp(Ops.AFTER, dtypes.float, (acc, end))
zero = const(0, dtypes.long)
out = UOp(Ops.INDEX, dtypes.float, (param, zero))
stored = UOp(Ops.STORE, dtypes.void, (out, after))
SUM = [
    row,
    param,
    size,
    start,
    acc,
    loop,
    place,
    value,
    added,
    assign,
    end,
    after,
    zero,
    out,
    stored,
]


def test_a_legal_program_passes():
    assert check(SUM, PROGRAM) is SUM


@pytest.mark.parametrize(
    "program, words",
    [
        ([one for one in SUM if one is not start], "later than its user"),
        ([*SUM[:7], SUM[8], SUM[7], *SUM[9:]], "later than its user"),
        (SUM[:10], "never closed"),
        ([*SUM, end], "not open"),
        ([*SUM, UOp(Ops.GEP, dtypes.float, (value,), 1)], "element of a vector"),
        ([*SUM, UOp(Ops.STACK, dtypes.float.vec(2), (value,))], "one scalar source per lane"),
        ([*SUM, UOp(Ops.IF, dtypes.void, (value,))], "bool"),
        ([*SUM, const(1, dtypes.index)], "index dtype"),
        ([*SUM, UOp(Ops.ASSIGN, dtypes.float, (value, value))], "ACC"),
        ([*SUM, UOp(Ops.STORE, dtypes.void, (out, zero))], "INDEX's dtype"),
        ([*SUM, UOp(Ops.LOAD, dtypes.int, (out,))], "INDEX's dtype"),
        ([*SUM, UOp(Ops.INDEX, dtypes.float, (value, zero))], "pointer"),
    ],
)
def test_an_illegal_program_is_refused(program, words):
    with pytest.raises(AssertionError, match=words):
        check(program, PROGRAM)
