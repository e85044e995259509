"""Sets of integers that index expressions take."""

from __future__ import annotations

import pytest

from glassgrad.ir import value_sets
from glassgrad.ir.linear import linear
from glassgrad.ir.uop import make_range
from glassgrad.ir.value_sets import Unproved, _try_all, _try_all_vectorized

ROW, COLUMN = make_range(0, 4), make_range(1, 6)
SUMS = {
    "dense": ROW * 6 + COLUMN,
    "twice": ROW + COLUMN,
    "a transposed remainder": (ROW * 6 + COLUMN) % 5 * 3 + COLUMN // 2,
    "apart": ROW * 10 + COLUMN // 4 * 100,
    "one": ROW // 4,
}


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("limit", [None, 3, 30])
def test_steps_tried_one_by_one_are_those_tried_at_once(name: str, limit: int | None) -> None:
    value = linear(SUMS[name])
    conditions = [] if limit is None else [ROW * 6 + COLUMN < limit]
    loops, sizes = [ROW, COLUMN], [4, 6]
    assert _try_all(value, conditions, loops, sizes) == _try_all_vectorized(
        value, conditions, loops, sizes
    )


def test_a_condition_that_never_holds_proves_nothing() -> None:
    with pytest.raises(Unproved):
        _try_all(linear(ROW + COLUMN), [ROW * 6 + COLUMN < 0], [ROW, COLUMN], [4, 6])


def test_few_iterations_are_tried_without_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_sets, "_try_all_vectorized", None)
    assert _try_all(linear(ROW + COLUMN), [], [ROW, COLUMN], [4, 6]).high == 8
