"""Remainders of floats, where quotients are rounded, infinite or not there at all."""

from __future__ import annotations

import numpy as np
import pytest

from glassgrad import Tensor

EDGES = [0.0, 1.0, -1.0, 0.1, -0.1, 0.3, 3.0, 7.5, -7.5, 1e6, np.inf, -np.inf, np.nan]


def pairs(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    whole = np.arange(-60, 61) / 10  # many of these are a multiple of 0.1 but for rounding
    x, y = np.meshgrid([*EDGES, *whole], [*EDGES, 0.7, -0.2])
    return x.astype(dtype), y.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_are_divided_and_leave_remainders_as_numpys_do(dtype: str) -> None:
    x, y = pairs(dtype)
    with np.errstate(all="ignore"):
        wanted = {"//": x // y, "%": x % y, "fmod": np.fmod(x, y)}
    a, b = Tensor(x), Tensor(y)
    ours = {"//": a // b, "%": a % b, "fmod": a.fmod(b)}
    for name, value in ours.items():
        got = value.numpy()
        np.testing.assert_allclose(got, wanted[name], rtol=1e-5, atol=1e-7, err_msg=name)


def test_a_remainder_has_the_sign_of_what_it_should_and_is_smaller() -> None:
    x = np.random.default_rng(0).standard_normal(4000).astype(np.float32) * 100
    y = np.float32(0.1)
    rest, floor = Tensor(x).fmod(0.1).numpy(), (Tensor(x) % 0.1).numpy()
    assert ((rest == 0) | (np.sign(rest) == np.sign(x))).all()
    assert (np.abs(rest) < y).all()
    assert ((floor >= 0) & (floor < y)).all()


def test_narrow_floats_are_divided_as_float32() -> None:
    x = Tensor([100.5, -30.25], dtype="bfloat16")
    assert (x % 7).tolist() == [2.5, 4.75]
    assert (x // 7).tolist() == [14.0, -5.0]


def test_slopes_of_remainders_are_one_and_minus_the_quotient() -> None:
    x, y = Tensor([7.5, -7.5, 1.0, 0.0]), Tensor([2.0, 2.0, 0.1, 1.0])
    (x % y).sum().backward()
    assert x.grad is not None
    assert y.grad is not None
    assert x.grad.tolist() == [1.0] * 4
    assert y.grad.tolist() == [-3.0, 4.0, -9.0, 0.0]
