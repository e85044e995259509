"""Losses against their formulas in NumPy, and against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.oracle import oracle
from support.values.arrays import distinct, same

from glassgrad import Tensor
from glassgrad.base.errors import ShapeError

ON_BOTH_BACKENDS = True

X = distinct((4, 3)) * 3
CLASSES = np.array([2, 0, 1, 1])


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy_picks_the_log_probability(reduction: str) -> None:
    each = -np.log(softmax(X))[np.arange(4), CLASSES]
    wanted = {"mean": each.mean(), "sum": each.sum(), "none": each}[reduction]
    y = Tensor(CLASSES)
    same(Tensor(X).cross_entropy(y, reduction), wanted, rtol=1e-12)
    same(Tensor(X).sparse_categorical_crossentropy(y, reduction=reduction), wanted, rtol=1e-12)
    same(Tensor(X).log_softmax().nll_loss(y, reduction=reduction), wanted, rtol=1e-12)


def test_label_smoothing_mixes_in_all_classes() -> None:
    logs = np.log(softmax(X))
    each = -(0.9 * logs[np.arange(4), CLASSES] + 0.1 * logs.mean(1))
    y = Tensor(CLASSES)
    same(Tensor(X).cross_entropy(y, label_smoothing=0.1), each.mean(), rtol=1e-12)
    got = Tensor(X).sparse_categorical_crossentropy(y, label_smoothing=0.1)
    same(got, each.mean(), rtol=1e-12)
    soft = np.eye(3)[CLASSES]
    same(Tensor(X).cross_entropy(Tensor(soft), label_smoothing=0.1), each.mean(), rtol=1e-12)


def test_cross_entropy_takes_probabilities() -> None:
    y = softmax(distinct((4, 3), seed=4))
    same(Tensor(X).cross_entropy(Tensor(y)), -(y * np.log(softmax(X))).sum(1).mean(), rtol=1e-12)


def test_ignored_classes_do_not_count() -> None:
    y = np.array([2, -1, 1, -1])
    logs = np.log(softmax(X))
    wanted = -(logs[0, 2] + logs[2, 1]) / 2
    same(Tensor(X).sparse_categorical_crossentropy(Tensor(y)), wanted, rtol=1e-12)
    same(Tensor(X).log_softmax().nll_loss(Tensor(y), ignore_index=-1), wanted, rtol=1e-12)


def test_nll_loss_weighs_classes() -> None:
    weight = np.array([1.0, 2.0, 3.0])
    logs, scale = np.log(softmax(X)), weight[CLASSES]
    wanted = -(logs[np.arange(4), CLASSES] * scale).sum() / scale.sum()
    got = Tensor(X).log_softmax().nll_loss(Tensor(CLASSES), Tensor(weight))
    same(got, wanted, rtol=1e-12)


def test_cross_entropy_works_with_more_axes() -> None:
    x, y = distinct((2, 3, 4)), np.array([[0, 1, 2, 0], [2, 2, 1, 0]])
    logs = np.log(softmax(x, 1))
    wanted = -np.take_along_axis(logs, y[:, None], 1).mean()
    same(Tensor(x).cross_entropy(Tensor(y)), wanted, rtol=1e-12)
    last = Tensor(x).permute(0, 2, 1).sparse_categorical_crossentropy(Tensor(y))
    same(last, wanted, rtol=1e-12)


def test_binary_cross_entropy_of_probabilities_and_logits() -> None:
    x, y = X[:, 0], np.array([0.0, 1.0, 1.0, 0.0])
    p = 1 / (1 + np.exp(-x))
    wanted = -(y * np.log(p) + (1 - y) * np.log(1 - p)).mean()
    same(Tensor(x).binary_crossentropy_logits(Tensor(y)), wanted, rtol=1e-9)
    same(Tensor(p).binary_crossentropy(Tensor(y)), wanted, rtol=1e-9)
    far = Tensor([-1e4, 1e4]).binary_crossentropy_logits(Tensor([0.0, 1.0]))
    assert far.item() == 0
    weighted = -(3 * y * np.log(p) + (1 - y) * np.log(1 - p)).mean()
    got = Tensor(x).binary_crossentropy_logits(Tensor(y), pos_weight=Tensor(np.array(3.0)))
    same(got, weighted, rtol=1e-9)


LOGITS = (distinct((6, 5)) * 4).astype(np.float32)
TARGETS = np.array([4, 0, 2, 2, 1, 3])
SHARES = softmax(LOGITS[::-1] / 3).astype(np.float32)
LOSSES: dict[str, tuple[Any, Any]] = {
    "cross-entropy": (
        lambda x: x.cross_entropy(Tensor(TARGETS)),
        lambda f, x, t: f.cross_entropy(x, t(TARGETS)),
    ),
    "with smoothing": (
        lambda x: x.cross_entropy(Tensor(TARGETS), label_smoothing=0.1),
        lambda f, x, t: f.cross_entropy(x, t(TARGETS), label_smoothing=0.1),
    ),
    "of probabilities": (
        lambda x: x.cross_entropy(Tensor(SHARES), reduction="sum"),
        lambda f, x, t: f.cross_entropy(x, t(SHARES), reduction="sum"),
    ),
    "with ignored classes": (
        lambda x: x.sparse_categorical_crossentropy(Tensor(TARGETS), ignore_index=2),
        lambda f, x, t: f.cross_entropy(x, t(TARGETS), ignore_index=2),
    ),
    "weighted": (
        lambda x: x.log_softmax().nll_loss(Tensor(TARGETS), weight=Tensor(SHARES[0])),
        lambda f, x, t: f.nll_loss(x.log_softmax(-1), t(TARGETS), t(SHARES[0])),
    ),
    "binary": (
        lambda x: x.sigmoid().binary_crossentropy(Tensor(SHARES)),
        lambda f, x, t: f.binary_cross_entropy(x.sigmoid(), t(SHARES)),
    ),
    "binary of logits": (
        lambda x: x.binary_crossentropy_logits(Tensor(SHARES), pos_weight=Tensor(SHARES[0] + 1)),
        lambda f, x, t: f.binary_cross_entropy_with_logits(
            x, t(SHARES), pos_weight=t(SHARES[0] + 1)
        ),
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_and_their_gradients_are_pytorchs(name: str) -> None:
    torch = oracle("torch")
    ours, theirs = LOSSES[name]
    x = Tensor(LOGITS, requires_grad=True)
    loss = ours(x)
    loss.backward()
    given = torch.tensor(LOGITS, requires_grad=True)
    wanted = theirs(torch.nn.functional, given, torch.tensor)
    wanted.backward()
    np.testing.assert_allclose(loss.item(), wanted.item(), rtol=1e-5)
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), given.grad.numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("ignored", [None, 2])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_cross_entropy_weighs_and_ignores_classes_as_pytorch_does(
    smoothing: float, reduction: str, ignored: int | None, is_weighted: bool
) -> None:
    torch = oracle("torch")
    logits = LOGITS[:, :, None] * np.array([1.0, -0.5], np.float32)  # (6, 5, 2)
    targets = np.stack([TARGETS, TARGETS[::-1]], axis=1)
    weight = SHARES[0] if is_weighted else None
    x, given = Tensor(logits, requires_grad=True), torch.tensor(logits, requires_grad=True)
    found = x.cross_entropy(
        Tensor(targets), reduction, smoothing,
        None if weight is None else Tensor(weight), ignored,
    )  # fmt: skip
    wanted = torch.nn.functional.cross_entropy(
        given, torch.tensor(targets), None if weight is None else torch.tensor(weight),
        ignore_index=-100 if ignored is None else ignored,
        reduction=reduction, label_smoothing=smoothing,
    )  # fmt: skip
    found.square().sum().backward()
    wanted.square().sum().backward()
    np.testing.assert_allclose(found.numpy(), wanted.detach().numpy(), rtol=1e-5, atol=1e-6)
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), given.grad.numpy(), rtol=1e-4, atol=1e-5)


def test_weights_of_another_shape_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"a weight of shape \(4,\) does not fit logits"):
        Tensor(LOGITS).cross_entropy(Tensor(TARGETS), weight=Tensor.ones(4))


def test_probabilities_of_zero_and_one_have_gradients() -> None:
    x = Tensor([0.0, 1.0, 0.0, 1.0, 0.25], requires_grad=True)
    loss = x.binary_crossentropy(Tensor([0.0, 1.0, 1.0, 0.0, 1.0]), reduction="sum")
    loss.backward()
    assert loss.item() == pytest.approx(200 - np.log(0.25))
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), [1, -1, -1e12, 1e12, -4], rtol=1e-6)


def test_ignored_elements_may_have_invalid_classes() -> None:
    logits = Tensor([[-float("inf"), 0.0], [0.0, 0.0]])
    loss = logits.cross_entropy(Tensor([-100, 1]), ignore_index=-100)
    assert round(loss.item(), 5) == 0.69315


def test_arguments_of_losses_that_do_not_fit_are_refused() -> None:
    logs = Tensor.zeros(2, 3)
    with pytest.raises(ShapeError, match="a weight of shape"):
        logs.nll_loss(Tensor([0, 1]), weight=Tensor.ones(4))
    with pytest.raises(ValueError, match="class number"):
        logs.cross_entropy(Tensor.ones(2, 3), ignore_index=0)
    none = logs.cross_entropy(Tensor.ones(2, 3), ignore_index=-100)
    assert none.item() == logs.cross_entropy(Tensor.ones(2, 3)).item()
