"""Windows: the addresses of elements after movements, and their overlaps."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from glassgrad.memory.window import (
    Window,
    expanded,
    flipped,
    has_overlaps,
    permuted,
    reshaped,
    shrunk,
    span,
    windowed,
)

ROWS = Window((2, 3), (3, 1), 0)


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(-6, 6)), max_size=3), st.integers(20, 40))
def test_overlapping_elements_are_found(axes: list[tuple[int, int]], offset: int) -> None:
    window = Window(tuple(n for n, _ in axes), tuple(s for _, s in axes), offset)
    places = [
        offset + sum(i * s for i, s in zip(index, window.strides))
        for index in np.ndindex(window.shape)
    ]
    assert span(window) == (min(places), max(places))
    if len(set(places)) < len(places):
        assert has_overlaps(window)


def test_contiguous_windows_have_no_overlaps() -> None:
    assert not has_overlaps(ROWS)
    assert not has_overlaps(flipped(permuted(ROWS, (1, 0)), (0, 1)))
    assert has_overlaps(expanded(Window((1, 3), (3, 1), 0), (2, 3)))


def test_movements_compute_the_addresses_of_elements() -> None:
    assert shrunk(ROWS, ((1, 2), (1, 3))) == Window((1, 2), (3, 1), 4)
    assert windowed(ROWS, (1, 1, 2, 1)) == Window((2, 2, 1), (3, 2, 1), 0)  # every second column
    assert windowed(ROWS, (1, 2, 1, 1)) == Window((2, 2, 2), (3, 1, 1), 0)
    assert flipped(ROWS, (0,)) == Window((2, 3), (-3, 1), 3)
    assert expanded(Window((3,), (1,), 4), (2, 3)) == Window((2, 3), (0, 1), 4)
    assert reshaped(ROWS, (3, 2)) == Window((3, 2), (2, 1), 0)
    assert reshaped(permuted(ROWS, (1, 0)), (6,)) is None
    assert reshaped(Window((4, 1, 3), (6, 99, 2), 1), (2, 2, 3, 1)) == Window(
        (2, 2, 3, 1), (12, 6, 2, 1), 1
    )
