"""Optimisers against the same steps written with NumPy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from support.compiler.interpreted import interpreted
from support.oracle import oracle

from glassgrad import Tensor
from glassgrad.base.errors import GradientError
from glassgrad.nn.optim import (
    LAMB,
    LARS,
    SGD,
    Adam,
    AdamW,
    Muon,
    Optimizer,
    OptimizerGroup,
    RMSprop,
)
from glassgrad.nn.optim.precision import MixedPrecision

START = np.array([1.0, -2.0, 3.0])


@pytest.fixture(autouse=True)
def on_the_reference() -> Iterator[None]:
    with interpreted():
        yield


def train(make: object, steps: int = 4) -> list[float]:
    """Minimise sum(w^4): the gradient is 4w³."""
    w = Tensor(START.copy())
    optimizer: Optimizer = make([w])  # type: ignore[operator]
    for _ in range(steps):
        optimizer.zero_grad()
        (w * w * w * w).sum().backward()
        optimizer.step()
    found: list[float] = w.tolist()
    return found


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize(("momentum", "decay"), [(0.0, 0.0), (0.9, 0.0), (0.9, 0.1)])
def test_sgd_moves_against_the_gradient(momentum: float, decay: float, nesterov: bool) -> None:
    w, v = START.copy(), np.zeros(3)
    for _ in range(4):
        g = 4 * w**3 + decay * w
        v = momentum * v + g
        w = w - 0.001 * (g + momentum * v if nesterov and momentum else v)
    got = train(lambda p: SGD(p, 0.001, momentum, decay, nesterov))
    np.testing.assert_allclose(got, w, rtol=1e-9)


@pytest.mark.parametrize("decay", [0.0, 0.02])
def test_adam_scales_steps_by_running_means(decay: float) -> None:
    w, m, v = START.copy(), np.zeros(3), np.zeros(3)
    for t in range(1, 5):
        g = 4 * w**3
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        step = (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8) + decay * w
        w = w - 0.1 * step
    kind = AdamW if decay else Adam
    got = train(lambda p: kind(p, 0.1, weight_decay=decay))
    np.testing.assert_allclose(got, w, rtol=1e-9)


def test_parameters_stay_in_their_memory() -> None:
    array = START.copy()
    w = Tensor.from_memory(array)
    optimizer = SGD([w], 0.1)
    w.sum().backward()
    optimizer.step()
    np.testing.assert_allclose(array, START - 0.1)


def test_a_step_without_gradients_says_so() -> None:
    w = Tensor(START)
    with pytest.raises(GradientError, match="parameter 0 of shape \\(3,\\) has no gradient"):
        SGD([w]).step()
    with pytest.raises(GradientError, match="needs parameters"):
        SGD([])


def test_several_small_batches_are_one_large_one() -> None:
    x = np.random.default_rng(0).standard_normal((8, 3))
    found = []
    for parts in (1, 4):
        w = Tensor(START.copy())
        optimizer = SGD([w], lr=0.1)
        for part in np.split(x, parts):
            ((Tensor(part) * w).sum(1).square().mean() / parts).backward()
            optimizer.accumulate()
        optimizer.step()
        found.append(w.tolist())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


def test_groups_have_options_of_their_own() -> None:
    a, b = Tensor([1.0]), Tensor([1.0])
    groups = [{"params": [a], "weight_decay": 0.5}, {"params": [b]}]
    both = OptimizerGroup.of(SGD, groups, lr=1.0)
    (a * 0 + b * 0).sum().backward()
    both.step()
    assert (a.item(), b.item()) == (0.5, 1.0)
    both.zero_grad()
    assert a.grad is None
    assert both.lr is both.optimizers[0].lr


def test_what_is_no_group_is_refused() -> None:
    w = Tensor([1.0])
    with pytest.raises(GradientError, match="belongs to two optimisers"):
        OptimizerGroup(SGD([w]), SGD([w]))
    with pytest.raises(GradientError, match="needs at least one"):
        OptimizerGroup()
    with pytest.raises(GradientError, match="parameter 0 is a dict"):
        SGD([{"params": [w]}])  # type: ignore[list-item]


def test_a_guard_that_is_false_keeps_everything() -> None:
    w = Tensor([1.0, 2.0])
    optimizer = SGD([w], lr=1.0, momentum=0.9)
    w.grad = Tensor([1.0, np.nan])
    optimizer.guard = Tensor(False)
    optimizer.step()
    assert w.tolist() == [1.0, 2.0]
    assert optimizer.velocity[0].tolist() == [0.0, 0.0]
    optimizer.guard = Tensor(True)
    w.grad = Tensor([1.0, 1.0])
    optimizer.step()
    assert w.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("make", [SGD, Adam, AdamW, LAMB, LARS, Muon, RMSprop])
def test_scripts_may_say_where_and_whether_fused(make) -> None:
    w = Tensor.ones(2, 2).realize()
    optimizer = make([w], lr=0.5, device="CPU", fused=True)
    w.square().sum().backward()
    optimizer.step()
    assert optimizer.device == "CPU"
    assert w.tolist() != [[1.0, 1.0], [1.0, 1.0]]


@pytest.mark.parametrize(
    "make",
    [
        lambda params: SGD(params, lr=0.1),
        lambda params: SGD(params, lr=0.1, momentum=0.9, nesterov=True),
        lambda params: AdamW(params, lr=0.1),
        lambda params: RMSprop(params, lr=0.1, momentum=0.9, centered=True),
        lambda params: LAMB(params, lr=0.1),
        lambda params: LARS(params, lr=0.1),
        lambda params: MixedPrecision(params, lambda masters: AdamW(masters, lr=0.1), "float16"),
    ],
    ids=["SGD", "momentum", "AdamW", "RMSprop", "LAMB", "LARS", "MixedPrecision"],
)
def test_a_single_number_is_moved_as_a_vector_of_one_is(make) -> None:
    found = []
    for shape in ((), (1,)):
        w = Tensor(np.full(shape, 3.0, np.float32))
        optimizer = make([w])
        for _ in range(5):
            optimizer.zero_grad()
            loss = (w * w).sum()
            (optimizer.scaled(loss) if hasattr(optimizer, "scaled") else loss).backward()
            optimizer.step()
        assert w.shape == shape
        found.append(w.numpy().reshape(-1).tolist())
    assert found[0] == found[1]
    assert found[0] != [3.0]


@pytest.mark.parametrize(
    "names",
    [("SGD", {"momentum": 0.9}), ("AdamW", {}), ("RMSprop", {"centered": True})],
    ids=lambda one: one[0],
)
def test_parameters_of_float64_are_moved_in_float64(names: tuple[str, dict[str, float]]) -> None:
    torch = oracle("torch")
    name, options = names
    first = np.linspace(-1, 1, 6)
    theirs = torch.nn.Parameter(torch.tensor(first))
    w = Tensor(first.copy())
    kinds = {"SGD": SGD, "AdamW": AdamW, "RMSprop": RMSprop}
    one = getattr(torch.optim, name)([theirs], lr=0.01, **options)
    other = kinds[name]([w], lr=0.01, **options)
    for step in range(20):
        slope = np.cos(first * step)
        theirs.grad, w.grad = torch.tensor(slope), Tensor(slope)
        one.step()
        other.step()
    np.testing.assert_allclose(w.numpy(), theirs.detach().numpy(), rtol=1e-13)


@pytest.mark.parametrize("kind", [SGD, Adam, AdamW, RMSprop, LAMB, LARS, Muon])
def test_arguments_that_are_not_known_are_refused(kind) -> None:
    with pytest.raises(TypeError, match=f"{kind.__name__}.* has no argument 'amsgrad'"):
        kind([Tensor.ones(2, 2)], lr=0.1, amsgrad=True)


def test_arguments_of_pytorchs_are_explained() -> None:
    with pytest.raises(TypeError, match="no argument 'betas'; pass b1 and b2"):
        AdamW([Tensor.ones(2)], betas=(0.9, 0.99))
    with pytest.raises(TypeError, match=r"SGD.* has no argument 'wd'"):
        OptimizerGroup.of(SGD, [{"params": [Tensor.ones(2)], "wd": 0.1}])
