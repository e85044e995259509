"""backward(): which tensors get gradients, and that gradients accumulate."""

from __future__ import annotations

import pytest

from glassgrad import Tensor
from glassgrad.base.errors import GradientError
from glassgrad.ir.ops import Ops
from glassgrad.tensor.lazy.collect import collect_values, graph_to_compute

ON_BOTH_BACKENDS = True


def test_parameters_get_gradients() -> None:
    x, w = Tensor([[1.0, 2.0]]), Tensor([[3.0], [4.0]])
    (x @ w).sum().backward()
    assert x.grad is not None
    assert w.grad is not None
    assert (x.grad.tolist(), w.grad.tolist()) == ([[3, 4]], [[1], [2]])


def test_gradients_add_up_until_they_are_taken_away() -> None:
    x = Tensor([1.0, 2.0])
    for _ in range(2):
        (x * x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [4, 8]
    x.grad = None
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_tensors_that_are_no_parameters_get_none() -> None:
    x = Tensor([1.0, 2.0], requires_grad=False)
    y = Tensor([1.0, 2.0])
    middle = x * y
    middle.sum().backward()
    assert x.grad is None
    assert middle.grad is None
    assert y.grad is not None


def test_results_can_be_made_parameters() -> None:
    x = Tensor([1.0, 2.0])
    middle = (x * 2).is_param_()
    (middle * middle).sum().backward()
    assert middle.grad is not None
    assert middle.grad.tolist() == [4, 8]


def test_constants_and_ranges_are_parameters_too() -> None:
    x = Tensor.eye(3)
    y = Tensor([[2.0, 0, -2.0]])
    y.matmul(x).sum().backward()
    assert x.grad is not None
    assert y.grad is not None
    assert x.grad.tolist() == [[2, 2, 2], [0, 0, 0], [-2, -2, -2]]
    assert y.grad.tolist() == [[1, 1, 1]]


def test_ints_and_what_is_detached_take_no_part() -> None:
    index = Tensor([1, 0])
    x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    (x[index] * y.detach()).sum().backward()
    assert index.grad is None
    assert y.grad is None
    assert x.grad is not None
    assert x.grad.tolist() == [4, 3]


def test_a_gradient_can_be_passed_in() -> None:
    x = Tensor([1.0, 2.0])
    (x * x).backward(gradient=Tensor([1.0, 10.0]))
    assert x.grad is not None
    assert x.grad.tolist() == [2, 40]


def test_requires_grad_is_another_name_for_is_param() -> None:
    x = Tensor([1.0])
    assert x.requires_grad
    x.requires_grad = False
    assert not x.is_param
    assert x.requires_grad_().is_param


def test_gradients_see_the_values_before_an_update() -> None:
    w = Tensor([3.0]).realize()
    loss = (w * w).sum()
    loss.backward()
    assert w.grad is not None
    w.assign(w - w.grad * 0.5)
    assert w.tolist() == [0]
    assert (w.grad.tolist(), loss.item()) == ([6], 9)


def test_parameters_keep_their_gradient_over_an_assign() -> None:
    w = Tensor([3.0])
    w.sum().backward()
    w.assign([4.0])
    assert w.grad is not None


def test_looking_at_a_value_does_not_cut_its_gradient() -> None:
    x = Tensor([1.0, 2.0])
    middle = x * x
    assert middle.tolist() == [1, 4]
    assert middle.sum().item() == 5
    (middle * 3).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [6, 12]


def test_realized_values_are_not_recomputed() -> None:
    x = Tensor([1.0, 2.0])
    middle = x.exp()
    middle.tolist()
    values = graph_to_compute(collect_values([(middle * 3).uop])[0])
    assert Ops.EXP2 not in {node.op for value in values for node in value.toposort()}


def test_realize_ends_gradients() -> None:
    x = Tensor([1.0, 2.0])
    y = (x * x).realize().is_param_()
    y.sum().backward()
    assert x.grad is None
    assert y.grad is not None


def test_gradients_of_values_that_were_overwritten_are_refused() -> None:
    w, v = Tensor([3.0]).realize(), Tensor([2.0])
    loss = (w * v).sum()
    assert loss.item() == 6
    w.assign([5.0]).realize()
    with pytest.raises(GradientError, match="overwritten since"):
        loss.gradient(v)
    with pytest.raises(GradientError, match="overwritten since"):
        loss.backward()
    assert v.grad is None


def test_requires_grad_excludes_other_tensors() -> None:
    x, w = Tensor([1.0, 2.0]), Tensor([3.0, 4.0], requires_grad=True)
    made = Tensor.ones(2, requires_grad=True)
    (x * w * made).sum().backward()
    assert x.grad is None
    assert w.grad is not None and w.grad.tolist() == [1, 2]
    assert made.grad is not None and made.grad.tolist() == [3, 8]
    x.is_param_()
    (x * w).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [3, 4]
