"""Float remainders with rounded, infinite and undefined quotients."""

from __future__ import annotations

import math
from fractions import Fraction

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


def test_derivatives_of_remainders_are_one_and_minus_the_quotient() -> None:
    x, y = Tensor([7.5, -7.5, 1.0, 0.0]), Tensor([2.0, 2.0, 0.1, 1.0])
    (x % y).sum().backward()
    assert x.grad is not None
    assert y.grad is not None
    assert x.grad.tolist() == [1.0] * 4
    assert y.grad.tolist() == [-3.0, 4.0, -9.0, 0.0]


def finite_bits(dtype: str, count: int) -> np.ndarray:
    """Floats of all sizes: any bits but those of infinities and nan."""
    unsigned = {"float32": np.uint32, "float64": np.uint64}[dtype]
    rng = np.random.default_rng(5)
    found = rng.integers(0, np.iinfo(unsigned).max, 2 * count, dtype=unsigned).view(dtype)
    return found[np.isfinite(found)][:count]


def extremes(dtype: str) -> np.ndarray:
    info = np.finfo(dtype)
    least = info.smallest_subnormal
    sizes = [
        0.0,
        least,
        3 * least,
        info.tiny,
        0.1,
        1.0,
        2.0685184,
        3.0,
        87.4,
        2.0**24,
        2.0905985e16,
    ]
    sizes += [2.0**53, 1e30, 3.4e38, info.max / 3, info.max, np.inf]
    return np.array([*sizes, *[-size for size in sizes], np.nan], dtype)


def same_bits(got: np.ndarray, wanted: np.ndarray) -> None:
    """Equal numbers, and zeros of equal sign."""
    np.testing.assert_array_equal(got, wanted)
    some = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(got[some]), np.signbit(wanted[some]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_remainders_of_any_quotient_are_exact(dtype: str) -> None:
    few = extremes(dtype)
    far_x, far_y = np.meshgrid(few, few)
    many = finite_bits(dtype, 4000)
    x = np.concatenate([far_x.ravel(), many[:2000]])
    y = np.concatenate([far_y.ravel(), many[2000:]])
    a, b = Tensor(x), Tensor(y)
    with np.errstate(all="ignore"):
        same_bits(a.fmod(b).numpy(), np.fmod(x, y))
        same_bits((a % b).numpy(), np.mod(x, y))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_remainders_of_narrow_floats_are_exact(dtype: str) -> None:
    rng = np.random.default_rng(6)
    bits = Tensor(rng.integers(0, 1 << 16, 8000, dtype=np.uint16)).bitcast(dtype)
    x, y = bits[:4000], bits[4000:]
    with np.errstate(all="ignore"):
        wanted = np.fmod(x.cast("float64").numpy(), y.cast("float64").numpy())
    same_bits(x.fmod(y).cast("float64").numpy(), wanted)


def test_floor_division_is_exact_where_the_quotient_can_be_written() -> None:
    rng = np.random.default_rng(7)
    for dtype, digits in (("float32", 24), ("float64", 53)):
        x = rng.uniform(1, 2, 3000) * 2.0 ** rng.integers(0, digits, 3000)
        x, y = (x * rng.choice([-1, 1], 3000)).astype(dtype), rng.uniform(1, 2, 3000).astype(dtype)
        found = (Tensor(x) // Tensor(y)).numpy()
        pairs = zip(x.tolist(), y.tolist(), strict=True)
        wanted = [math.floor(Fraction(one) / Fraction(other)) for one, other in pairs]
        assert [int(value) for value in found] == wanted
