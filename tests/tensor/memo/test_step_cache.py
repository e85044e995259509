"""Repeated steps of a loop hit the step cache."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad.tensor.lazy.realize
from glassgrad.base.errors import AxisError
from glassgrad.engine.cache.graph_keys import PLANS
from glassgrad.ir.ops import Ops
from glassgrad.nn.optim import (
    LAMB,
    LARS,
    SGD,
    Adam,
    AdamW,
    Muon,
    Optimizer,
    RMSprop,
    clip_grad_norm_,
)
from glassgrad.tensor.lazy.deferred import expand_deferred
from glassgrad.tensor.lazy.realize import finish_writes
from glassgrad.tensor.memo.step_cache import STEPS
from glassgrad.tensor.tensor import Tensor

ON_COMPILED_BACKEND = True
Step = Callable[[], Any]


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def network(make: Callable[[list[Tensor]], Optimizer]) -> tuple[Step, list[Tensor]]:
    """A training step, and what it writes."""
    first, second = Tensor(numbers(6, 5, seed=1)), Tensor(numbers(5, 3, seed=2))
    bias, other = Tensor(numbers(3, seed=3)), Tensor(numbers(3, seed=4))
    optimizer = make([first, second, bias, other])
    x, y = Tensor(numbers(8, 6)), Tensor([0, 1, 2, 0, 1, 2, 0, 1])

    def step() -> float:
        optimizer.zero_grad()
        loss = ((x @ first).tanh() @ second + bias + other).cross_entropy(y)
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step, optimizer.params


def nothing_is_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(values: object) -> object:
        raise AssertionError("a step was not recognised")

    monkeypatch.setattr(glassgrad.tensor.lazy.realize, "collect_values", fail)


MAKERS: dict[str, Callable[[list[Tensor]], Optimizer]] = {
    "SGD": lambda params: SGD(params, lr=0.1, momentum=0.9, weight_decay=0.01),
    "Adam": lambda params: Adam(params, lr=0.01, weight_decay=0.1),
    "AdamW": lambda params: AdamW(params, lr=0.01),
    "LAMB": lambda params: LAMB(params, lr=0.01, weight_decay=0.1),
    "nesterov": lambda params: SGD(params, lr=0.1, momentum=0.9, nesterov=True),
    "LARS": lambda params: LARS(params, lr=0.1, tcoef=0.1, classic=False, pre_wd=False),
    "RMSprop": lambda params: RMSprop(params, lr=0.01, weight_decay=0.1),
    "centred": lambda params: RMSprop(params, lr=0.01, momentum=0.5, centered=True),
}


@pytest.mark.parametrize("name", MAKERS)
def test_cached_steps_equal_uncached_steps(name: str) -> None:
    step, params = network(MAKERS[name])
    losses = [step() for _ in range(6)]
    again, others = network(MAKERS[name])
    for loss in losses:
        STEPS.clear()
        assert again() == loss
    for param, other in zip(params, others, strict=True):
        np.testing.assert_array_equal(param.numpy(), other.numpy())


@pytest.mark.parametrize("name", MAKERS)
def test_the_third_step_of_a_loop_is_cached(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    step, _ = network(MAKERS[name])
    losses = [step(), step()]
    nothing_is_collected(monkeypatch)
    losses += [step(), step()]
    assert losses == sorted(losses, reverse=True) and len(set(losses)) == 4


@pytest.mark.parametrize("name", MAKERS)
def test_what_a_step_writes_is_one_node(name: str) -> None:
    step, params = network(MAKERS[name])
    step()
    optimizer = MAKERS[name](params)
    for param in params:
        param.grad = Tensor(np.ones(param.shape, np.float32))
    written = [tensor.uop for tensor in optimizer.schedule_step()]
    updates = [uop for uop in written if uop.shape != (1,)]
    assert all(uop.op is Ops.ASSIGN and uop.src[1].op is Ops.DEFERRED for uop in updates)
    finish_writes()


def test_a_step_of_muon_is_one_node() -> None:
    w = Tensor(numbers(6, 4))
    optimizer = Muon([w], lr=0.1)
    w.grad = Tensor(np.ones((6, 4), np.float32))
    assert all(tensor.uop.src[1].op is Ops.DEFERRED for tensor in optimizer.schedule_step())
    finish_writes()


def convolutions() -> tuple[Step, list[Tensor]]:
    """A step whose gradients stay lazy, but for sums that are worth memory."""
    weight, scale = Tensor(numbers(4, 3, 3, 3, seed=1)), Tensor(numbers(4, seed=2))
    optimizer = SGD([weight, scale], lr=0.01)
    x = Tensor(numbers(8, 3, 10, 10))

    def step() -> list[float]:
        optimizer.zero_grad()
        loss = (x.conv2d(weight).relu() * scale.reshape(1, -1, 1, 1)).square().mean()
        loss.backward()
        optimizer.step()
        gradients = [
            gradient.sum() for gradient in (weight.grad, scale.grad) if gradient is not None
        ]
        return [float(value.item()) for value in (loss, *gradients)]

    return step, optimizer.params


def test_steps_that_materialize_parts_of_gradients_are_cached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    step, params = convolutions()
    found = [step() for _ in range(5)]
    again, others = convolutions()
    for one in found:
        STEPS.clear()
        assert again() == one
    for param, other in zip(params, others, strict=True):
        np.testing.assert_array_equal(param.numpy(), other.numpy())
    step, params = convolutions()
    assert [step() for _ in range(3)] == found[:3]
    nothing_is_collected(monkeypatch)
    assert [step() for _ in range(2)] == found[3:]


def test_clearing_plans_invalidates_cached_steps() -> None:
    x = Tensor(numbers(4))
    for _ in range(3):
        (x + 1).realize()
    PLANS.clear()
    (x + 1).realize()
    assert len(PLANS) == 1


def test_the_same_operand_twice_is_not_two_operands() -> None:
    x, y = Tensor([1.0, 2.0]), Tensor([10.0, 20.0])
    for one, other in ((x, x), (x, y), (y, x), (y, y)):
        assert (one - other * 2).tolist() == [
            a - 2 * b for a, b in zip(one.tolist(), other.tolist(), strict=True)
        ]


def test_zeros_of_either_sign_and_nan_have_different_keys() -> None:
    x = Tensor([-0.0])
    found = [(x + value).item() for value in (0.0, -0.0, float("nan"), 0.0, -0.0)]
    assert [str(value) for value in found] == ["0.0", "-0.0", "nan", "0.0", "-0.0"]


def test_cached_steps_compute_readers_of_overwritten_buffers() -> None:
    w = Tensor([1.0, 2.0]).realize()
    for turn in range(6):
        before = w.tolist()
        reader = w * 10 if turn % 2 else None
        w.assign(w + 1).realize()
        assert w.tolist() == [value + 1 for value in before]
        if reader is not None:
            assert reader.tolist() == [value * 10 for value in before]


def test_a_tensor_that_holds_the_old_contents_keeps_them() -> None:
    w = Tensor([1.0, 2.0]).realize()
    for _ in range(4):
        before = w.tolist()
        old = Tensor(w)
        w.assign(w + 1).realize()
        assert (old.tolist(), w.tolist()) == (before, [value + 1 for value in before])


def test_losses_may_be_read_between_backward_and_the_step() -> None:
    def losses(looks: bool) -> list[float]:
        w = Tensor(numbers(3))
        optimizer, found = SGD([w], lr=0.1), []
        for _ in range(5):
            optimizer.zero_grad()
            loss = (w * w).exp().sum()
            loss.backward()
            if looks:
                loss.item()
            optimizer.step()
            found.append(loss.item())
        return found

    assert losses(looks=True) == losses(looks=False)


def test_gradients_can_be_read_after_the_step_that_used_them() -> None:
    w = Tensor([1.0, 2.0])
    optimizer = SGD([w], lr=0.5)
    for _ in range(4):
        before = w.numpy().copy()
        optimizer.zero_grad()
        (w * w * w).sum().backward()
        optimizer.step()
        assert w.grad is not None
        np.testing.assert_allclose(w.grad.numpy(), 3 * before**2, rtol=1e-6)


def test_gradients_that_were_read_are_kept() -> None:
    for _ in range(4):
        x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
        (x * x).sum().backward()
        assert x.grad is not None
        assert x.grad.tolist() == [2.0, 4.0]
        (y * y).sum().backward()
        expand_deferred()
        assert y.grad is not None
        assert (x.grad.tolist(), y.grad.tolist()) == ([2.0, 4.0], [6.0, 8.0])
        assert (x.grad * x).sum().gradient(x)[0].tolist() == [2.0, 4.0]


def test_parameters_with_one_gradient_are_both_moved_every_time() -> None:
    a, b = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    optimizer = SGD([a, b], lr=0.1)
    for turn in range(1, 5):
        optimizer.zero_grad()
        ((a + b) * 2).sum().backward()
        optimizer.step()
        np.testing.assert_allclose(a.numpy(), np.array([1, 2]) - 0.2 * turn, rtol=1e-5)
        np.testing.assert_allclose(b.numpy(), np.array([3, 4]) - 0.2 * turn, rtol=1e-5)
        assert a.grad is not None and b.grad is not None
        assert a.grad.tolist() == b.grad.tolist() == [2.0, 2.0]


def test_cached_steps_accumulate_and_clip_gradients() -> None:
    w = Tensor([3.0, 4.0])
    optimizer = SGD([w], lr=0.0)
    for _ in range(4):
        optimizer.zero_grad()
        (w * w).sum().backward()
        (w * w).sum().backward()
        length = clip_grad_norm_([w], 1.0)
        optimizer.step()
        assert length.item() == pytest.approx(20.0)
        assert w.grad is not None and w.grad.tolist() == pytest.approx([0.6, 0.8])


def test_cached_steps_read_a_changed_learning_rate() -> None:
    w = Tensor([1.0])
    optimizer = SGD([w], lr=1.0)
    for rate in (1.0, 0.5, 0.25, 0.125):
        optimizer.lr.assign([rate])
        before = w.item()
        optimizer.zero_grad()
        w.sum().backward()
        optimizer.step()
        assert w.item() == before - rate


def test_changed_optimiser_options_change_the_key() -> None:
    w = Tensor([1.0])
    optimizer = AdamW([w], lr=1.0, eps=0.0, weight_decay=0.0)
    for decay in (0.0, 0.0, 0.0, 0.5):
        optimizer.weight_decay = decay
        before = w.item()
        optimizer.zero_grad()
        w.sum().backward()
        optimizer.step()
        assert w.item() == pytest.approx(before - 1.0 - decay * before, abs=1e-5)


def test_a_bad_index_in_a_cached_step_names_its_own_line() -> None:
    x = Tensor(numbers(4, 2))
    for index in ([0, 1], [1, 2]):
        x[Tensor(index)].sum().item()
    with pytest.raises(AxisError, match="the line of the third"):
        x[Tensor([0, 9])].sum().item()  # the line of the third


def calls_of(step: Step) -> int:
    """How many Python functions are called."""
    calls = 0

    def count(frame: object, event: str, arg: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        step()
    finally:
        sys.setprofile(None)
    return calls


def test_a_tensor_that_is_given_a_copy_shares_none_that_others_make() -> None:
    for _ in range(3):
        old = Tensor([1.5, 2.5]).realize()
        copy = old.contiguous()
        new = old.cast("float32")
        new -= 1
        new.realize()
        old += 5
        assert [x.tolist() for x in (new, old, copy)] == [[0.5, 1.5], [6.5, 7.5], [1.5, 2.5]]


def test_a_cached_step_makes_few_python_calls() -> None:
    """In a process of its own: the key of a step has the lazy tensors that other tests leave."""
    script = """
from test_step_cache import MAKERS, STEPS, calls_of, network
step, _ = network(MAKERS["Adam"])
for _ in range(4):
    step()
known = calls_of(step)
STEPS.clear()
print(known, calls_of(step))
"""
    printed = subprocess.check_output(
        [sys.executable, "-c", script], cwd=Path(__file__).parent, text=True
    )
    known, planned = map(int, printed.split())
    assert known < 3500 and known * 2 < planned


def test_realized_tensors_cost_a_cached_step_no_python_calls() -> None:
    step, _ = network(MAKERS["Adam"])
    calls = []
    for count in (0, 1000):
        others = [Tensor([float(i)]).realize() for i in range(count)]
        for _ in range(4):
            step()
        calls.append(calls_of(step))
    assert calls[1] < calls[0] + len(others) // 2
