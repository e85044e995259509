"""Copies of contents that a write replaces and a gradient needs."""

from __future__ import annotations

import numpy as np
import pytest

from glassgrad import Tensor
from glassgrad.tensor.autograd import saved_contents as saved


def test_many_writes_that_wait_are_each_changed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that was changed because of one before it is not examined a second time."""
    rate = Tensor([2.0, 3.0], requires_grad=True)
    x = Tensor([1.0, 2.0]).realize()
    for _ in range(30):
        x *= rate * 0.5
    calls = []
    right = saved.with_sources
    monkeypatch.setattr(saved, "with_sources", lambda *args: calls.append(args) or right(*args))
    x.realize()
    assert len(calls) <= 120
    x.sum().backward()
    expected = 30 * np.array([2.0, 3.0]) ** 29 * 0.5**30 * [1.0, 2.0]
    np.testing.assert_allclose(rate.grad.numpy(), expected, rtol=1e-4)


def test_gradients_flow_through_realized_values_that_are_overwritten() -> None:
    start = np.array([1.0, 2.0, 3.0, 4.0], np.float32)
    indices = Tensor([0, 1, 2, 3]).realize()
    for make in (lambda a: a.gather(0, indices), lambda a: a * 1.0, lambda a: a.exp2().log2()):
        a = Tensor(start, requires_grad=True)
        value = make(a).realize()
        value[1:2] = 3
        ((a[:2] ** 2).sum() + (value**2).sum()).backward()
        np.testing.assert_allclose(a.grad.numpy(), [4, 4, 6, 8], rtol=1e-5)


def test_gradients_that_wait_see_the_contents_before_a_write_to_an_equal_value() -> None:
    for shape in ((1,), (4,)):
        a = Tensor(np.ones(shape, np.float32) * 2, requires_grad=True)
        same = a.cast("float32")
        mean = same.mean(0, keepdim=True)
        same.add_(same, alpha=2)
        repeated = mean.unsqueeze(0).repeat((1, 3))
        mean.realize()
        (repeated * (repeated + 0.5)).mean().backward()
        a.grad.realize()
        np.testing.assert_allclose(a.grad.numpy(), np.full(shape, 4.5 / shape[0]), rtol=1e-6)
        np.testing.assert_array_equal(same.numpy(), np.full(shape, 6.0))
        np.testing.assert_array_equal(a.numpy(), np.full(shape, 2.0))


def test_contents_are_saved_that_are_made_of_contents_saved_before() -> None:
    """Saving b rebuilds both pending writes to d; the product needs the first."""
    w = Tensor([0.5], requires_grad=True)
    b = Tensor([1.0, 2.0, 3.0]).realize()
    d = b * 1
    b[:1] += w
    d[2:] = 5
    product = b * d
    d[0] = 7
    d.realize()
    (product * product).sum().backward()
    assert w.grad.tolist() == [2 * 1.5 * 1.0 * 1.0]
    assert (d.tolist(), product.tolist()) == ([7, 2, 5], [1.5, 4, 15])


def test_sorted_values_of_a_write_that_is_rebuilt_have_a_gradient() -> None:
    w = Tensor([3.0, 1.0, 2.0], requires_grad=True)
    x = (w * 1).realize()
    x *= x
    other = (x * 3).sum()
    values, _ = x.sort()
    product = values * x
    other.realize()
    product.sum().backward()
    ours = w.grad.tolist()
    # sort(x) * x with x = w * w = [9, 1, 4], sorted [1, 4, 9]: slots 0, 1, 2 hold x1, x2, x0
    x0, x1, x2 = 9.0, 1.0, 4.0
    of_x = [x1 + x2, x2 + x0, x0 + x1]
    assert ours == [2 * v * g for v, g in zip([3.0, 1.0, 2.0], of_x, strict=True)]
