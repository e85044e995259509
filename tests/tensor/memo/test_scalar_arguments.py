"""A number that changes from call to call becomes a launch argument."""

from __future__ import annotations

import numpy as np
import pytest

from glassgrad import Tensor

ON_COMPILED_BACKEND = True


def data(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


def test_a_rate_that_changes_compiles_once(written: list[object]) -> None:
    x = Tensor(data(20, 3)).realize()
    w = Tensor(data(3, 1), requires_grad=True).realize()
    model = w.numpy().copy()
    counts = []
    for step in range(8):
        rate = 0.1 / (step + 1)
        (x @ w).square().mean().backward()
        assert w.grad is not None
        with Tensor.no_grad():
            w -= rate * w.grad
        w.grad = None
        w.realize()
        model -= rate * 2 * x.numpy().T @ (x.numpy() @ model) / 20
        counts.append(len(written))
    np.testing.assert_allclose(w.numpy(), model, rtol=1e-4)
    assert counts[-1] == counts[2] > 0


@pytest.mark.parametrize(
    "use",
    [
        lambda x, n: x * n,
        lambda x, n: n - x,
        lambda x, n: x / n,
        lambda x, n: n / x,
        lambda x, n: x.add(n),
        lambda x, n: (x * n).exp() + n,
    ],
)
def test_numbers_that_change_are_right_and_have_gradients(written, use) -> None:
    array = np.abs(data(5)) + 1
    counts = []
    for n in (1.5, 2.5, 3.25, 4.0, -1.5, 0.5):
        x = Tensor(array)
        y = use(x, n).sum()
        (g,) = y.gradient(x)
        y.realize(g)
        wide, step = array.astype(np.float64), 1e-6

        def value(a: np.ndarray, n: float = n) -> float:
            return float(use(Tensor(a), n).sum().item())

        slopes = [
            (value(wide + step * unit) - value(wide - step * unit)) / (2 * step)
            for unit in np.eye(5)
        ]
        np.testing.assert_allclose(g.numpy(), slopes, rtol=1e-4)
        counts.append(len(written))
    assert counts[-1] == counts[-2] == counts[-3]


def test_constants_of_the_library_stay_constants() -> None:
    x = Tensor(data(5)).realize()
    for _ in range(4):
        y = x.gelu()
    assert all(node is x.uop or node.op.name != "BUFFER" for node in y.uop.toposort())
