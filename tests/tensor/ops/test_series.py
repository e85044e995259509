"""Functions near 0 keep all digits of small numbers, and agree at the borders of their branches."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support.references.finite_differences import check

from glassgrad import Tensor
from glassgrad.tensor.ops.series import expm1, log1p, odd, polynomial, sinh

ON_BOTH_BACKENDS = True
TOLERANCE = {"float32": 4e-7, "float64": 1e-15}
SMALL = [1e-30, 1e-10, 1e-5, 1e-3, 0.1, 0.3, 0.999, 1.0]


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_log1p_keeps_the_digits_of_small_numbers(dtype: str) -> None:
    x = np.array([0.0, *SMALL], dtype)
    np.testing.assert_allclose(log1p(Tensor(x)).numpy(), np.log1p(x), rtol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_sinh_keeps_the_digits_of_small_numbers_of_both_signs(dtype: str) -> None:
    x = np.array([*SMALL, 1.001, 5.0, 0.0, *(-s for s in SMALL), -1.001, -5.0], dtype)
    np.testing.assert_allclose(sinh(Tensor(x)).numpy(), np.sinh(x), rtol=2 * TOLERANCE[dtype])
    assert math.copysign(1, sinh(Tensor(-0.0)).item()) == -1


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_expm1_keeps_the_digits_of_small_numbers(dtype: str) -> None:
    x = -np.array([0.0, *SMALL, 1.001, 5.0, np.inf], dtype)
    np.testing.assert_allclose(expm1(Tensor(x)).numpy(), np.expm1(x), rtol=2 * TOLERANCE[dtype])


@pytest.mark.parametrize("function", [log1p, sinh], ids=["log1p", "sinh"])
def test_derivatives_are_right_near_0_and_at_the_border(function: object) -> None:
    check(function, np.array([1e-3, 0.2, 0.9, 0.99]), second=True)


def test_the_derivative_of_expm1_is_right_on_both_sides() -> None:
    check(expm1, np.array([-1e-3, -0.9, -1.1, -5.0]), second=True)


def test_polynomials_begin_with_the_highest_power() -> None:
    assert polynomial(Tensor(2.0), (3.0, 5.0, 7.0)).item() == 3 * 4 + 5 * 2 + 7


def test_odd_series_have_odd_powers_only() -> None:
    assert odd(Tensor(2.0), lambda k: float(k < 3)).item() == 2 + 8 + 32
