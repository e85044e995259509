"""Gradients of scans against finite differences, zeros included."""

from __future__ import annotations

import numpy as np
import pytest
from support.references.finite_differences import check

from glassgrad import Tensor
from glassgrad.ir.ops import Ops

X = np.array([[1.5, -2.0, 0.5, 3.0, -1.0], [2.0, 0.25, -1.5, 1.0, 4.0]])


@pytest.mark.parametrize("op", [Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN])
@pytest.mark.parametrize("axis", [0, 1])
def test_scan_gradients_match_finite_differences(op: Ops, axis: int) -> None:
    check(lambda x: x._scan(op, axis).square().sum(), X)


def test_a_recurrence_has_gradients_for_both_sources() -> None:
    check(lambda x, b: x._scan(Ops.MULACC, 1, b).square().sum(), X, X[::-1].copy() / 2)


@pytest.mark.parametrize("zeros", [(2,), (0,), (1, 3), (4,)])
def test_a_running_product_with_zeros_has_gradients_without_division(
    zeros: tuple[int, ...],
) -> None:
    x = X[0].copy()
    x[list(zeros)] = 0
    tensor = Tensor(x, requires_grad=True)
    (tensor.cumprod(0) * Tensor(np.arange(1.0, 6.0))).sum().backward()
    want = np.zeros(5)
    for k in range(5):
        for i in range(k, 5):
            want[k] += (i + 1) * np.prod(np.delete(x[: i + 1], k))
    assert tensor.grad is not None
    np.testing.assert_allclose(tensor.grad.numpy(), want, rtol=1e-12)


def test_equal_extremes_share_the_gradient_of_a_maximum() -> None:
    tensor = Tensor(np.array([1.0, 1.0]), requires_grad=True)
    tensor._scan(Ops.MAX, 0).sum().backward()
    assert tensor.grad is not None
    assert tensor.grad.tolist() == [1.5, 0.5]
