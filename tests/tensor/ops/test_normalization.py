"""softmax and normalizations against their formulas in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from support.values.arrays import distinct, same

from glassgrad import Tensor

ON_BOTH_BACKENDS = True

X = distinct((4, 3)) * 3


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_and_its_log(axis: int) -> None:
    same(Tensor(X).softmax(axis), softmax(X, axis), rtol=1e-12)
    same(Tensor(X).log_softmax(axis), np.log(softmax(X, axis)), rtol=1e-12)
    same(Tensor(X).softmin(axis), softmax(-X, axis), rtol=1e-12)


def test_softmax_of_large_numbers_does_not_overflow() -> None:
    x = Tensor([[1e30, 1e30, -1e30]], dtype="float32")
    assert x.softmax().tolist() == [[0.5, 0.5, 0]]
    assert x.log_softmax().numpy()[0, 0] == pytest.approx(-np.log(2), rel=1e-6)


def test_softmax_of_a_single_number_is_one() -> None:
    assert Tensor(3.0).softmax().item() == 1
    assert Tensor([1, 2]).softmax().dtype.name == "float32"


def test_softmax_of_nothing_is_nothing() -> None:
    x = Tensor.empty(4, 0)
    assert x.softmax().shape == x.log_softmax().shape == (4, 0)
    assert x.softmax(0).tolist() == [[], [], [], []]


def test_layernorm_has_mean_zero_and_variance_one() -> None:
    wanted = (X - X.mean(1, keepdims=True)) / np.sqrt(X.var(1, keepdims=True) + 1e-5)
    same(Tensor(X).layernorm(), wanted, rtol=1e-12)
    both = (X - X.mean()) / np.sqrt(X.var() + 1e-5)
    same(Tensor(X).layernorm(axis=(0, 1)), both, rtol=1e-12)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_normalize_gives_length_one(p: float) -> None:
    length = (np.abs(X) ** p).sum(1, keepdims=True) ** (1 / p)
    same(Tensor(X).normalize(p), X / length, rtol=1e-9)


def test_batchnorm_scales_channels() -> None:
    x = distinct((2, 3, 2, 2))
    w, b, m, s = (distinct((3,), seed=i) for i in range(4))
    shaped = [a.reshape(1, 3, 1, 1) for a in (w, b, m, s)]
    wanted = (x - shaped[2]) * shaped[3] * shaped[0] + shaped[1]
    same(Tensor(x).batchnorm(*map(Tensor, (w, b, m, s))), wanted, rtol=1e-12)
    plain = Tensor(x).batchnorm(None, None, Tensor(m), Tensor(s))
    same(plain, (x - shaped[2]) * shaped[3], rtol=1e-12)


@pytest.mark.parametrize("p", [0, 1, 2, 3.0, np.inf])
@pytest.mark.parametrize("axis", [0, -1])
def test_normalize_divides_by_the_length(p: float, axis: int) -> None:
    length = np.linalg.norm(X, ord=p, axis=axis, keepdims=True)
    same(Tensor(X).normalize(p, axis), X / length, rtol=1e-12)


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "layernorm", "normalize"])
def test_rows_of_halves_are_computed_in_float32_and_rounded_once(name: str) -> None:
    x = (distinct((4, 30), "float32") * 400).astype("float16")  # their squares are no halves
    wanted = getattr(Tensor(x).float(), name)().half()
    same(getattr(Tensor(x), name)(), wanted.numpy())
