"""Half floats with float32 copies and a scaled loss."""

from __future__ import annotations

import numpy as np
import pytest

from glassgrad import Tensor, TinyJit, dtypes
from glassgrad.base.errors import GradientError
from glassgrad.nn.optim import SGD, Adam, MixedPrecision


def test_small_steps_add_up_in_the_float32_copies() -> None:
    """In bfloat16 alone 1 - 0.001 is 1: nothing would ever move."""
    w = Tensor([1.0])
    optimizer = MixedPrecision([w], lambda params: SGD(params, lr=0.001), dtype=dtypes.bfloat16)

    @TinyJit
    def step() -> Tensor:
        optimizer.zero_grad()
        loss = optimizer.scaled(w.sum()).backward()
        return loss.realize(*optimizer.schedule_step())

    for _ in range(100):
        step()
    assert w.dtype is dtypes.bfloat16
    assert optimizer.masters[0].item() == pytest.approx(0.9, abs=1e-5)
    assert w.item() == pytest.approx(0.9, abs=4e-3)


@pytest.mark.parametrize(("scale", "wanted"), [(None, 0.99), (1.0, 1.0)])
def test_small_gradients_of_float16_survive_by_the_scale(
    scale: float | None, wanted: float
) -> None:
    w = Tensor([1.0])
    optimizer = MixedPrecision([w], lambda p: SGD(p, lr=1e6), dtype=dtypes.float16, scale=scale)
    optimizer.scaled((w.float() * 1e-8).sum()).backward()
    optimizer.step()
    assert optimizer.masters[0].item() == pytest.approx(wanted, abs=1e-4)


def test_a_step_with_an_infinite_gradient_changes_nothing_but_the_scale() -> None:
    w = Tensor([1.0, 2.0])
    optimizer = MixedPrecision(
        [w], lambda params: Adam(params, lr=0.1), dtype=dtypes.float16, scale=8.0, patience=2
    )
    adam = optimizer.optimizer
    assert isinstance(adam, Adam)

    @TinyJit
    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = optimizer.scaled((w * x).sum()).backward()
        return loss.realize(*optimizer.schedule_step())

    scales, values = [], []
    for x in (1.0, np.inf, 1.0, 1.0, np.nan, 1.0):
        before = (w.tolist(), adam.mean[0].tolist(), adam.count.item())
        step(Tensor(np.array([1.0, x], np.float16)))
        after = (w.tolist(), adam.mean[0].tolist(), adam.count.item())
        assert (before == after) == (not np.isfinite(x))
        scales.append(optimizer.scale.item())
        values.append(adam.count.item())
    assert scales == [8, 4, 4, 8, 4, 4]
    assert values == [1, 1, 2, 3, 3, 4]


def test_a_step_without_gradients_says_so() -> None:
    optimizer = MixedPrecision([Tensor([1.0, 2.0])], lambda params: SGD(params, lr=0.5))
    with pytest.raises(GradientError, match=r"parameter 0 of shape \(2,\) has no gradient"):
        optimizer.step()
