"""Notebook display: tables of known values, trees of lazy ones."""

from __future__ import annotations

import re

import numpy as np
import pytest

from glassgrad import Tensor
from glassgrad.tensor.display import MAX_NODES, tree


def cells(html: str) -> list[list[str]]:
    rows = re.findall(r"<tr>(.*?)</tr>", html)
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in rows]


def test_a_matrix_in_memory_is_a_table() -> None:
    html = Tensor([[1, 2], [3, 4]])._repr_html_()
    assert "Tensor int32 (2, 2)</b> on CPU, in memory" in html
    assert cells(html) == [["1", "2"], ["3", "4"]]


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (2.5, [["2.5"]]),
        ([1.0, float("nan")], [["1", "nan"]]),
        ([True, False], [["True", "False"]]),
        ([], []),
    ],
)
def test_numbers_and_vectors_are_one_row(value: object, wanted: list[list[str]]) -> None:
    assert cells(Tensor(value).realize()._repr_html_()) == wanted


def test_narrow_floats_are_shown_as_numbers() -> None:
    assert cells(Tensor([0.1], dtype="bfloat16").realize()._repr_html_()) == [["0.1001"]]


def test_the_middle_of_long_axes_is_left_out() -> None:
    shown = cells(Tensor(np.arange(20 * 30).reshape(20, 30))._repr_html_())
    assert len(shown) == len(shown[0]) == 11
    assert shown[0] == ["0", "1", "2", "3", "4", "…", "25", "26", "27", "28", "29"]
    assert set(shown[5]) == {"…"}
    assert shown[-1][-1] == "599"


def test_more_axes_are_several_tables_and_a_count_of_the_rest() -> None:
    html = Tensor(np.arange(24).reshape(3, 2, 2, 2))._repr_html_()
    assert html.count("<table>") == 4
    assert "[1, 1, …]" in html
    assert "… 2 more" in html


def test_a_lazy_tensor_is_a_tree_and_stays_lazy() -> None:
    x = Tensor([1.0, 2.0])
    y = (x * 3 + x).sum()
    node = y.uop
    html = y._repr_html_()
    assert "not computed yet" in html and "<table>" not in html
    assert y.uop is node and node.realized is None
    assert tree(node) == [
        "REDUCE float32 () ADD over (0,)",
        "└ ADD float32 (2,)",
        "  ├ MUL float32 (2,)",
        "  │ ├ memory float32 (2,)",
        "  │ └ 3.0",
        "  └ memory float32 (2,)",
    ]


def test_shared_nodes_are_drawn_once_and_large_graphs_end() -> None:
    x = Tensor([1.0]) + 1
    for _ in range(2000):
        x = x * x
    lines = tree(x.uop)
    assert lines[2].endswith("MUL float32 (1,)")
    assert len(lines) == MAX_NODES + 1
    y = (Tensor([1.0]) + 1).exp2()
    assert tree((y * y).uop)[-1] == "└ the EXP2 of line 2"


def test_what_was_computed_ends_the_tree() -> None:
    x = Tensor([1.0]) + 1
    x.numpy()
    assert tree((x * 2).uop)[1] == "├ memory float32 (1,)"


def test_composites_are_drawn_with_all_their_operations() -> None:
    texts = set()
    for _ in range(3):
        x = Tensor([[1.0, 2.0]]).realize()
        texts.add(x.softmax()._repr_html_())
    assert len(texts) == 1 and "DEFERRED" not in texts.pop()
