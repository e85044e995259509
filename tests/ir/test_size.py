"""Sizes: ints that depend on variables."""

from __future__ import annotations

import pytest

from glassgrad.base.errors import ShapeError
from glassgrad.ir.size import Size, bindings, concrete, evaluate, sizes_in, variable_size

n, m = variable_size("n", 1, 9), variable_size("m", 0, 4)


def test_as_an_int_a_size_is_its_largest_value() -> None:
    assert (int(n), int(n + 1), int(n * 3 - m), int(-m)) == (9, 10, 27, 0)
    assert ((n + m).vmin, (n + m).vmax) == (1, 13)


def test_terms_that_cancel_leave_an_int() -> None:
    assert type(n + 2 - n) is int and n + 2 - n == 2
    assert type(n - n) is int and n - n == 0
    assert (n * 6) // 3 == n * 2
    assert (n * 6) % 3 == 0
    assert n // n == 1 and n % n == 0


def test_equal_expressions_are_equal_and_no_size_equals_a_number() -> None:
    assert n + 1 == 1 + n and hash(n + 1) == hash(1 + n)
    assert n * m == m * n
    assert n != m and n != 9 and n != 1 and 9 != n
    assert 1 not in (n, m)


def test_a_product_is_written_alike_whichever_size_was_made_first() -> None:
    later, earlier = (variable_size(name, 1, 9) for name in ("zz", "aa"))
    assert repr(later * earlier) == repr(earlier * later) == "(aa*zz)"


def test_comparisons_hold_for_every_value_or_for_the_largest() -> None:
    assert m < n + 5 and n >= 1 and m >= 0 and n > m - 9
    assert n < n + 1 and not n < n and n <= n
    assert n > 3 and not n < 5 and n < 10


def test_a_size_is_written_as_its_expression() -> None:
    assert (repr(n), repr(n + 1), repr(n * 2)) == ("n", "(n+1)", "(n*2)")
    assert str((n, 3)) == "(n, 3)"


def test_values_travel_with_expressions() -> None:
    both = n.bind(3) * 2 + m.bind(1)
    assert both.val == 7
    assert n.bind(4).unbind() == (n, 4)
    assert concrete((n, 5, n + 1), n.bind(2).bound) == (2, 5, 3)


def test_the_later_value_of_a_variable_counts() -> None:
    early, late = n.bind(3), n.bind(8)
    assert (early + late).val == (late + early).val == 16
    assert bindings(((early, 1), late)) == {n.uop: 8}


def test_sizes_are_found_inside_of_arguments() -> None:
    assert sizes_in(((0, n), (m, 4), "x", 3)) == [n, m]
    assert sizes_in(n) == [n]


def test_a_size_without_a_value_has_none() -> None:
    with pytest.raises(ShapeError, match="n has no value"):
        _ = (n + 1).val
    with pytest.raises(ShapeError, match="known only at launch"):
        float(n)
    with pytest.raises(ShapeError, match="cannot divide n by m"):
        n // m
    with pytest.raises(ShapeError, match="not a variable"):
        (n + 1).bind(3)


@pytest.mark.parametrize(("low", "high"), [(3, 3), (5, 2), (-1, 4)])
def test_bounds_must_be_in_order(low: int, high: int) -> None:
    with pytest.raises(ShapeError, match="0 <= smallest < largest"):
        variable_size("k", low, high)


def test_evaluation_equals_python() -> None:
    for value in range(1, 10):
        for expression, wanted in (((n * 7) // 3, value * 7 // 3), ((n + 5) % 4, (value + 5) % 4)):
            assert isinstance(expression, Size)
            assert evaluate(expression.uop, {n.uop: value}) == wanted
