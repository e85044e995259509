"""Clipping gradients, against PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

from glassgrad import Tensor
from glassgrad.nn.optim import clip_grad_norm_, clip_grad_value_

SHAPES = [(3, 4), (5,), ()]


def gradients() -> list[np.ndarray]:
    random = np.random.default_rng(0)
    return [np.asarray(random.standard_normal(shape) * 3, np.float32) for shape in SHAPES]


def owners() -> list[Tensor]:
    found = [Tensor(np.zeros(shape, np.float32)) for shape in SHAPES]
    for param, gradient in zip(found, gradients(), strict=True):
        param.grad = Tensor(gradient)
    return found


@pytest.mark.parametrize("most", [0.5, 1000.0])
def test_the_common_length_is_clipped(most: float) -> None:
    params = owners()
    length = clip_grad_norm_([*params, Tensor([1.0])], most)
    wanted = np.sqrt(sum(float((g.astype(np.float64) ** 2).sum()) for g in gradients()))
    assert length.item() == pytest.approx(wanted, rel=1e-6)
    scale = min(1.0, most / (wanted + 1e-6))
    for param, gradient in zip(params, gradients(), strict=True):
        assert param.grad is not None
        np.testing.assert_allclose(param.grad.numpy(), gradient * scale, rtol=1e-5)


def test_every_element_is_clipped() -> None:
    params = owners()
    clip_grad_value_(params, 1.0)
    for param, gradient in zip(params, gradients(), strict=True):
        assert param.grad is not None
        np.testing.assert_array_equal(param.grad.numpy(), gradient.clip(-1, 1))


def test_no_gradients_have_no_length() -> None:
    assert clip_grad_norm_([Tensor([1.0])], 1.0).item() == 0


def test_lengths_of_float64_are_float64() -> None:
    w = Tensor(np.array([1.0, 2.0]))
    w.grad = Tensor(np.array([1.0, 3.0]))
    assert clip_grad_norm_([w], 1.0).item() == np.sqrt(10.0)


@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan])
def test_gradients_that_are_no_numbers_are_told_by_their_length(odd: float) -> None:
    w, v = Tensor([1.0, 2.0]), Tensor([3.0])
    w.grad, v.grad = Tensor([odd, 1.0]), Tensor([1.0])
    length = clip_grad_norm_([w, v], 1.0).item()
    assert not np.isfinite(length)
    assert np.isnan(w.grad.numpy()[0])
