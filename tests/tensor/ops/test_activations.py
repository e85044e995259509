"""Activations against their formulas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from support.values.arrays import same

from glassgrad import Tensor
from glassgrad.ir.ops import Ops

REFERENCE: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "relu6": lambda x: np.clip(x, 0, 6),
    "leaky_relu": lambda x: np.where(x < 0, 0.01 * x, x),
    "celu": lambda x: np.maximum(x, 0) + np.minimum(np.exp(x) - 1, 0),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * (np.exp(x) - 1)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "quick_gelu": lambda x: x / (1 + np.exp(-1.702 * x)),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "hardsigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hardtanh": lambda x: np.clip(x, -1, 1),
    "mish": lambda x: x * np.tanh(np.log(1 + np.exp(x))),
    "logsigmoid": lambda x: -np.log(1 + np.exp(-x)),
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
}


@pytest.mark.parametrize("name", REFERENCE)
def test_activations_agree_with_their_formulas(name: str) -> None:
    x = np.linspace(-3.3, 3.1, 101)
    same(getattr(Tensor(x), name)(), REFERENCE[name](x), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "fp8e4m3", "fp8e5m2"])
@pytest.mark.parametrize("name", [*REFERENCE, "elu", "softplus", "sigmoid", "sinh"])
def test_narrow_floats_are_computed_in_float32_and_rounded_once(name: str, dtype: str) -> None:
    x = Tensor(np.linspace(-4, 4, 64).astype("float32")).cast(dtype)
    found = getattr(x, name)()
    assert found.dtype.name == dtype
    assert found.tolist() == getattr(x.float(), name)().cast(dtype).tolist()


@pytest.mark.parametrize("name", [*REFERENCE, "relu", "elu", "softplus"])
@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (1, 1), (2, 1, 3)])
def test_activations_keep_any_shape(name: str, shape: tuple[int, ...]) -> None:
    assert getattr(Tensor.ones(*shape), name)().numpy().shape == shape


def test_small_arguments_keep_their_digits_through_exp_and_log() -> None:
    x = Tensor([-1e-10, -20.0], dtype="float32")
    assert x.elu().tolist()[0] == pytest.approx(-1e-10, rel=1e-6)
    assert x.softplus().tolist()[1] == pytest.approx(np.log1p(np.exp(-20)), rel=1e-6)
    assert (-x).logsigmoid().tolist()[1] == pytest.approx(-np.log1p(np.exp(-20)), rel=1e-6)


@pytest.mark.parametrize("name", ["gelu", "silu"])
def test_derivatives_far_from_zero_are_0_and_1(name: str) -> None:
    """Also where x³ is too large for a float."""
    x = Tensor([-1e15, -1e5, 1e5, 1e15])
    (slope,) = getattr(x, name)().sum().gradient(x)
    assert slope.tolist() == [0.0, 0.0, 1.0, 1.0]


def test_silu_takes_one_exponential_one_division_and_three_selections() -> None:
    (kernel,) = Tensor.schedule(Tensor.empty(100).realize().silu()).kernels
    ops = Counter(node.op for node in kernel.body.toposort())
    assert [ops[op] for op in (Ops.EXP2, Ops.RECIPROCAL, Ops.FDIV, Ops.WHERE)] == [1, 1, 0, 3]
