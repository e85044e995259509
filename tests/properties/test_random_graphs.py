"""The graph fuzzer itself: its reference, and the variety of its graphs."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from support.random.graphs import STEPS, describe, differences, random_graph
from support.references.graph import cast, evaluate, evaluate_all, threefry

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp, toposort
from glassgrad.memory.view import View


def leaf(values: object, dtype: str = "float32") -> UOp:
    array = np.array(values, dtype)
    return UOp(Ops.BUFFER, dtypes.named(dtype), (), View.from_host(array))


def test_a_seed_determines_the_graph() -> None:
    first, second = ([a.tolist() for a in evaluate_all(random_graph(Random(7), 30))] for _ in "ab")
    assert first == second
    assert describe(random_graph(Random(7), 30)) == describe(random_graph(Random(7), 30))


def test_every_op_occurs_in_a_few_hundred_graphs() -> None:
    found = {node.op for seed in range(300) for node in toposort(random_graph(Random(seed), 25))}
    absent = {Ops.THREEFRY, Ops.POW, Ops.DETACH, Ops.COPY, Ops.VARIABLE, Ops.SINK, Ops.CHECK}
    absent |= {Ops.CUSTOM}
    from support.references.graph import RULES

    assert set(RULES) - found <= absent
    assert len(STEPS) > 25


def test_small_sizes_give_small_graphs() -> None:
    assert all(len(toposort(random_graph(Random(seed), 2))) < 25 for seed in range(100))


def test_graphs_read_a_buffer_before_and_after_it_is_written() -> None:
    both = 0
    for seed in range(200):
        nodes = toposort(random_graph(Random(seed), 30))
        for assign in (node for node in nodes if node.op is Ops.ASSIGN):
            users = [n for n in nodes if assign.src[0] in n.src and n is not assign]
            both += bool(users) and any(assign in node.src for node in nodes)
    assert both > 10


def test_differences_name_the_first_wrong_index() -> None:
    x = leaf([1.0, 2.0, 3.0])
    want = evaluate_all([x])
    assert differences([x], want, want) == []
    (message,) = differences([x], [np.array([1, 2, 4], np.float32)], want)
    assert "1 of 3 wrong, first at (2,)" in message


def test_window_and_its_adjoint_are_adjoint() -> None:
    rng = np.random.default_rng(0)
    for stride, dilation in ((1, 1), (2, 1), (1, 2), (3, 2)):
        x = leaf(rng.normal(size=(9, 2)), "float64")
        window = UOp(Ops.WINDOW, x.dtype, (x,), (0, 3, stride, dilation))
        y = leaf(rng.normal(size=window.shape), "float64")
        adjoint = UOp(Ops.WINDOW_ADJOINT, y.dtype, (y,), (0, 9, stride, dilation))
        forward = (evaluate(window) * evaluate(y)).sum()
        backward = (evaluate(x) * evaluate(adjoint).sum(-1)).sum()
        assert forward == pytest.approx(backward)


def test_threefry_equals_the_published_vectors() -> None:
    cases = [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
    ]
    for counter, key, want in cases:
        words = [np.array(low | high << 32, np.uint64) for low, high in (counter, key)]
        assert int(threefry(*words)) == want[0] | want[1] << 32


def test_casts_of_floats_to_ints_truncate_and_saturate() -> None:
    x = np.array([1.9, -1.9, np.nan, np.inf, -np.inf, 300.0, -3e30])
    got = cast(x, dtypes.float64, dtypes.uint8)
    assert got.tolist() == [1, 0, 0, 255, 0, 255, 0]
    assert cast(x, dtypes.float64, dtypes.int64).tolist()[3:] == [
        2**63 - 1,
        -(2**63),
        300,
        -(2**63),
    ]


def test_assign_writes_a_part_and_keeps_the_old_version() -> None:
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    chain = ((Ops.SHRINK, ((0, 2), (1, 2))), (Ops.RESHAPE, (2,)), (Ops.FLIP, (0,)))
    written = UOp(Ops.ASSIGN, x.dtype, (x, leaf([7.0, 8.0])), chain)
    new, old = evaluate_all([written, x])
    assert new.tolist() == [[1, 8], [3, 7]]
    assert old.tolist() == [[1, 2], [3, 4]]


def test_a_chain_of_ten_thousand_ops_is_evaluated() -> None:
    x = leaf([1.0])
    for _ in range(10_000):
        x = x + 1.0
    assert evaluate(x).tolist() == [10_001.0]
