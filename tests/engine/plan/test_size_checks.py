"""Slices that fit for some values of variables only."""

from __future__ import annotations

import pytest

from glassgrad.base.errors import AxisError, ShapeError
from glassgrad.engine.capture.recorder import recording
from glassgrad.engine.plan.size_checks import check_all, check_slice, is_always_in_range
from glassgrad.ir.size import Size, variable_size

n = variable_size("n", 0, 8)


def bound(value: int) -> Size:
    return n.bind(value)


def test_slices_that_always_fit_need_no_check() -> None:
    assert is_always_in_range(0, n, 8) and is_always_in_range(n, n + 2, 10)
    assert not is_always_in_range(0, n, 7) and not is_always_in_range(n, n + 2, 9)
    assert not is_always_in_range(n - 1, n, 8) and not is_always_in_range(3, n, 8)
    with recording(is_strict=True) as recorder:
        check_slice(0, n, 8, 0)  # unbound, but always in range
    assert not recorder.size_checks


@pytest.mark.parametrize(
    ("start", "stop", "size", "words"),
    [
        (bound(3), bound(3) + 4, 6, "slice 3:7 is out of range for axis 2 of size 6"),
        (4, bound(3), 6, "slice 4:3 is out of range for axis 2 of size 6"),
        (bound(3) - 5, 4, 6, "slice -2:4 is out of range for axis 2 of size 6"),
        (0, 5, bound(3), "slice 0:5 is out of range for axis 2 of size 3"),
    ],
)
def test_a_slice_that_does_not_fit_is_refused_at_once(
    start: int, stop: int, size: int, words: str
) -> None:
    with pytest.raises(AxisError, match=words):
        check_slice(start, stop, size, axis=2)


def test_an_index_error_says_index() -> None:
    with pytest.raises(
        AxisError, match=r"index 8 is out of range for axis 0 of size 8(.|\n)*written as n"
    ):
        check_slice(bound(8), bound(8) + 1, 8, axis=0, is_index=True)


def test_captured_slices_are_checked_in_replays() -> None:
    with recording(is_strict=True) as recorder:
        check_slice(bound(3), bound(3) + 4, 8, axis=1)
    (one,) = recorder.size_checks
    assert one.variables == [n.uop]
    check_all(recorder.size_checks, {n.uop: 4})
    with pytest.raises(AxisError, match=r"slice 5:9 is out of range for axis 1 of size 8") as error:
        check_all(recorder.size_checks, {n.uop: 5})
    assert "test_size_checks.py" in str(error.value)  # the line of the capture


def test_a_slice_by_an_unbound_variable_cannot_be_checked() -> None:
    with pytest.raises(ShapeError, match="n has no value"):
        check_slice(n, n + 4, 8, axis=0)
