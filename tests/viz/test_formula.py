"""Kernels as formulas."""

from __future__ import annotations

import numpy as np
import pytest

from glassgrad import Tensor
from glassgrad.viz.formula import formulas


def written(value: Tensor) -> list[str]:
    (kernel,) = value.schedule().kernels
    return formulas(kernel.body).split("\n")


def memory(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.float32)).realize()


def test_a_softmax_is_two_totals_and_a_quotient() -> None:
    assert written(memory(8, 16).softmax()) == [
        "i0 < 8        loop",
        "k1 < 16       reduce",
        "k2 < 16       reduce",
        "i3 < 16       loop",
        "",
        "m0 = max over k1 of data1[i0, k1]",
        "s1 = sum over k2 of exp2((data1[i0, k2] - m0) * 1.442695)",
        "data0[i0, i3] = exp2((data1[i0, i3] - m0) * 1.442695) / s1",
    ]


def test_a_value_that_is_used_twice_has_a_name_and_is_written_once() -> None:
    x = memory(64).sqrt() + 1
    *_, name, last = written(x.maximum(0.5) * x)
    assert name == "x0 = sqrt(data1[i0]) + 1"
    assert last == "data0[i0] = max(x0, 0.5) * x0"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda a, b, c: a - (b - c), "data1[i0] - (data2[i0] - data3[i0])"),
        (lambda a, b, c: a - b - c, "data1[i0] - data2[i0] - data3[i0]"),
        (lambda a, b, c: a / (b / c), "data1[i0] / (data2[i0] / data3[i0])"),
        (lambda a, b, c: (a + b) / c, "(data1[i0] + data2[i0]) / data3[i0]"),
        (lambda a, b, c: a + b / c, "data1[i0] + data2[i0] / data3[i0]"),
    ],
)
def test_parentheses_are_used_where_necessary(make, text) -> None:
    a, b, c = (Tensor(np.full(8, i + 1.0, np.float32)).realize() for i in range(3))
    assert written(make(a, b, c))[-1] == f"data0[i0] = {text}"


def test_padding_is_written_as_a_condition() -> None:
    assert "data1[i0 + -1] if" in written(memory(8).pad(((1, 1),)) + 1)[-1]


def test_a_scan_is_written_as_running() -> None:
    assert "running sum over i1 of data1[i0, i1]" in "\n".join(written(memory(4, 64).cumsum(1)))
