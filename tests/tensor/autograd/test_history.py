"""Realizing a value never cuts the gradients that flow through it."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from typing import Any
from weakref import ref

import numpy as np
import pytest

from glassgrad import Tensor, TinyJit, nn
from glassgrad.base.errors import GradientError, GraphWarning
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import toposort
from glassgrad.tensor.autograd.custom import custom_gradient
from glassgrad.tensor.autograd.history import MAX_DEPTH
from glassgrad.tensor.autograd.saved_contents import SAVED_HOLDERS

ON_BOTH_BACKENDS = True


def parameter() -> Tensor:
    return Tensor([1.0, 2.0, 3.0], requires_grad=True).realize()


def gradient_of(w: Tensor, loss: Tensor) -> list[float]:
    loss.backward()
    assert w.grad is not None
    found: list[float] = w.grad.tolist()
    return found


@pytest.mark.parametrize("asked", [None, True])
def test_a_computed_value_passes_its_gradient_on(asked: bool | None) -> None:
    w = Tensor([1.0, 2.0, 3.0], requires_grad=asked)
    h = (w * w).realize()
    assert gradient_of(w, (h * 3).sum() + w.sum()) == [7, 13, 19]


COMPUTED: list[Callable[[Tensor], object]] = [
    lambda h: h.realize(),
    lambda h: h.numpy(),
    lambda h: h.tolist(),
    lambda h: h.sum().item(),
    lambda h: (h * 2).realize(),
    lambda h: h.contiguous().realize(),
    lambda h: np.asarray(h),
    lambda h: h[0:2].realize(),
]


@pytest.mark.parametrize("compute", COMPUTED)
def test_every_way_to_compute_keeps_the_gradient(compute: Callable[[Tensor], object]) -> None:
    w = parameter()
    h = (w * 2).exp()
    compute(h)
    expected = 2 * np.exp(2 * np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(gradient_of(w, h.sum()), expected, rtol=1e-5)


def test_gradients_flow_through_many_computed_values() -> None:
    w = parameter()
    h = w
    for _ in range(5):
        h = (h * w).realize()
    np.testing.assert_allclose(gradient_of(w, h.sum()), [6, 6 * 32, 6 * 243], rtol=1e-6)


def test_a_parameter_that_is_computed_after_its_use_gets_its_gradient() -> None:
    w = Tensor.full((3,), 2.0) * Tensor([1.0, 2.0, 3.0])
    w.is_param_()
    before = w * 3
    w.realize()
    assert gradient_of(w, (before + w * w).sum()) == [7, 11, 15]


def test_a_parameter_that_is_computed_with_a_value_gets_its_gradient() -> None:
    layer = nn.Embedding(5, 2)
    rows = layer(Tensor([4, 0, 4]))
    rows.numpy()
    rows.sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.tolist() == [[1, 1], [0, 0], [0, 0], [0, 0], [2, 2]]


def test_gradient_finds_targets_that_were_computed_after_their_use() -> None:
    w = Tensor([1.0, 2.0]) * 2
    y = (w * w).sum()
    w.realize()
    assert y.gradient(w)[0].tolist() == [4, 8]


def test_a_realized_target_is_found_in_values_made_of_it() -> None:
    x = Tensor([1.0, 2.0])
    y = (x * x).realize()
    z = (y * y).sum().realize()
    assert z.gradient(y)[0].tolist() == [2, 8]
    assert z.gradient(x)[0].tolist() == [4, 32]


def test_gradients_of_gradients_flow_through_computed_gradients() -> None:
    x = Tensor([1.0, 2.0])
    (first,) = (x * x * x).sum().gradient(x)
    first.realize()
    assert first.sum().gradient(x)[0].tolist() == [6, 12]


def test_a_value_that_was_written_in_place_keeps_its_gradient() -> None:
    w = parameter()
    y = Tensor.zeros(3).contiguous()
    y[0] = w[0] * 3
    y.realize()
    y[2] = w[1] * w[2]
    y.realize()
    assert gradient_of(w, (y * y).sum()) == [18, 36, 24]


def test_gradients_flow_through_versions_that_were_overwritten_if_they_need_no_value() -> None:
    w = parameter()
    y = (w * 2).realize()
    y += w
    y.realize()
    y += w * w
    y.realize()
    assert gradient_of(w, y.sum()) == [5, 7, 9]


def test_a_value_that_was_overwritten_is_computed_again_where_a_gradient_needs_it() -> None:
    w = parameter()
    h = (w * w).realize()
    y = (h * h).realize()
    h += 1
    h.realize()
    assert gradient_of(w, y.sum()) == [4, 32, 108]


def test_detached_values_pass_no_gradient() -> None:
    w = parameter()
    h = (w * w).detach().realize()
    with Tensor.no_grad():
        k = (w * w).realize()
    assert gradient_of(w, (h + k + w).sum()) == [1, 1, 1]
    assert h.uop.history is None
    assert k.uop.history is None


def test_gradients_that_backward_leaves_are_constants() -> None:
    w = parameter()
    (w * w).sum().backward()
    assert w.grad is not None
    step = w.grad * w
    w.grad = None
    assert gradient_of(w, step.sum()) == [2, 4, 6]


def test_without_a_live_parameter_no_history_is_kept() -> None:
    h = (Tensor([1.0, 2.0]) * 2).realize()
    assert h.uop.history is None


def test_a_loop_that_replaces_its_value_keeps_one_buffer() -> None:
    x = Tensor([1.0, 2.0]).realize()
    seen = []
    for _ in range(4):
        x = (x * 2).realize()
        seen.append(ref(x.uop.arg.storage))
    del x
    gc.collect()
    assert all(one() is None for one in seen)


def test_optimisers_keep_no_history() -> None:
    Tensor.manual_seed(1)
    model = nn.Linear(3, 2)
    optimizer = nn.optim.AdamW([model.weight, model.bias])
    with Tensor.train():
        for _ in range(3):
            model(Tensor.ones(4, 3)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    held = [model.weight, model.bias, *nn.state.get_state_dict(optimizer).values()]
    assert all(tensor.uop.history is None for tensor in held)


def test_plain_descent_keeps_no_history() -> None:
    x = Tensor([[1.0, 2.0]])
    w = Tensor([[3.0], [4.0]])
    for _ in range(3):
        (x @ w).sum().backward()
        assert w.grad is not None
        w.assign(w - w.grad * 0.1).realize()
        w.grad = None
    assert w.uop.history is None


def test_a_history_that_grows_warns_once_with_its_line() -> None:
    w = parameter()
    h = w * 1.5
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(MAX_DEPTH + 20):
            h = (h + w).realize()
    assert [one.category for one in caught] == [GraphWarning]
    message = str(caught[0].message)
    assert "h = (h + w).realize()" in message
    assert "no_grad" in message


def test_arguments_and_results_of_captured_functions_are_leaves_in_every_call() -> None:
    w = parameter()

    @TinyJit
    def double(x: Tensor) -> Tensor:
        return x * 2

    for _ in range(4):
        h = (w * w).realize()
        result = double(h)
        w.grad = None
        assert gradient_of(w, (h * 3).sum() + (result * w).sum()) == [8, 20, 36]


def test_lazy_gradients_flow_through_values_realized_meanwhile() -> None:
    def run() -> list[Any]:
        a = Tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).realize().requires_grad_()
        c = a * a
        c += 2
        c[0:2] = 1
        (c * c).sum().backward()
        return [c, a.grad]  # the parameter itself dies here

    for _ in range(4):  # from the second time on the graph is recognised
        c, gradient = run()
        assert c.tolist() == [[1, 1], [1, 1], [27, 38]]
        assert gradient.tolist() == [[0, 0], [0, 0], [540, 912]]


def test_gradients_use_the_contents_that_a_write_replaced() -> None:
    for _ in range(2):
        k = Tensor([3.0]).realize().requires_grad_()
        g = Tensor([1.0, 2.0, 3.0]).realize()
        g[2:3] *= k
        g[0:1] *= g[2:3]
        g.realize()
        g *= g
        g.realize()
        assert gradient_of(k, g.sum()) == [108]
        assert g.tolist() == [81, 4, 81]


def test_contents_that_no_gradient_needs_are_not_copied() -> None:
    w = parameter()
    x = Tensor([1.0, 2.0, 3.0]).realize()
    x[1:3] += w[1:3] * 2
    x.realize()
    assert all(node.op is not Ops.CONTIGUOUS for node in toposort(x.uop.history.src))
    assert gradient_of(w, (x * x).sum()) == [0, 24, 36]


def test_what_was_written_over_is_no_part_of_a_value() -> None:
    w = parameter()
    for is_computed in (False, True):
        h = w * 2
        if is_computed:
            h.realize()
        h.assign(Tensor([1.0, 1.0, 1.0]))
        with pytest.raises(GradientError, match="depends on no parameter"):
            h.sum().backward()


@pytest.mark.parametrize("factor", [1.0, None])
def test_a_parameter_that_was_given_a_copy_of_itself_keeps_its_gradient(
    factor: float | None,
) -> None:
    w = parameter()
    same, tail = w.roll(0), w[1:]
    same[:2] += 10  # in the memory of w, which gets a copy
    y = tail * (tail if factor is None else factor)
    same.realize()
    assert gradient_of(w, y.sum()) == ([0, 1, 1] if factor else [0, 4, 6])
    assert w.tolist() == [1, 2, 3]


def test_values_that_wait_keep_what_their_derivatives_read_when_it_is_written_to() -> None:
    w, x, places = parameter(), Tensor([2.0, 3.0, 4.0]).realize(), Tensor([0, 2]).realize()
    product, taken = w * x, w[places]
    taken[:1] *= 2
    x += x
    places *= 0
    Tensor.realize(x, places)
    assert gradient_of(w, product.sum() + taken.sum()) == [4, 3, 5]
    assert (x.tolist(), places.tolist()) == ([4, 6, 8], [0, 0])


def test_steps_of_training_copy_no_weights_for_losses_that_wait() -> None:
    w = parameter()
    losses = []
    for _ in range(3):
        losses.append((w * w).sum())
        losses[-1].backward()
        w -= w.grad.detach() * 0.25
        w.grad = None
        w.realize()
    assert not SAVED_HOLDERS
    assert np.allclose([loss.item() for loss in losses], [14, 3.5, 0.875])


@pytest.mark.parametrize("reads", ["g * x[:3]", "x * g[0]", "x + g.sum()"])
def test_contents_are_saved_for_a_write_that_another_write_brings_about(reads: str) -> None:
    """Writing to g computes what reads its old contents, and with it the write to x."""
    x, w = Tensor([0.0, 1.0, 2.0, 3.0]).realize(), Tensor([2.0], requires_grad=True)
    g = Tensor([1.0, 2.0, 3.0]).realize()
    x[1:3] *= w
    kept = eval(reads, {"x": x, "g": g})
    g.assign(g * 2).realize()
    (x * x).sum().backward()
    assert w.grad.tolist() == [2 * 2.0 * (1 + 4)]
    assert kept.shape


@pytest.mark.parametrize("detached_first", [False, True])
def test_a_value_computed_with_its_detached_self_keeps_its_own_gradient(
    detached_first: bool,
) -> None:
    w = parameter()
    value = w * w
    detached = value.detach()
    Tensor.realize(*((detached, value) if detached_first else (value, detached)))
    assert gradient_of(w, (detached * 3).sum() + (w * 0).sum()) == [0, 0, 0]
    assert gradient_of(w, (value * 3).sum()) == [6, 12, 18]


@pytest.mark.parametrize("reversed_first", [False, True])
def test_a_value_computed_with_its_copy_of_another_gradient_keeps_its_own(
    reversed_first: bool,
) -> None:
    w = parameter()
    value = w * w
    turned = custom_gradient(lambda g, y, x: -g)(lambda x: x)(value)
    Tensor.realize(*((turned, value) if reversed_first else (value, turned)))
    assert gradient_of(w, turned.sum()) == [-2, -4, -6]
    w.grad = None
    assert gradient_of(w, value.sum()) == [2, 4, 6]


def test_a_write_that_computes_a_value_and_its_detached_self_keeps_them_apart() -> None:
    w = parameter()
    value = w * 1
    value[:1] += value[:1]
    double = value + value
    detached = double.detach()
    value[0] = 1
    value.realize()
    assert gradient_of(w, (detached * w).sum()) == [4, 4, 6]
