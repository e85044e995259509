"""Derivatives where branches of a function meet, and values at the ends of its range."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from glassgrad import Tensor

ON_COMPILED_BACKEND = True

# (function, point, derivative), as PyTorch has them.
DERIVATIVES: list[tuple[str, Callable[[Tensor], Tensor], float, float]] = [
    ("atan", Tensor.atan, 1.0, 0.5),
    ("atan", Tensor.atan, -1.0, 0.5),
    ("asin", Tensor.asin, 0.0, 1.0),
    ("asin", Tensor.asin, 1.0, math.inf),
    ("acos", Tensor.acos, 0.0, -1.0),
    ("acos", Tensor.acos, 1e-8, -1.0),
    ("acos", Tensor.acos, -1.0, -math.inf),
    ("asinh", Tensor.asinh, 0.3, 1 / math.sqrt(1.09)),
    ("asinh", Tensor.asinh, 1e8, 1e-8),
    ("asinh", Tensor.asinh, 1e20, 1e-20),
    ("acosh", Tensor.acosh, 1.0, math.inf),
    ("atanh", Tensor.atanh, 1.0, math.inf),
    ("atanh", Tensor.atanh, 0.3, 1 / 0.91),
    ("cosh", Tensor.cosh, 1e-8, 1e-8),
    ("sinh", Tensor.sinh, 1.0, math.cosh(1.0)),
    ("cos", Tensor.cos, 1e-30, -1e-30),
    ("sin", Tensor.sin, float(np.float32(math.pi / 2)), -4.371139e-08),
    ("tan", Tensor.tan, 0.5, 1 / math.cos(0.5) ** 2),
    ("relu", Tensor.relu, 0.0, 0.0),
    ("relu6", Tensor.relu6, 6.0, 0.0),
    ("hardtanh", Tensor.hardtanh, 1.0, 0.0),
    ("hardsigmoid", Tensor.hardsigmoid, 3.0, 0.0),
    ("leaky_relu", lambda x: x.leaky_relu(0.01), 0.0, 0.01),
    ("elu", Tensor.elu, 0.0, 1.0),
    ("elu(2)", lambda x: x.elu(2.0), 0.0, 2.0),
    ("celu", Tensor.celu, 0.0, 1.0),
    ("celu(2)", lambda x: x.celu(2.0), 0.0, 1.0),
    ("selu", Tensor.selu, 0.0, 1.0507009873554805 * 1.6732632423543772),
    ("clip", lambda x: x.clip(-1, 1), 1.0, 1.0),
    ("clip", lambda x: x.clip(-1, 1), -1.0, 1.0),
    ("clip", lambda x: x.clip(-1, 1), 1.5, 0.0),
    ("clip by tensors", lambda x: x.clip(Tensor(-1.0), Tensor(1.0)), 1.0, 1.0),
    ("maximum", lambda x: x.maximum(0), 0.0, 0.5),
    ("maximum", lambda x: x.maximum(Tensor(0.0)), 0.0, 0.5),
    ("minimum", lambda x: x.minimum(0), 0.0, 0.5),
    ("abs", Tensor.abs, 0.0, 0.0),
    ("0 ** x", lambda x: 0.0**x, -0.3, -math.inf),
    ("0 ** x", lambda x: 0.0**x, 0.3, 0.0),
    ("x ** -2", lambda x: x**-2, 0.0, -math.inf),
    ("x ** -2", lambda x: x**-2, math.inf, -0.0),
]


@pytest.mark.parametrize(
    ("name", "function", "point", "wanted"),
    DERIVATIVES,
    ids=[f"{r[0]} at {r[2]}" for r in DERIVATIVES],
)
def test_derivatives_where_branches_meet(
    name: str, function: Callable[[Tensor], Tensor], point: float, wanted: float
) -> None:
    x = Tensor([point], requires_grad=True)
    function(x).sum().backward()
    assert x.grad is not None
    assert x.grad.item() == pytest.approx(wanted, rel=1e-6), name


def test_tensor_bounds_get_the_gradient_of_clamped_elements() -> None:
    x, low = Tensor([-2.0, 0.5, -1.0], requires_grad=True), Tensor([-1.0], requires_grad=True)
    x.clamp(min_=low).sum().backward()
    assert x.grad is not None and low.grad is not None
    assert (x.grad.tolist(), low.grad.tolist()) == ([0.0, 1.0, 1.0], [1.0])


def test_nan_bounds_give_nan() -> None:
    assert math.isnan(Tensor([1.0]).clamp(min_=math.nan).item())
    assert math.isnan(Tensor([1.0]).clamp(max_=Tensor([math.nan])).item())


def test_second_derivatives_of_waves() -> None:
    x = Tensor([0.7], requires_grad=True)
    (first,) = x.cos().sum().gradient(x)
    (second,) = first.sum().gradient(x)
    (third,) = second.sum().gradient(x)
    found = [first.item(), second.item(), third.item()]
    assert found == pytest.approx([-math.sin(0.7), -math.cos(0.7), math.sin(0.7)], rel=1e-6)


def test_sinh_and_cosh_are_finite_up_to_the_largest_float() -> None:
    x = np.array([88.0, 88.8, 89.2, 89.41, -89.2], np.float32)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(Tensor(x).sinh().numpy(), np.sinh(wide), rtol=3e-7)
    np.testing.assert_allclose(Tensor(x).cosh().numpy(), np.cosh(wide), rtol=3e-7)
    assert Tensor([89.5]).cosh().item() == math.inf
    assert Tensor([710.4], dtype="float64").sinh().item() == pytest.approx(math.sinh(710.4))


def test_cosines_near_their_zeros_keep_all_their_digits() -> None:
    zeros = (np.arange(1, 2000) * (math.pi / 2)).astype(np.float32)
    x = np.concatenate([zeros, np.nextafter(zeros, np.float32(0)), np.float32([1.5708113, 1e30])])
    wide = x.astype(np.float64)
    np.testing.assert_allclose(Tensor(x).cos().numpy(), np.cos(wide), rtol=2e-7)
    np.testing.assert_allclose(Tensor(x).tan().numpy(), np.tan(wide), rtol=4e-7)
    np.testing.assert_allclose(
        Tensor(x + 1).cos().numpy(), np.cos((x + 1).astype(float)), rtol=2e-7
    )
    np.testing.assert_allclose(
        (Tensor(x) + 1).cos().numpy(), np.cos((x + 1).astype(float)), rtol=2e-7
    )
