"""Composites: methods recorded as one node and expanded on demand."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad.tensor.lazy.realize
from glassgrad import Variable
from glassgrad.base.errors import AxisError, ShapeError
from glassgrad.engine.cache.graph_keys import PLANS
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import toposort
from glassgrad.nn.optim import Adam
from glassgrad.tensor.jit.function import TinyJit
from glassgrad.tensor.lazy.composite import Composite, composite
from glassgrad.tensor.lazy.deferred import expand_deferred, expanding
from glassgrad.tensor.tensor import Tensor


@pytest.fixture(autouse=True)
def no_pending_values_of_other_tests() -> None:
    """Lazy tensors in reference cycles still count as live until they are collected."""
    gc.collect()


ON_COMPILED_BACKEND = True
DEFERRED = Ops.DEFERRED


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


@composite
def shifted(x: Tensor, y: Tensor, by: float = 1.0, where: tuple[int, ...] = ()) -> Tensor:
    return (x * y.detach() + by).sum(where)


def test_a_method_is_one_node_from_its_first_call_on() -> None:
    x, w, b = Tensor(numbers(4, 3)), Tensor(numbers(3, 2)), Tensor(numbers(2))
    first, second = (x.linear(w, b) for _ in range(2))
    assert first.uop is second.uop
    assert first.uop.op is DEFERRED and first.uop.src == (x.uop, w.uop, b.uop)
    with expanding():
        direct = x.linear(w, b)
    assert direct.uop.op is Ops.ADD
    assert (first.shape, first.dtype) == (direct.shape, direct.dtype)
    np.testing.assert_array_equal(first.numpy(), direct.numpy())


def test_a_composite_expands_to_what_would_be_recorded() -> None:
    x, w = Tensor(numbers(4, 3)), Tensor(numbers(3, 2))
    made = x.dot(w).log_softmax()
    assert [node.op for node in toposort((made.uop,))].count(DEFERRED) == 2
    with expanding():
        direct = x.dot(w).log_softmax()
    expand_deferred()
    assert made.uop is direct.uop


def test_the_second_step_of_a_loop_writes_no_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = Tensor(numbers(8, 6)).realize(), Tensor(list(range(4)) * 2).realize()
    w, b = Tensor(numbers(6, 4)).realize(), Tensor(numbers(4)).realize()
    optimizer = Adam([w, b], lr=0.1)
    written = []
    collect = glassgrad.tensor.lazy.realize.collect_values

    def watched(values: Any) -> Any:
        written.append(values)
        return collect(values)

    monkeypatch.setattr(glassgrad.tensor.lazy.realize, "collect_values", watched)
    losses = []
    with Tensor.train():
        for step in range(3):
            optimizer.zero_grad()
            loss = x.linear(w, b).layernorm().cross_entropy(y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if step == 0:
                assert written
                written.clear()
    assert not written and losses[2] < losses[0]


@pytest.mark.parametrize("time", [0, 1])
def test_errors_are_the_same_whenever_they_are_made(time: int) -> None:
    x, w = Tensor(numbers(4, 3)), Tensor(numbers(3, 2))
    for _ in range(time):
        x.dot(w)
    with pytest.raises(ShapeError, match="3 columns meet 4 rows"):
        x.dot(Tensor(numbers(4, 2)))


@pytest.mark.parametrize("time", [0, 1])
def test_wrong_classes_are_refused_where_they_are_given(time: int) -> None:
    x, wrong = Tensor(numbers(2, 3)), Tensor([0, 9])
    for _ in range(time):
        x.cross_entropy(Tensor([0, 1])).item()
        x.nll_loss(Tensor([0, 1])).item()
    for loss in (x.cross_entropy, x.nll_loss):
        with pytest.raises(AxisError, match="index 9 is out of range for axis 1 of size 3"):
            loss(wrong)


def test_late_errors_name_the_line_of_the_call() -> None:
    classes = Tensor([0, 5]) + 4
    loss = Tensor(numbers(2, 3)).cross_entropy(classes)
    classes.realize()
    with pytest.raises(AxisError) as caught:
        loss.item()
    assert caught.value.origin is not None
    assert "cross_entropy(classes)" in caught.value.origin.text


def test_different_arguments_make_different_composites() -> None:
    x, y = Tensor([1.0]), Tensor([-0.0])
    for _ in range(3):
        results = [shifted(x, y, by).item() for by in (0.0, -0.0, 2.0, True)]
        assert list(map(str, results)) == ["0.0", "-0.0", "2.0", "1.0"]
        assert shifted(x, y, where=(0,)).shape == ()
        assert shifted(x, y, by=3.0).item() == 3.0


def test_gradients_reach_the_same_inputs_as_when_expanded() -> None:
    for _ in range(3):
        x, y = Tensor([3.0, 4.0]), Tensor([5.0, 6.0])
        shifted(x, y, where=(0,)).backward()
        assert x.grad is not None and x.grad.tolist() == [5.0, 6.0]
        assert y.grad is None


def test_gradients_of_gradients_are_written() -> None:
    for _ in range(3):
        x = Tensor([0.3, 0.7])
        (slope,) = x.softmax()[0].gradient(x)
        (bend,) = slope[0].gradient(x)
        p = np.exp(0.3) / (np.exp(0.3) + np.exp(0.7))
        want = p * (1 - p) * (1 - 2 * p)
        np.testing.assert_allclose(bend.tolist(), [want, -want], rtol=1e-5)


def test_what_depends_on_more_than_its_arguments_is_recorded_every_time() -> None:
    elsewhere = Tensor([10.0])

    @composite
    def reads(x: Tensor) -> Tensor:
        return x + elsewhere

    @composite
    def draws(x: Tensor) -> Tensor:
        return x + Tensor.rand(1)

    x = Tensor([1.0])
    found = [draws(x) for _ in range(4)]
    assert len({draw.item() for draw in found}) == 4
    for _ in range(3):
        assert reads(x).uop.op is Ops.ADD
    elsewhere.assign(elsewhere + 1).realize()
    assert reads(x).item() == 12.0


def test_lines_are_those_of_the_call() -> None:
    x, w = Tensor(numbers(4, 3)), Tensor(numbers(3, 2))
    for _ in range(3):
        y = x.dot(w)
    line = y.uop.origin
    expand_deferred()
    made = [node for node in toposort((y.uop,)) if node.src]
    assert line is not None and line.text == "y = x.dot(w)"
    assert y.uop.op is not DEFERRED and {node.origin for node in made} == {line}


def test_a_capture_records_everything() -> None:
    x, w = Tensor(numbers(4, 3)), Tensor(numbers(3, 2))
    for _ in range(2):
        y = x.dot(w)
    seen = [isinstance(y.uop.arg, Composite)]

    @TinyJit
    def step(x: Tensor) -> Tensor:
        y = x.dot(w)
        seen.append(isinstance(y.uop.arg, Composite))
        return y.realize()

    for _ in range(3):
        np.testing.assert_allclose(step(x).numpy(), x.numpy() @ w.numpy(), rtol=1e-5)
    assert seen == [True, False, False]


def kept_inside(weights: list[Tensor]) -> Callable[[Tensor], list[float]]:
    """A step that looks at something half way: a sum that is worth memory is read again later."""

    def step(x: Tensor) -> list[float]:
        h = x.linear(weights[0], weights[1])
        h.relu().realize()
        return (h * 2).tolist()  # type: ignore[no-any-return]

    return step


def test_values_kept_inside_of_one_node_are_kept_every_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    weights = [Tensor(numbers(512, 4)).realize(), Tensor(numbers(4)).realize()]
    step = kept_inside(weights)
    x = Tensor(numbers(1, 512)).realize()
    want = step(x)
    for _ in range(4):
        assert step(x) == want
    plans = len(PLANS)

    def fail(values: object) -> object:
        raise AssertionError("a step was not recognised")

    monkeypatch.setattr(glassgrad.tensor.lazy.realize, "collect_values", fail)
    assert step(x) == want
    assert len(PLANS) == plans


def test_no_gradient_flows_without_requires_grad() -> None:
    for _ in range(3):
        x, w = Tensor(numbers(4, 3)), Tensor(numbers(3, 2))
        with Tensor.no_grad():
            y = x.dot(w)
        (y.sum() + w.sum()).backward()
        assert x.grad is None and w.grad is not None and w.grad.tolist() == [[1.0, 1.0]] * 3


def test_composites_first_traced_under_no_grad_have_gradients() -> None:
    with Tensor.no_grad():
        for _ in range(3):
            Tensor(numbers(4, 3)).dot(Tensor(numbers(3, 2))).realize()
    x, w = Tensor(numbers(4, 3)), Tensor(numbers(3, 2))
    y = x.dot(w)
    assert y.uop.op is DEFERRED
    y.sum().backward()
    assert w.grad is not None
    np.testing.assert_allclose(w.grad.numpy(), x.numpy().sum(0)[:, None].repeat(2, 1), rtol=1e-5)


def test_sizes_that_variables_decide_are_recorded_every_time() -> None:
    n = Variable("n", 1, 4)
    x, w = Tensor(numbers(4, 3)), Tensor(numbers(3, 2))
    for size in (1, 2, 3, 4):
        y = x[: n.bind(size)].dot(w)
        assert y.uop.op is not DEFERRED
        wanted = (x.numpy()[:size] @ w.numpy()).sum(0)
        np.testing.assert_allclose(y.sum(0).numpy(), wanted, rtol=1e-4, atol=1e-5)
    for _ in range(2):
        z = x.dot(w)
    assert z.uop.op is DEFERRED


def test_a_graph_that_another_thread_writes_meanwhile_is_still_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, w = Tensor(numbers(4, 3)), Tensor(numbers(3, 2))
    run_again = glassgrad.tensor.lazy.realize.run_plan

    def disturbed(*made: Any) -> Any:
        expand_deferred()
        return run_again(*made)

    monkeypatch.setattr(glassgrad.tensor.lazy.realize, "run_plan", disturbed)
    for _ in range(4):
        np.testing.assert_allclose(x.dot(w).numpy(), x.numpy() @ w.numpy(), rtol=1e-5)
        np.testing.assert_allclose(x.dot(w).realize().numpy(), x.numpy() @ w.numpy(), rtol=1e-5)
