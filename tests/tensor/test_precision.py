"""Values that float32, double rounding or a rounded mean would spoil."""

from __future__ import annotations

import numpy as np
import pytest

from glassgrad import Tensor, dtypes

ON_COMPILED_BACKEND = True


@pytest.mark.parametrize("copies", [1, 2000])  # Python's array, NumPy's
def test_python_floats_are_rounded_once(copies: int) -> None:
    """Each lies just beside a tie of the narrow dtype, where float32 sees the tie itself."""
    rows = [
        ("float16", 65519.999, 65504.0),
        ("float16", 1 + 2**-11 + 2**-40, 1 + 2**-10),
        ("bfloat16", 1 + 2**-8 + 2**-40, 1 + 2**-7),
        ("fp8e4m3", 1 + 2**-4 + 2**-40, 1.125),
        ("fp8e5m2", 1 + 2**-3 + 2**-40, 1.25),
        ("bfloat16", 2**60 + 2**52 + 1, float(2**60 + 2**53)),
    ]
    for dtype, value, wanted in rows:
        assert Tensor([value] * copies, dtype=dtype).tolist()[-1] == wanted, (dtype, value)
        if isinstance(value, float):
            assert Tensor(value, dtype=dtype).item() == wanted, (dtype, value)


def test_ranges_beyond_32_bits() -> None:
    assert Tensor.arange(2**31 + 2, dtype="int64")[-1].item() == 2**31 + 1
    assert Tensor.arange(2**40, 2**40 + 3, dtype="int64").tolist() == [2**40 + i for i in range(3)]
    assert Tensor.arange(2**40, 2**40 + 2).dtype is dtypes.int64
    assert Tensor.arange(2**63, 2**63 + 2, dtype="uint64").tolist() == [2**63, 2**63 + 1]
    assert Tensor.arange(2**53 + 1, 2**53 + 3, dtype="int64").tolist() == [2**53 + 1, 2**53 + 2]
    assert Tensor.arange(3e9, 3e9 + 3, dtype="float64").tolist() == [3e9, 3e9 + 1, 3e9 + 2]
    assert Tensor.arange(5, 0, -2).tolist() == [5, 3, 1]
    assert Tensor.arange(3).dtype is dtypes.int32


def test_ranges_of_fractions_are_those_of_numpy() -> None:
    wanted = np.arange(0, 1, 0.1)
    np.testing.assert_array_equal(Tensor.arange(0, 1, 0.1, dtype="float64").numpy(), wanted)
    np.testing.assert_array_equal(Tensor.arange(0, 1, 0.1).numpy(), wanted.astype(np.float32))
    ends = Tensor.linspace(0.1, 0.7, 7, dtype="float64").numpy()
    np.testing.assert_allclose(ends, np.linspace(0.1, 0.7, 7), rtol=1e-15)


@pytest.mark.parametrize("size", [5_000, 1_000_000])
def test_variances_far_from_zero(size: int) -> None:
    random = np.random.default_rng(0)
    x = (1e4 + 0.03 * random.standard_normal(size)).astype(np.float32)
    wanted = x.astype(np.float64).var(ddof=1)
    assert Tensor(x).var().item() == pytest.approx(wanted, rel=1e-5)
    assert Tensor(x).std().item() == pytest.approx(wanted**0.5, rel=1e-5)
    assert Tensor(x).var_mean()[1].item() == pytest.approx(x.astype(np.float64).mean(), rel=1e-7)


def test_gradients_of_a_variance_of_many() -> None:
    x = np.random.default_rng(0).standard_normal(5_000).astype(np.float32)
    leaf = Tensor(x, requires_grad=True)
    leaf.var().backward()
    assert leaf.grad is not None
    wanted = 2 * (x - x.astype(np.float64).mean()) / (x.size - 1)
    np.testing.assert_allclose(leaf.grad.numpy(), wanted, rtol=1e-4, atol=1e-8)


def test_the_deviation_of_narrow_floats_is_rounded_once() -> None:
    x = Tensor([2.0, -4.0, 6.0, 1.0])
    assert x.cast("bfloat16").std().float().item() == x.std().cast("bfloat16").float().item()


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_whole_numbers_are_interpolated_and_then_rounded(mode: str) -> None:
    x = np.random.default_rng(0).integers(0, 256, (2, 7, 9), dtype=np.uint8)
    exact = Tensor(x.astype(np.float64)).interpolate((12, 20), mode=mode).numpy().clip(0, 255)
    got = Tensor(x).interpolate((12, 20), mode=mode).numpy()
    assert got.dtype == np.uint8
    assert np.abs(got - exact).max() <= 0.5 + 1e-4
