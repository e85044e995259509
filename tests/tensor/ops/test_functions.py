"""exp, tanh, erf, pow: accuracy in ulps, and edge cases."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from support.references.finite_differences import check
from support.values.arrays import same

from glassgrad import Tensor, dtypes


def ulps(got: np.ndarray, wanted: np.ndarray) -> float:
    """The largest error in units of the last place."""
    spacing = np.spacing(np.abs(wanted.astype(got.dtype)).clip(np.finfo(got.dtype).tiny))
    return float(np.max(np.abs(got.astype(np.longdouble) - wanted) / spacing))


def sweep(dtype: str) -> np.ndarray:
    """Both signs, from tiny to large."""
    sizes = np.concatenate([10.0 ** np.linspace(-30, 1, 2001), np.linspace(0.001, 12, 4001)])
    return np.concatenate([-sizes, sizes]).astype(dtype)


ACCURATE: dict[str, tuple[Callable[[float], float], float]] = {
    "tanh": (math.tanh, 4.0),
    "erf": (math.erf, 4.0),
    "sigmoid": (lambda x: 1 / (1 + math.exp(-x)), 16.0),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ACCURATE)
def test_functions_are_accurate_everywhere(name: str, dtype: str) -> None:
    exact, most = ACCURATE[name]
    x = sweep(dtype)
    wanted = np.array([exact(float(value)) for value in x], np.longdouble)
    assert ulps(getattr(Tensor(x), name)().numpy(), wanted) <= most


def test_exp_and_log_are_accurate_for_moderate_arguments() -> None:
    x = np.linspace(-4, 4, 1001).astype(np.float32)
    assert ulps(Tensor(x).exp().numpy(), np.exp(x.astype(np.longdouble))) <= 6
    y = np.linspace(0.01, 100, 1001).astype(np.float32)
    error = Tensor(y).log().numpy() - np.log(y.astype(np.longdouble))
    assert np.abs(error).max() < 1e-6


def test_cos_is_accurate_to_one_ulp_of_one() -> None:
    x = np.linspace(-1000, 1000, 4001)
    error = Tensor(x.astype(np.float32)).cos().numpy() - np.cos(x.astype(np.float32).astype(float))
    assert np.abs(error).max() < 4e-7


EDGES = np.array([-np.inf, -1e30, -0.0, 0.0, 1e30, np.inf, np.nan], np.float32)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("exp", [0, 0, 1, 1, np.inf, np.inf, np.nan]),
        ("sigmoid", [0, 0, 0.5, 0.5, 1, 1, np.nan]),
        ("tanh", [-1, -1, 0, 0, 1, 1, np.nan]),
        ("erf", [-1, -1, 0, 0, 1, 1, np.nan]),
        ("relu", [0, 0, 0, 0, 1e30, np.inf, np.nan]),
        ("softplus", [0, 0, math.log(2), math.log(2), 1e30, np.inf, np.nan]),
        ("log", [np.nan, np.nan, -np.inf, -np.inf, math.log(1e30), np.inf, np.nan]),
        ("sqrt", [np.nan, np.nan, 0, 0, 1e15, np.inf, np.nan]),
        ("elu", [-1, -1, 0, 0, 1e30, np.inf, np.nan]),
    ],
)
def test_edges(name: str, wanted: list[float]) -> None:
    got = getattr(Tensor(EDGES), name)()
    same(got, np.array(wanted, np.float32), rtol=1e-6)


FORMULAS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "square": lambda x: x * x,
    "log10": np.log10,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tan": np.tan,
    "exp2": np.exp2,
}
POSITIVE = ("rsqrt", "log10")


@pytest.mark.parametrize("name", FORMULAS)
def test_functions_agree_with_their_formulas(name: str) -> None:
    x = np.linspace(-3.3, 3.1, 101)
    x = np.abs(x) if name in POSITIVE else x
    same(getattr(Tensor(x), name)(), FORMULAS[name](x), rtol=1e-9, atol=1e-12)


def test_powers_of_floats() -> None:
    x = np.linspace(0.1, 4, 40)
    for power in (-3, -2, -1, -0.5, 0, 0.5, 1, 2, 3, 2.5, 7, 10):
        same(Tensor(x) ** power, x**power, rtol=1e-12)
    same(2.0 ** Tensor(x), 2.0**x, rtol=1e-12)
    same(Tensor(x) ** Tensor(x), x**x, rtol=1e-12)


def test_whole_powers_of_ints_stay_whole() -> None:
    x = np.arange(-5, 6, dtype=np.int32)
    same(Tensor(x) ** 3, x**3)
    same(Tensor(x) ** 0, x**0)
    same(Tensor(x) ** 101, x**101)
    power = np.arange(11, dtype=np.int32)
    same(Tensor(x) ** Tensor(power), x**power)
    assert (2 ** Tensor([0, 3, 30])).tolist() == [1, 8, 2**30]
    assert (Tensor([1, -1, 2]) ** Tensor([-1, -3, -1])).tolist() == [1, -1, 0]
    same(Tensor([2, 4]) ** -1, np.array([0.5, 0.25], np.float32))


def test_narrow_floats_are_computed_in_float32() -> None:
    x = np.linspace(-8, 8, 200).astype(np.float16)
    got = Tensor(x).exp()
    assert got.dtype is dtypes.float16
    wanted = np.exp(x.astype(np.float64)).astype(np.float16)
    assert ulps(got.numpy(), wanted.astype(np.longdouble)) <= 1


def test_logaddexp_does_not_overflow() -> None:
    x, y = np.array([1000.0, -1000.0, -np.inf]), np.array([1000.0, -1001.0, 2.0])
    same(Tensor(x).logaddexp(Tensor(y)), np.logaddexp(x, y), rtol=1e-12)


def test_ints_become_floats() -> None:
    assert Tensor([1, 2]).exp().dtype is dtypes.float32


def test_bools_to_a_power_are_ints_or_floats() -> None:
    x = Tensor([True, False])
    assert (x**2).dtype.name == "int32" and (x**2).tolist() == [1, 0]
    assert (x**0.5).dtype.name == "float32" and (x**0.5).tolist() == [1.0, 0.0]


def test_logaddexp_of_infinities() -> None:
    up, down = math.inf, -math.inf
    x, y = [up, down, up, down, 1e30, math.nan], [up, down, down, 3.0, up, up]
    found = Tensor(x).logaddexp(Tensor(y)).tolist()
    assert found[:5] == [up, down, up, 3.0, up] and math.isnan(found[5])


def test_logaddexp_of_equal_numbers_has_both_derivatives() -> None:
    check(lambda x, y: x.logaddexp(y), np.array([1.0, 2.0]), np.array([1.0, 3.0]), second=True)
