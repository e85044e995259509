"""Graphs for the page: every node with its kernel and its source line."""

from __future__ import annotations

import numpy as np

from glassgrad import Tensor
from glassgrad.viz.graph import Lines, graph_of


def shown(*values: Tensor):
    schedule = values[0].schedule(*values[1:])
    lines = Lines()
    return graph_of(schedule, list(range(len(schedule.kernels))), lines, 0.5), lines.rows


def memory(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.float32)).realize()


def test_each_kernel_has_the_nodes_that_it_computes_and_those_it_reads() -> None:
    x, w = memory(64, 64), memory(64, 64)
    graph, _ = shown((x @ w).exp().contiguous() @ x)
    one, two = graph["kernels"]
    ops = [[graph["nodes"][n][0] for n in kernel["nodes"]] for kernel in (one, two)]
    assert "EXP2" in ops[0]
    assert "EXP2" not in ops[1]
    assert ops[0].count("BUFFER") == 2
    assert ops[1].count("BUFFER") == 1
    assert one["ends"][0] in two["nodes"]
    assert {*one["nodes"], *two["nodes"]} == set(range(len(graph["nodes"])))


def test_slots_name_the_kernel_that_made_them() -> None:
    x, w = memory(64, 64), memory(64, 64)
    graph, _ = shown((x @ w) @ (x @ w).T)
    last = graph["kernels"][-1]
    roles = {slot["role"] for slot in last["slots"]}
    assert roles == {"output", "input"}
    assert last["slots"][0]["bytes"] == 64 * 64 * 4
    assert {slot["maker"] for slot in last["slots"] if slot["role"] == "input"} == {0}


def test_a_write_into_memory_belongs_to_the_kernel_that_does_it() -> None:
    x = memory(64).contiguous().realize()
    x.assign(x * 2)
    graph, _ = shown(x)
    (kernel,) = graph["kernels"]
    assert [graph["nodes"][n][0] for n in kernel["ends"]] == ["ASSIGN"]
    assert "MUL" in [graph["nodes"][n][0] for n in kernel["nodes"]]


def test_nodes_and_kernels_know_the_line_that_made_them() -> None:
    x = memory(64)
    total = (x * 3).sum()  # the expected line
    graph, rows = shown(total)
    row = rows[graph["kernels"][0]["lines"][0]]
    assert row["text"] == "total = (x * 3).sum()  # the expected line"
    assert row["file"] == __file__
    (reduce,) = [node for node in graph["nodes"] if node[0] == "REDUCE"]
    assert rows[reduce[5]] is row


def test_kernels_that_the_compiler_divides_have_the_line_of_what_they_compute() -> None:
    x = memory(1 << 18)
    graph, rows = shown(x.exp().cumsum(0))
    assert len(graph["kernels"]) > 1
    for kernel in graph["kernels"]:
        assert "cumsum" in rows[kernel["lines"][0]]["text"]
