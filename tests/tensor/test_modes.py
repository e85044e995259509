"""What scripts read and set on the class."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from glassgrad import Context, Tensor
from glassgrad.base.config import TRAINING


@pytest.fixture(autouse=True)
def unchanged() -> Iterator[None]:
    before = TRAINING.value
    yield
    TRAINING.value = before


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


def test_no_grad_is_a_block_and_is_off() -> None:
    assert not Tensor.no_grad
    with Tensor.no_grad():
        x = Tensor([1.0]) * 2
    assert x.tolist() == [2]
