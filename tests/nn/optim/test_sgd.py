"""SGD and Muon against PyTorch's, LARS against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from glassgrad import Tensor
from glassgrad.base.errors import GradientError
from glassgrad.nn.optim import LARS, SGD, Muon


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"momentum": 0.9},
        {"momentum": 0.9, "nesterov": True},
        {"momentum": 0.9, "weight_decay": 0.01},
    ],
    ids=str,
)
def test_100_steps_of_sgd_are_pytorchs(options: dict[str, Any]) -> None:
    from support.references.torch_training import check_training, torch

    check_training(
        lambda p: torch.optim.SGD(p, lr=0.05, **options), lambda p: SGD(p, lr=0.05, **options)
    )


def test_100_steps_of_muon_are_pytorchs_as_far_as_its_bfloat16_goes() -> None:
    """PyTorch makes matrices orthogonal in bfloat16, here it is float32."""
    from support.references.torch_training import check_training, torch

    def theirs(params: list[Any]) -> Any:
        class Both:
            matrices = torch.optim.Muon(params[::2], lr=0.005)
            others = torch.optim.SGD(params[1::2], lr=0.01)

            def zero_grad(self) -> None:
                self.matrices.zero_grad()
                self.others.zero_grad()

            def step(self) -> None:
                self.matrices.step()
                self.others.step()

        return Both()

    from glassgrad.nn.optim import OptimizerGroup

    check_training(
        theirs,
        lambda p: OptimizerGroup(Muon(p[::2], lr=0.005), SGD(p[1::2], lr=0.01)),
        steps=100,
        tolerance=0.02,
    )


def polynomial(x: np.ndarray) -> np.ndarray:
    """What Muon does to a matrix, in float64."""
    is_tall = x.shape[0] > x.shape[1]
    x = x.T if is_tall else x
    x = x / (np.linalg.norm(x) + 1e-7)
    for _ in range(5):
        square = x @ x.T
        x = 3.4445 * x - 4.775 * square @ x + 2.0315 * square @ square @ x
    return x.T if is_tall else x


@pytest.mark.parametrize("shape", [(3, 5), (6, 2), (4, 2, 3, 3)])
def test_muon_is_its_definition(shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(0)
    w = random.standard_normal(shape)
    param, v = Tensor(w.astype(np.float32)), np.zeros(shape)
    optimizer = Muon([param], lr=0.1, weight_decay=0.2)
    for _ in range(10):
        g = random.standard_normal(shape)
        param.grad = Tensor(g.astype(np.float32))
        optimizer.step()
        v = 0.95 * v + g
        flat = (g + 0.95 * v).reshape(shape[0], -1)
        scale = max(1, flat.shape[0] / flat.shape[1]) ** 0.5
        w = w * (1 - 0.1 * 0.2) - 0.1 * scale * polynomial(flat).reshape(shape)
    np.testing.assert_allclose(param.numpy(), w, atol=2e-5)


def test_muon_refuses_vectors() -> None:
    with pytest.raises(GradientError, match="not a parameter of shape \\(3,\\)"):
        Muon([Tensor([1.0, 2.0, 3.0])])


@pytest.mark.parametrize("classic", [True, False])
@pytest.mark.parametrize("nesterov", [True, False])
def test_lars_is_its_definition(classic: bool, nesterov: bool) -> None:
    random = np.random.default_rng(0)
    w, v = random.standard_normal(7), np.zeros(7)
    param = Tensor(w.astype(np.float32))
    optimizer = LARS([param], 0.5, weight_decay=0.1, nesterov=nesterov, classic=classic, tcoef=0.02)
    for step in range(10):
        g = random.standard_normal(7) * (step != 4)  # a gradient of zeros is no division by zero
        param.grad = Tensor(g.astype(np.float32))
        optimizer.step()
        length, slope = np.linalg.norm(w), np.linalg.norm(g)
        trust = 0.02 * length / (slope + 0.1 * length) if slope else 1.0
        update = (g + 0.1 * w) * (0.5 * trust if classic else 1)
        v = 0.9 * v + update
        update = update + 0.9 * v if nesterov else v
        w = w - update * (1 if classic else 0.5 * trust)
    np.testing.assert_allclose(param.numpy(), w, rtol=1e-5, atol=1e-6)


def test_lars_may_decay_apart_from_the_running_sum() -> None:
    random = np.random.default_rng(0)
    w, v = random.standard_normal(7), np.zeros(7)
    param = Tensor(w.astype(np.float32))
    optimizer = LARS([param], 0.5, weight_decay=0.1, pre_wd=False, tcoef=0)
    for _ in range(10):
        g = random.standard_normal(7)
        param.grad = Tensor(g.astype(np.float32))
        optimizer.step()
        v = 0.9 * v + 0.5 * g
        w = w * (1 - 0.5 * 0.1) - v
    np.testing.assert_allclose(param.numpy(), w, rtol=1e-5, atol=1e-6)


def test_lars_without_shares_is_muon_for_square_matrices() -> None:
    random = np.random.default_rng(0)
    start = random.standard_normal((5, 5)).astype(np.float32)
    coefficients = (3.4445, -4.775, 2.0315)
    one, two = Tensor(start.copy()), Tensor(start.copy())
    muon = Muon([one], 0.1, ns_coefficients=coefficients)
    lars = LARS(
        [two], 0.1, 0.95, 0.1, 5, coefficients, nesterov=True, classic=False, pre_wd=False, tcoef=0
    )
    for _ in range(4):
        one.grad = Tensor(random.standard_normal((5, 5)).astype(np.float32))
        two.grad = one.grad
        muon.step()
        lars.step()
    np.testing.assert_allclose(one.numpy(), two.numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(GradientError, match="ns_coefficients updates matrices"):
        LARS([Tensor([1.0])], ns_steps=2, ns_coefficients=coefficients)
