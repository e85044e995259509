"""Padding that goes on with the values, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from arrays import distinct, numbers, same
from hypothesis import given, settings
from hypothesis import strategies as st
from slopes import check

from glassgrad import Tensor

ON_BOTH_ROADS = True
NAMES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@pytest.mark.parametrize("mode", NAMES)
@settings(max_examples=10)
@given(data=st.data())
def test_values_go_on_around(mode: str, data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(2, 4), min_size=1, max_size=3)))
    widths = [tuple(data.draw(st.integers(0, n - 1)) for _ in "ab") for n in shape]
    x = numbers(shape)
    same(Tensor(x).pad(tuple(widths), mode=mode), np.pad(x, widths, mode=NAMES[mode]))  # type: ignore[call-overload]


@pytest.mark.parametrize("mode", NAMES)
def test_negative_widths_cut_first(mode: str) -> None:
    x = numbers((3, 5))
    wanted = np.pad(x[:2, 1:], ((1, 0), (0, 2)), mode=NAMES[mode])  # type: ignore[call-overload]
    same(Tensor(x).pad(((1, -1), (-1, 2)), mode=mode), wanted)


def test_an_edge_may_be_repeated_more_often_than_it_is_long() -> None:
    x = numbers((2, 3))
    same(Tensor(x).pad((7, 9), mode="replicate"), np.pad(x, ((0, 0), (7, 9)), mode="edge"))


@pytest.mark.parametrize("mode", NAMES)
def test_gradients_of_padding(mode: str) -> None:
    check(lambda t: (t * t).pad((1, 2), mode=mode), distinct((2, 3)))
