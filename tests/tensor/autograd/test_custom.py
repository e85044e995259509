"""Custom gradient rules, and recomputation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.references.finite_differences import check

from glassgrad import Tensor, custom_gradient, recompute
from glassgrad.base.errors import GradientError, ShapeError
from glassgrad.devices.registry import Device
from glassgrad.engine.cache.graph_keys import signature
from glassgrad.engine.pipeline import plan_graph
from glassgrad.ir.uop import UOp

ON_BOTH_BACKENDS = True
RNG = np.random.default_rng(3)
X, Y = RNG.normal(size=(3, 4)), RNG.normal(size=(3, 4))


@custom_gradient(lambda g, y, x: g * 100)
def steep(x: Tensor) -> Tensor:
    return x * 2


@custom_gradient(lambda g, out, x, y: (g * y, g * x))
def product(x: Tensor, y: Tensor) -> Tensor:
    return x * y


@custom_gradient(lambda g, out, x, n: (g * n * x ** (n - 1), None))
def power(x: Tensor, n: int) -> Tensor:
    return x**n


def test_the_rule_decides_the_gradient_and_the_function_the_value() -> None:
    x = Tensor([1.0, 2.0])
    assert steep(x).tolist() == [2, 4]
    assert steep(x).sum().gradient(x)[0].tolist() == [100, 100]


def test_backward_uses_the_rule() -> None:
    x = Tensor([1.0, 2.0])
    steep(steep(x)).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [10000, 10000]


def test_correct_rules_match_finite_differences_to_second_order() -> None:
    check(lambda x, y: product(x * x, y * y), X, Y, second=True)
    check(lambda x: power(x, 3), X, second=True)
    check(lambda x: product(x.sin(), x), X, second=True)


def test_an_argument_may_be_given_twice() -> None:
    x = Tensor([3.0])
    assert product(x, x).gradient(x, gradient=Tensor([1.0]))[0].tolist() == [6]


def test_gradients_do_not_pass_by_the_rule() -> None:
    weight = Tensor([5.0])

    @custom_gradient(lambda g, y, x: g)
    def scaled(x: Tensor) -> Tensor:
        return x * weight

    x = Tensor([2.0])
    with pytest.raises(GradientError, match="no part of this value"):
        scaled(x).sum().gradient(weight)


def test_values_with_rules_are_planned_once() -> None:
    keys = [signature([steep(Tensor(X)).uop]).key for _ in range(2)]
    assert keys[0] == keys[1] == signature([(Tensor(X) * 2).uop]).key


def test_wrong_rules_are_refused() -> None:
    @custom_gradient(lambda g, y, x, z: g)
    def both(x: Tensor, z: Tensor) -> Tensor:
        return x + z

    @custom_gradient(lambda g, y, x: g.sum())
    def lost(x: Tensor) -> Tensor:
        return x + 1

    @custom_gradient(lambda g, y, x: g)
    def pair(x: Tensor) -> Any:
        return x, x

    x = Tensor([1.0, 2.0])
    with pytest.raises(GradientError, match="gave 1 gradients for 2 arguments"):
        both(x, x).sum().gradient(x)
    with pytest.raises(ShapeError, match=r"gave shape \(\) for an argument of shape \(2,\)"):
        lost(x).sum().gradient(x)
    with pytest.raises(GradientError, match="pair gave a tuple"):
        pair(x)


# ---------------------------------------------------------------------- computing anew


def test_recomputed_gradients_match_finite_differences_to_second_order() -> None:
    block = recompute(lambda x, y: (x * y).sin() * (x + 1))
    check(block, X, Y, second=True)
    check(lambda x: block(block(x, x), x.cos()), X, second=True)
    check(recompute(lambda x: recompute(lambda z: z.sin() * z)(x * 2).exp()), X, second=True)


def test_weights_inside_of_a_recomputed_function_get_gradients() -> None:
    w = Tensor(Y)
    made = (w * 2).is_param_()  # a parameter that is itself computed, and one that it is made of

    def block(x: Tensor) -> Tensor:
        return (x * made).sin() * w

    for function in (block, recompute(block)):
        x = Tensor(X)
        found = function(x).sum().gradient(x, w, made)
        want_made = np.cos(X * 2 * Y) * X * Y
        np.testing.assert_allclose(found[0].numpy(), np.cos(X * 2 * Y) * 2 * Y * Y)
        np.testing.assert_allclose(found[2].numpy(), want_made)
        np.testing.assert_allclose(found[1].numpy(), np.sin(X * 2 * Y) + want_made * 2)


def layers(x: Tensor, weights: list[Tensor]) -> Tensor:
    for weight in weights:
        x = x.matmul(weight).tanh()
    return x


def arena_bytes(values: list[UOp]) -> int:
    return plan_graph(values, signature(values).leaves, Device["CPU"]).arena_bytes


def test_recomputing_needs_less_memory() -> None:
    weights = [Tensor(RNG.normal(size=(8, 8)).astype(np.float32)) for _ in range(9)]
    x = Tensor(RNG.normal(size=(512, 8)).astype(np.float32))
    sizes, results = [], []
    for block in (layers, recompute(layers)):
        y = x
        for first in range(0, 9, 3):
            y = block(y, weights[first : first + 3])
        found = y.sum().gradient(*weights)
        sizes.append(arena_bytes([g.uop for g in found]))
        results.append([g.numpy() for g in found])
    assert sizes[1] * 3 < sizes[0] * 2, sizes
    for plain, anew in zip(*results, strict=True):
        np.testing.assert_allclose(anew, plain, rtol=1e-4, atol=1e-4)
