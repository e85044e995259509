"""PyTorch's method names do what they do there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.oracle import oracle

from glassgrad import Tensor
from glassgrad.base.errors import ShapeError

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 11.5
SQUARE = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0], [0.0, 8.0, 9.0]], np.float32)

CASES: list[tuple[str, Callable[[Any], Any], Any]] = [
    ("mm", lambda t: t(SQUARE).mm(t(SQUARE)), SQUARE @ SQUARE),
    ("bmm", lambda t: t(X).bmm(t(X.transpose(0, 2, 1).copy())), X @ X.transpose(0, 2, 1)),
    ("mv", lambda t: t(SQUARE).mv(t(SQUARE[0])), SQUARE @ SQUARE[0]),
    ("outer", lambda t: t(SQUARE[0]).outer(t(SQUARE[1])), np.outer(SQUARE[0], SQUARE[1])),
    (
        "addmm",
        lambda t: t(SQUARE[0]).addmm(t(SQUARE), t(SQUARE), beta=2, alpha=-1),
        2 * SQUARE[0] - SQUARE @ SQUARE,
    ),
    ("lt", lambda t: t(X).lt(0.5), X < 0.5),
    ("le", lambda t: t(X).le(0.5), X <= 0.5),
    ("gt", lambda t: t(X).gt(0.5), X > 0.5),
    ("ge", lambda t: t(X).ge(0.5), X >= 0.5),
    ("remainder", lambda t: t(X).remainder(4.0), np.mod(X, 4)),
    ("floor_divide", lambda t: t(X).floor_divide(4.0), np.floor(X / 4)),
    ("amax", lambda t: t(X).amax(dim=(0, 2)), X.max((0, 2))),
    ("amax of all", lambda t: t(X).amax(), X.max()),
    ("amin", lambda t: t(X).amin(1, keepdim=True), X.min(1, keepdims=True)),
    ("norm", lambda t: t(X).norm(), np.sqrt((X**2).sum())),
    ("norm 1", lambda t: t(X).norm(1, dim=-1), np.abs(X).sum(-1)),
    ("norm 0", lambda t: t(SQUARE).norm(0), np.float32(8)),
    ("norm 3", lambda t: t(X).norm(3, dim=0), (np.abs(X) ** 3).sum(0) ** (1 / 3)),
    ("norm inf", lambda t: t(X).norm(float("inf"), dim=1), np.abs(X).max(1)),
    ("norm -inf", lambda t: t(X).norm(-float("inf")), np.abs(X).min()),
    ("norm fro", lambda t: t(SQUARE).norm("fro", dim=(0, 1)), np.sqrt((SQUARE**2).sum())),
    ("t", lambda t: t(SQUARE).t(), SQUARE.T),
    ("t of a vector", lambda t: t(SQUARE[0]).t(), SQUARE[0]),
    ("mT", lambda t: t(X).mT, X.transpose(0, 2, 1)),
    ("swapaxes", lambda t: t(X).swapaxes(0, -1), X.swapaxes(0, -1)),
    ("movedim", lambda t: t(X).movedim(0, 2), np.moveaxis(X, 0, 2)),
    ("movedim of two", lambda t: t(X).movedim((0, 1), (-1, 0)), np.moveaxis(X, (0, 1), (-1, 0))),
    ("moveaxis", lambda t: t(X).moveaxis(-1, 0), np.moveaxis(X, -1, 0)),
    ("ravel", lambda t: t(X).ravel(), X.ravel()),
    ("tile", lambda t: t(X).tile(2), np.tile(X, 2)),
    ("tile of more", lambda t: t(SQUARE).tile((2, 1, 2)), np.tile(SQUARE, (2, 1, 2))),
    ("narrow", lambda t: t(X).narrow(2, 1, 2), X[:, :, 1:3]),
    ("narrow from the end", lambda t: t(X).narrow(-1, -2, 2), X[:, :, 2:]),
    ("select", lambda t: t(X).select(1, -1), X[:, -1]),
    ("unbind", lambda t: t(X).unbind(1)[2], X[:, 2]),
    ("expand_as", lambda t: t(X[:1]).expand_as(t(X)), np.broadcast_to(X[:1], X.shape)),
    ("view_as", lambda t: t(X).view_as(t(X.reshape(6, 4))), X.reshape(6, 4)),
    ("add_", lambda t: t(X.copy()).add_(t(X), alpha=2), X * 3),
    ("sub_", lambda t: t(X.copy()).sub_(1), X - 1),
    ("mul_", lambda t: t(X.copy()).mul_(2), X * 2),
    ("div_", lambda t: t(X.copy()).div_(2), X / 2),
    ("clamp_", lambda t: t(X.copy()).clamp_(-1, 2), X.clip(-1, 2)),
    ("copy_", lambda t: t(X.copy()).copy_(t(X[0])), np.broadcast_to(X[0], X.shape)),
    ("fill_", lambda t: t(X.copy()).fill_(3), np.full_like(X, 3)),
    ("zero_", lambda t: t(X.copy()).zero_(), np.zeros_like(X)),
]


@pytest.mark.parametrize(("name", "call", "wanted"), CASES, ids=[name for name, *_ in CASES])
def test_methods_equal_numpy(name: str, call: Callable[[Any], Any], wanted: Any) -> None:
    found = call(Tensor).numpy()
    assert found.shape == np.shape(wanted)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("name", "call", "wanted"), CASES, ids=[name for name, *_ in CASES])
def test_methods_equal_pytorch(name: str, call: Callable[[Any], Any], wanted: Any) -> None:
    torch = oracle("torch")
    other = call(torch.tensor).numpy()
    assert other.shape == np.shape(wanted)
    np.testing.assert_allclose(call(Tensor).numpy(), other, rtol=1e-5, atol=1e-5)


def test_index_select_and_scatter_add() -> None:
    x, at = Tensor(X), Tensor([2, 0])
    np.testing.assert_array_equal(x.index_select(1, at).numpy(), X[:, [2, 0]])
    np.testing.assert_array_equal(x.index_select(-1, Tensor(3)).numpy(), X[:, :, [3]])
    sums = Tensor.zeros(3).scatter_add(0, Tensor([0, 2, 0]), Tensor([1.0, 2.0, 3.0]))
    assert sums.tolist() == [4.0, 0.0, 2.0]


def test_small_words() -> None:
    x = Tensor([[1, 2]])
    assert x.cpu().device == "CPU"
    assert x.nelement() == 2
    assert x.type_as(Tensor([1.0])).dtype == Tensor([1.0]).dtype
    assert x.reshape_as(Tensor([[1], [2]])).shape == (2, 1)


def test_in_place_writes_reach_tensors_that_share_memory() -> None:
    array = np.ones(3, np.float32)
    x = Tensor(array)
    x.add_(1).mul_(3)
    x.realize()
    assert x.tolist() == [6.0, 6.0, 6.0]
    weights = Tensor.ones(2, 2).realize()
    weights[0].zero_()
    assert weights.tolist() == [[0.0, 0.0], [1.0, 1.0]]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Tensor.ones(2, 3, 4).mm(Tensor.ones(4, 5)), r"mm of shapes \(2, 3, 4\)"),
        (lambda: Tensor.ones(2, 3, 4).bmm(Tensor.ones(1, 4, 5)), "bmm of shapes"),
        (lambda: Tensor.ones(2, 3).mv(Tensor.ones(3, 1)), "x @ y takes others"),
        (lambda: Tensor.ones(2, 3).outer(Tensor.ones(3)), "two vectors"),
        (lambda: Tensor.ones(2, 3, 4).t(), r"transpose\(a, b\)"),
        (lambda: Tensor.ones(2, 3).movedim((0, 1), (1, 1)), "each axis goes to one place"),
        (lambda: Tensor.ones(2, 3).movedim(0, (0, 1)), "each axis goes to one place"),
        (lambda: Tensor.ones(4).narrow(0, 3, 2), "the axis has 4 elements"),
        (lambda: Tensor.ones(4).narrow(0, 0, -1), "the axis has 4 elements"),
        (lambda: Tensor.ones(4).index_select(0, Tensor([[1]])), "it takes a vector"),
        (lambda: Tensor.ones(5).addmm(Tensor.ones(2, 3), Tensor.ones(3, 1)), "expand"),
        (lambda: Tensor.ones(2).tile(2.5), "number of repeats"),
    ],
)
def test_values_that_do_not_fit_are_refused(call: Callable[[], Tensor], words: str) -> None:
    with pytest.raises(ShapeError, match=words):
        call()


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: Tensor(1.0).narrow(0, 0, 1), IndexError, "no axis to cut"),
        (lambda: Tensor(1.0).unbind(), IndexError, "no axis to cut"),
        (lambda: Tensor.ones(3).norm("nuc"), TypeError, "a number or"),
        (lambda: Tensor.ones(3).norm(None), TypeError, "a number or"),
        (lambda: Tensor.ones(3).select(0, [0, 1]), TypeError, "a whole number"),
        (lambda: Tensor.ones(3).index_select(0, Tensor([True, False, True])), TypeError, "by ints"),
        (lambda: Tensor.ones(3).index_select(0, Tensor([-1])), IndexError, "-1"),
        (lambda: Tensor.ones(3).addmm("a", Tensor.ones(3, 3)), TypeError, "must be a tensor"),
    ],
)
def test_invalid_arguments_are_refused(
    call: Callable[[], Tensor], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        call()


def test_lengths_of_narrow_and_whole_numbers_are_not_cut_off() -> None:
    assert Tensor([300.0], dtype="float16").norm().item() == 300.0
    assert Tensor([20], dtype="uint8").norm().item() == 20.0
    assert Tensor([100_000]).norm().item() == 100_000.0


@pytest.mark.parametrize("p", [2, 3, 0.5, 1.5])
def test_a_norm_of_zero_has_gradient_zero(p: float) -> None:
    x = Tensor([[0.0, 0.0], [3.0, 0.0]])
    slope = x.norm(p, dim=1).sum().gradient(x)[0]
    np.testing.assert_allclose(slope.numpy(), [[0.0, 0.0], [1.0, 0.0]], rtol=1e-6)


def test_gradients_go_through() -> None:
    x = Tensor(SQUARE).requires_grad_(True)
    (slope,) = x.norm().gradient(x)
    np.testing.assert_allclose(slope.numpy(), SQUARE / np.sqrt((SQUARE**2).sum()), rtol=1e-5)
    (slope,) = x.index_select(0, Tensor([1, 1])).sum().gradient(x)
    assert slope.tolist() == [[0.0] * 3, [2.0] * 3, [0.0] * 3]
