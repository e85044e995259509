"""Adam and AdamW against PyTorch's, LAMB against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from glassgrad import GlobalCounters, Tensor, dtypes, nn
from glassgrad.nn.optim import LAMB, Adam, AdamW
from glassgrad.nn.state import get_parameters


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_100_steps_of_adam_equal_pytorch(decay: float) -> None:
    from support.references.torch_training import check_training, torch

    check_training(
        lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=decay),
        lambda p: Adam(p, lr=0.01, weight_decay=decay),
    )


def test_100_steps_of_adamw_equal_pytorch() -> None:
    from support.references.torch_training import check_training, torch

    check_training(
        lambda p: torch.optim.AdamW(p, lr=0.01, betas=(0.8, 0.95), weight_decay=0.1),
        lambda p: AdamW(p, lr=0.01, b1=0.8, b2=0.95, weight_decay=0.1),
    )


def test_the_first_step_is_the_learning_rate_to_the_last_digits() -> None:
    """1 - 0.999 in float32 is off by 5e-5; Adam's first step shows it."""
    w = Tensor([1.0, -1.0])
    w.grad = Tensor([1e-3, -10.0])
    Adam([w], lr=0.5, eps=0.0).step()
    np.testing.assert_allclose(w.numpy(), [0.5, -0.5], rtol=5e-7)


def test_b1_may_be_zero() -> None:
    w = Tensor([1.0])
    w.grad = Tensor([2.0])
    Adam([w], lr=0.5, b1=0.0, eps=0.0).step()
    np.testing.assert_allclose(w.numpy(), [0.5], rtol=1e-6)


def test_lamb_equals_its_definition() -> None:
    random = np.random.default_rng(0)
    w = random.standard_normal(7)
    m, v = np.zeros(7), np.zeros(7)
    param = Tensor(w.astype(np.float32))
    optimizer = LAMB([param], 0.1, weight_decay=0.05)
    for t in range(1, 101):
        g = random.standard_normal(7)
        param.grad = Tensor(g.astype(np.float32))
        optimizer.step()
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        step = m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-6) + 0.05 * w
        w = w - 0.1 * np.linalg.norm(w) / np.linalg.norm(step) * step
    np.testing.assert_allclose(param.numpy(), w, rtol=2e-4, atol=2e-5)


def test_lamb_may_take_adams_steps() -> None:
    random = np.random.default_rng(0)
    start = random.standard_normal(7).astype(np.float32)
    one, two = Tensor(start.copy()), Tensor(start.copy())
    pair = (
        LAMB([one], 0.1, eps=1e-8, weight_decay=0.05, adam=True),
        AdamW([two], 0.1, weight_decay=0.05),
    )
    for _ in range(5):
        one.grad = two.grad = Tensor(random.standard_normal(7).astype(np.float32))
        for optimizer in pair:
            optimizer.step()
    np.testing.assert_array_equal(one.numpy(), two.numpy())


def test_updates_are_part_of_the_kernels_that_make_the_gradients() -> None:
    layers = [nn.Linear(64, 64) for _ in range(4)]
    params = get_parameters(layers)
    optimizer = Adam(params)
    x = Tensor.randn(32, 64).realize()

    def kernels(is_step: bool) -> int:
        optimizer.zero_grad()
        loss = x.sequential([layer for one in layers for layer in (one, Tensor.tanh)]).mean()
        loss.backward()
        wanted = optimizer.schedule_step() if is_step else [param.grad for param in params]
        GlobalCounters.reset()
        loss.realize(*wanted)
        return GlobalCounters.kernel_count

    assert kernels(is_step=True) <= kernels(is_step=False) + 1


def test_running_means_of_half_floats_are_float32() -> None:
    """The square of 1e-4 is 0 in float16."""
    w = Tensor([1.0, 2.0]).cast(dtypes.float16).contiguous()
    optimizer = Adam([w], lr=0.25)
    for _ in range(2):
        w.grad = Tensor([1e-4, -1e-4]).cast(dtypes.float16)
        optimizer.step()
    assert w.dtype is dtypes.float16
    np.testing.assert_allclose(w.numpy(), [0.5, 2.5], rtol=1e-3)
