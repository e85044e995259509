"""Tensor.training and Tensor.no_grad."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from glassgrad import Context, Tensor
from glassgrad.base.config import NO_GRAD, TRAINING


@pytest.fixture(autouse=True)
def unchanged() -> Iterator[None]:
    before = TRAINING.value, NO_GRAD.value
    yield
    TRAINING.value, NO_GRAD.value = before


def test_training_is_the_setting() -> None:
    assert Tensor.training is False
    with Tensor.train():
        assert Tensor.training is True
        with Tensor.test():
            assert Tensor.training is False
        assert Tensor.training is True
    with Context(TRAINING=1):
        assert Tensor.training is True
    assert Tensor.training is False


def test_training_can_be_set() -> None:
    Tensor.training = True
    assert 0 in Tensor.ones(100).dropout().tolist()
    Tensor.training = False
    assert 0 not in Tensor.ones(100).dropout().tolist()


def test_train_decorates_functions() -> None:
    @Tensor.train()
    def step() -> bool:
        return Tensor.training

    assert step() is True
    assert Tensor.training is False


def slope_through(made: Callable[[Tensor], Tensor]) -> list[float]:
    """The gradient of x * made(x): made(x) alone where nothing flows through it."""
    x = Tensor([3.0])
    return (x * made(x)).sum().gradient(x)[0].tolist()


def doubled(x: Tensor) -> Tensor:
    return x * 2


def test_no_gradient_flows_through_what_is_made_in_a_no_grad_block() -> None:
    def made(x: Tensor) -> Tensor:
        with Tensor.no_grad():
            assert Tensor.no_grad
            return x * 2

    assert not Tensor.no_grad
    assert slope_through(doubled) == [12.0]
    assert slope_through(made) == [6.0]
    assert slope_through(Tensor.no_grad()(doubled)) == [6.0]


def test_no_grad_can_be_set() -> None:
    x = Tensor([3.0])
    Tensor.no_grad = True
    quiet = x * 2
    Tensor.no_grad = False
    assert not Tensor.no_grad
    assert (x * quiet).sum().gradient(x)[0].tolist() == [6.0]
    assert slope_through(doubled) == [12.0]


@pytest.mark.parametrize("name", ["cat", "stack", "matmul", "maximum", "exp", "reshape", "sum"])
def test_no_grad_holds_for_every_family(name: str) -> None:
    arguments = {"reshape": ((2, 1),), "exp": (), "sum": ()}
    x = Tensor([3.0, 4.0])
    with Tensor.no_grad():
        made = getattr(x, name)(*arguments.get(name, (x,)))
        copy = x + 0.0
    assert (made.sum() + (x * 0).sum()).gradient(x)[0].tolist() == [0.0, 0.0]
    assert copy.tolist() == [3.0, 4.0]


def test_parameters_can_be_updated_without_gradients() -> None:
    weight = Tensor([3.0])
    (weight * weight).sum().backward()
    with Tensor.no_grad():
        weight.assign(weight - weight.grad * 0.5)
    assert weight.tolist() == [0.0]
    assert (weight * 5).sum().gradient(weight)[0].tolist() == [5.0]
