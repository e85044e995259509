"""State that a program carries from one computation to the next is computed once."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from glassgrad import GlobalCounters, Tensor, nn
from glassgrad.base.errors import GraphWarning

ON_COMPILED_BACKEND = True


def kernels_of(work) -> int:
    before = GlobalCounters.kernel_count
    work()
    return GlobalCounters.kernel_count - before


@pytest.mark.parametrize("ends", ["detach", "no_grad", "gradient"])
def test_descent_that_binds_a_new_weight_before_it_looks_takes_the_same_kernels(ends: str) -> None:
    rng = np.random.default_rng(1)
    x = Tensor(rng.random((20, 3), dtype=np.float32)).realize()
    y = Tensor(rng.random((20, 1), dtype=np.float32)).realize()
    w = Tensor.zeros(3, 1, requires_grad=True)
    wanted = np.zeros((3, 1), np.float32)

    def step() -> float:
        nonlocal w
        loss = ((x @ w - y) ** 2).mean()
        if ends == "gradient":
            w = (w - 0.1 * loss.gradient(w)[0]).detach()
        else:
            loss.backward()
            with Tensor.no_grad():
                w = w - 0.1 * w.grad if ends == "no_grad" else (w - 0.1 * w.grad).detach()
        w.requires_grad_(True)
        return loss.item()

    counts = [kernels_of(step) for _ in range(8)]
    a, b = x.numpy(), y.numpy()
    for _ in counts:
        wanted -= 0.1 * 2 * a.T @ (a @ wanted - b) / 20
    np.testing.assert_allclose(w.numpy(), wanted, rtol=1e-4)
    assert len(set(counts[2:])) == 1 and counts[-1] <= 3


def test_plain_descent_takes_the_same_kernels_in_every_step() -> None:
    rng = np.random.default_rng(1)
    x = Tensor(rng.random((20, 3), dtype=np.float32)).realize()
    y = Tensor(rng.random((20, 1), dtype=np.float32)).realize()
    w = Tensor.zeros(3, 1, requires_grad=True)
    wanted = np.zeros((3, 1), np.float32)

    def step() -> None:
        nonlocal w
        loss = ((x @ w - y) ** 2).mean()
        loss.backward()
        with Tensor.no_grad():
            w -= 0.1 * w.grad
        w.grad = None
        loss.item()

    counts = []
    for _ in range(8):
        counts.append(kernels_of(step))
        a, b = x.numpy(), y.numpy()
        wanted -= 0.1 * 2 * a.T @ (a @ wanted - b) / 20
    np.testing.assert_allclose(w.numpy(), wanted, rtol=1e-4)
    assert len(set(counts[2:])) == 1 and counts[-1] <= 5


def test_random_weights_are_computed_once() -> None:
    model = [nn.Linear(8, 16), Tensor.relu, nn.Linear(16, 4)]
    x = Tensor.ones(2, 8).contiguous().realize()
    first = kernels_of(lambda: x.sequential(model).numpy())
    again = kernels_of(lambda: x.sequential(model).numpy())
    assert again < first
    assert all(p.uop.op.name == "BUFFER" for p in nn.state.get_parameters(model))


def test_random_numbers_that_a_tensor_holds_are_computed_once() -> None:
    noise = Tensor.randn(64) * 0.5
    (noise * 2).numpy()
    (noise + 1).numpy()
    assert noise.uop.op.name == "BUFFER"


def test_random_numbers_without_a_holder_are_not_stored() -> None:
    GlobalCounters.reset()
    Tensor.rand(1000).sum().item()
    assert GlobalCounters.kernel_count == 1


def test_carried_state_is_not_computed_from_the_beginning() -> None:
    Tensor.manual_seed(3)
    cell = nn.LSTMCell(4, 8)
    out = nn.Linear(8, 4)
    Tensor.realize(*nn.state.get_parameters([cell, out]))
    state = None
    x = Tensor.ones(1, 4).contiguous().realize()

    def step() -> None:
        nonlocal state, x
        state = cell(x, state)
        x = out(state[0]).softmax()
        x.numpy()

    counts = [kernels_of(step) for _ in range(12)]
    assert max(counts[4:]) <= counts[3]


def test_steps_of_elementwise_state_stay_bounded() -> None:
    x = Tensor.arange(4).float().contiguous().realize()
    state = x * 0
    sizes = []
    for _ in range(100):
        state = state * 0.5 + x
        (state + 1).numpy()
        sizes.append(len(state.uop.toposort()))
    assert max(sizes) < 300
    np.testing.assert_allclose(state.numpy(), 2 * x.numpy(), rtol=1e-6)


def test_constants_are_not_stored() -> None:
    mask = Tensor.ones(4, 4).tril()
    x = Tensor([[1.0, 2, 3, 4]]).realize()
    for _ in range(3):
        (x * mask).numpy()
    assert mask.uop.op.name != "BUFFER"


def test_a_graph_that_keeps_growing_warns_once_with_its_line() -> None:
    x = Tensor([1.0, 2.0]).realize()
    kept = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(80):
            kept.append(x + len(kept))
            total = sum([one.exp() for one in kept[:]], Tensor([0.0, 0.0]))
            total.sum().item()  # every sum is made of all that were kept
    assert [one.category for one in caught] == [GraphWarning]
    assert "total.sum().item()" in str(caught[0].message)


def test_reading_a_running_average_takes_the_same_kernels_in_every_step() -> None:
    rng = np.random.default_rng(1)
    values = [rng.random((30, 4), dtype=np.float32) for _ in range(12)]
    average, expected, counts, seen = Tensor.zeros(30, 4), np.zeros((30, 4), np.float32), [], []
    for value in values:
        x = Tensor(value).realize()

        def step(x: Tensor = x) -> None:
            nonlocal average
            average = average * 0.9 + x * 0.1
            seen.append(average.sum().item())

        counts.append(kernels_of(step))
        expected = expected * 0.9 + value * 0.1
        np.testing.assert_allclose(seen[-1], expected.sum(), rtol=1e-4)
    assert len(set(counts[3:])) == 1
    np.testing.assert_allclose(average.numpy(), expected, rtol=1e-4)
