"""Inverse functions against NumPy in float64, in ulps."""

from __future__ import annotations

import numpy as np
import pytest
from support.references.finite_differences import check
from support.values.arrays import distinct, same

from glassgrad import Tensor

ON_BOTH_BACKENDS = True
NAMES = ("atan", "asin", "acos", "asinh", "acosh", "atanh")
ARGUMENTS = np.concatenate(
    [
        np.linspace(-1, 1, 401),
        [1e-20, -1e-7, 0.9999999, -0.0, np.inf, -np.inf, np.nan],
        np.logspace(-3, 30, 100),
        -np.logspace(-3, 30, 100),
    ]
)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", NAMES)
def test_values_are_within_a_few_ulps(name: str, dtype: str) -> None:
    x = ARGUMENTS.astype(dtype)
    with np.errstate(all="ignore"):
        wanted = getattr(np, "arc" + name[1:])(x.astype("float64")).astype(dtype)
    got = getattr(Tensor(x), name)()
    same(got, wanted, rtol=4 * np.finfo(dtype).eps)


def test_narrow_floats_and_ints() -> None:
    x = np.array([0.1, 0.9, -0.5], "float16")
    same(Tensor(x).atan(), np.arctan(x.astype("f")).astype("float16"))
    assert Tensor([1]).atan().dtype.name == "float32"


def test_copysign_knows_negative_zero() -> None:
    x = np.array([1.0, -2.0, 0.0, -0.0, np.inf, -3.0])
    y = np.array([-0.0, 0.0, -1.0, 5.0, -np.inf, np.inf])
    got = Tensor(x).copysign(Tensor(y))
    same(got, np.copysign(x, y))
    assert np.signbit(got.numpy()).tolist() == np.signbit(np.copysign(x, y)).tolist()
    assert Tensor([1.0, -1.0]).copysign(-3).tolist() == [-1, -1]


def test_gradients_of_inverse_functions() -> None:
    wide, narrow = distinct((2, 4)) * 2, distinct((2, 4)) * 0.45
    check(lambda x: x.atan(), wide, second=True)
    check(lambda x: x.asinh(), wide, second=True)
    check(lambda x: x.asin(), narrow, second=True)
    check(lambda x: x.acos(), narrow, second=True)
    check(lambda x: x.atanh(), narrow, second=True)
    check(lambda x: x.acosh(), np.abs(wide) + 1.1, second=True)
    check(lambda x: x.copysign(Tensor([-1.0, 1.0, -1.0, 1.0])), narrow)


@pytest.mark.parametrize("name", ["atan", "asin", "asinh", "atanh"])
def test_derivatives_at_zero_are_one(name: str) -> None:
    x = Tensor([0.0])
    assert getattr(x, name)().sum().gradient(x)[0].tolist() == [1.0]
