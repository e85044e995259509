"""Captured graphs: effects, aliasing and symbolic sizes are the same in replays as in calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from glassgrad import Tensor, TinyJit, Variable, jit
from glassgrad.base.errors import CaptureError

ON_COMPILED_BACKEND = True


def row(*values: float) -> Tensor:
    return Tensor(np.array(values, np.float32)).realize()


def test_an_unrealized_write_is_part_of_the_capture() -> None:
    total = row(0)

    @jit
    def count(x: Tensor) -> None:
        total.assign(total + x)

    for number in range(5):
        count(row(1))
        assert total.item() == number + 1


def test_an_argument_may_be_written_and_not_returned() -> None:
    @jit
    def grow(x: Tensor) -> Tensor:
        x.assign(x * 2)
        return x.sum() + 1

    for number in range(5):
        x = row(number, 1)
        assert (grow(x).item(), x.tolist()) == (2 * number + 3, [2 * number, 2])


def test_an_outside_tensor_may_be_the_only_result() -> None:
    total = row(4, 5, 6)
    before = total.numpy().copy()

    @TinyJit
    def add(x: Tensor) -> Tensor:
        return total.assign(total + x)

    for n in range(1, 5):
        assert add(Tensor([1.0, 2.0, 3.0])) is total
        np.testing.assert_allclose(total.numpy(), before + [n, 2 * n, 3 * n], rtol=1e-6)


def test_a_list_and_a_number_are_not_taken_for_two_tensors() -> None:
    scaled = jit(lambda pair, factor: (pair[0] + pair[1]) * factor)
    pair = [row(1), row(2)]
    assert [scaled(pair, 3).item() for _ in range(4)] == [9] * 4


@pytest.mark.parametrize("first", ["the weight", "a slice of the weight"])
def test_an_argument_may_be_a_tensor_that_is_read_as_well(first: str) -> None:
    weight = row(1, 2)
    argument = weight if first == "the weight" else weight.reshape(2).realize()
    added = jit(lambda x: x + weight.sum())
    for _ in range(3):
        assert added(argument).tolist() == [4, 5]
    for number in range(3):
        assert added(row(number, 0)).tolist() == [number + 3, 3]
    assert added(argument).tolist() == [4, 5]


def test_a_tensor_that_is_written_may_become_an_argument() -> None:
    weight = row(1)

    @jit
    def step(x: Tensor) -> Tensor:
        weight.assign(weight + 1)
        return x * 2

    for _ in range(3):
        assert step(row(5)).item() == 10
    assert step(weight).item() == 2 * weight.item() == 10


def test_a_returned_weight_is_not_mistaken_for_an_earlier_argument() -> None:
    weight = row(1)
    both = jit(lambda x: (x + 1, weight))
    for x in (row(2), weight, row(3), row(4)):
        assert both(x)[1] is weight


def test_arguments_may_come_to_overlap() -> None:
    @jit
    def step(x: Tensor, y: Tensor) -> Tensor:
        y.assign(y + 1)
        return x.sum()

    array = np.arange(4, dtype=np.float32)
    for _ in range(3):
        step(Tensor(array), row(1, 1))
    for number in range(3):
        x, y = Tensor.from_memory(array), Tensor.from_memory(array[1:3])
        assert step(x, y).item() == 6 + 2 * (number + 1)


def test_of_two_holders_the_one_that_moved_may_be_the_one_that_is_read() -> None:
    weight = row(1)
    alias = weight.float()
    added = jit(lambda x: x + weight)
    for _ in range(3):
        assert added(row(0)).item() == 1
    weight.replace(row(5))
    assert added(row(0)).item() == 5
    assert alias.item() == 1


def test_a_lazy_tensor_outside_is_not_computed_by_every_replay() -> None:
    source = row(1)
    lazy: list[Tensor] = []

    @jit
    def added(x: Tensor) -> Tensor:
        return x + lazy[-1]

    lazy.append(row(0))
    added(row(0))
    lazy[0] = source * 2
    assert [added(row(0)).item() for _ in range(2)] == [2, 2]
    source.assign(row(7))
    assert added(row(0)).item() == 2


def _replace(weight: Tensor) -> Callable[[Tensor], Any]:
    def call(x: Tensor) -> None:
        weight.replace((weight + x).realize())

    return call


def _replace_lazily(weight: Tensor) -> Callable[[Tensor], Any]:
    def call(x: Tensor) -> None:
        x.replace(x + weight)

    return call


def _seed(weight: Tensor) -> Callable[[Tensor], Any]:
    def call(x: Tensor) -> Tensor:
        Tensor.manual_seed(3)
        return Tensor.rand(2) + x

    return call


def _generate(weight: Tensor) -> Callable[[Tensor], Any]:
    return lambda x: (x * factor for factor in (1, 2))


def _postpone(weight: Tensor) -> Callable[[Tensor], Any]:
    return lambda x: lambda: x + weight


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (_replace, "replaces a tensor of shape"),
        (_replace_lazily, "replaces a tensor of shape"),
        (_seed, "restarts the random numbers"),
        (_generate, "cannot return a generator"),
        (_postpone, "cannot return a function"),
    ],
)
def test_effects_that_a_replay_would_not_have_are_refused(made: Any, words: str) -> None:
    call = jit(made(row(1)))
    with pytest.raises(CaptureError, match=words):
        for _ in range(2):
            call(row(1))


def test_results_have_the_sizes_of_their_call() -> None:
    x, count = Tensor(np.arange(10, dtype=np.float32)).realize(), Variable("n", 1, 9)
    parts = jit(lambda x, n: (x[:n] * 2, x[n:].reshape(1, -1) + 1))
    held = [(n, *parts(x, count.bind(n))) for n in (3, 4, 5, 5, 9, 1, 4)]
    for n, low, high in held:
        assert low.tolist() == [2 * i for i in range(n)]
        assert high.tolist() == [[i + 1 for i in range(n, 10)]]


def test_going_on_with_a_realized_value_of_variable_size_is_refused() -> None:
    count = Variable("n", 1, 4)
    call = TinyJit(lambda x, n: (x[:n] * 2).realize() + 1)
    with pytest.raises(CaptureError, match="whose shape a variable decides"):
        for n in (2, 3):
            call(row(1, 2, 3, 4), count.bind(n))


# ---------------------------------------------------------------------- what calls leave behind


class Holder:
    def __init__(self, x: Tensor) -> None:
        self.x = x


def test_returned_objects_that_hold_new_tensors_are_refused() -> None:
    for result in (Holder, lambda x: [{"a": Holder(x)}]):
        f = jit(lambda x, result=result: result((x + 1).realize()))
        f(row(1, 2))
        with pytest.raises(CaptureError, match=r"returns a Holder that holds a tensor of shape"):
            f(row(1, 2))


def test_returned_objects_with_outside_tensors_are_returned_again() -> None:
    holder = Holder(row(1, 2))
    f = jit(lambda x: (holder, x + holder.x))
    for n in range(4):
        found, total = f(row(n, n))
        assert found is holder
        assert total.tolist() == [1 + n, 2 + n]


def test_a_gradient_that_was_taken_away_is_there_again_after_a_replay() -> None:
    weight = row(1, 2)

    @TinyJit
    def f(x: Tensor) -> None:
        (weight * x).sum().backward()
        assert weight.grad is not None
        weight.grad.realize()

    for n in range(1, 6):
        f(row(n, 1))
        assert weight.grad is not None and weight.grad.tolist() == [n, 1]
        weight.grad = None


def test_gradients_of_what_a_function_does_not_update_are_computed() -> None:
    weight = row(1, 2)

    @TinyJit
    def f(x: Tensor) -> Tensor:
        loss = (weight * x).sum()
        loss.backward()
        return loss.realize()

    for number in range(5):
        weight.grad = None
        f(row(3, number))
        assert weight.grad is not None
        assert weight.grad.tolist() == [3, number]


def test_a_gradient_that_was_only_used_for_an_update_is_refused_and_not_missing() -> None:
    weight = row(1, 2)

    @TinyJit
    def f(x: Tensor) -> Tensor:
        weight.grad = None
        loss = (weight * x).sum()
        loss.backward()
        assert weight.grad is not None
        weight.assign(weight - 0.5 * weight.grad)
        return loss.realize()

    for _ in range(3):
        f(row(3, 1))
    assert weight.grad is not None
    with pytest.raises(CaptureError, match="overwritten by a replay"):
        weight.grad.tolist()


def taking_gradients(weight: Tensor) -> TinyJit:
    """A function that returns the weight's gradient and leaves none behind."""

    @TinyJit
    def f(x: Tensor) -> Tensor:
        (weight * x).sum().backward()
        gradient = weight.grad
        weight.grad = None
        assert gradient is not None
        return gradient.realize()

    return f


def test_gradients_that_a_function_clears_are_cleared_by_replays() -> None:
    weight = row(1, 2)
    f = taking_gradients(weight)
    for n in range(5):
        assert f(row(n, 1)).tolist() == [n, 1]
        assert weight.grad is None


def test_gradients_that_backward_adds_to_are_inputs() -> None:
    weight = row(1, 2)
    f = taking_gradients(weight)
    for _ in range(3):
        assert f(row(3, 1)).tolist() == [3, 1]
    weight.grad = row(9, 9)
    for _ in range(4):
        weight.grad = row(9, 9)
        assert f(row(3, 1)).tolist() == [12, 10]


def test_gradients_add_up_from_call_to_call() -> None:
    weight = row(1, 2)

    @TinyJit
    def norm(x: Tensor) -> Tensor:
        (weight * x).sum().backward()
        assert weight.grad is not None
        return weight.grad.square().sum().sqrt()

    for number in range(1, 9):
        assert norm(row(3, 4)).item() == 5 * number
    assert weight.grad is not None
    assert weight.grad.tolist() == [24, 32]
    weight.grad = None
    assert norm(row(3, 4)).item() == 5


def test_a_gradient_that_is_replaced_by_a_sum_is_refused() -> None:
    weight = row(1, 2)

    @TinyJit
    def f(x: Tensor) -> None:
        (gradient,) = (weight * x).sum().gradient(weight)
        weight.grad = gradient if weight.grad is None else weight.grad + gradient
        weight.grad.realize()

    f(row(3, 1))
    with pytest.raises(CaptureError, match=r"of shape \(2,\) and then replaces it") as caught:
        f(row(3, 1))
    assert "weight.grad + gradient" in str(caught.value)


def test_looking_at_the_value_of_a_variable_is_an_error_that_shows_where() -> None:
    f = jit(lambda x, n: x * n.val)
    n = Variable("n", 1, 8)
    f(row(1, 2), n.bind(3))
    with pytest.raises(CaptureError, match="reads the value of n") as caught:
        f(row(1, 2), n.bind(4))
    assert "x * n.val" in str(caught.value)


def test_tiny_kernels_of_a_capture_wait_for_no_other_core() -> None:
    @TinyJit
    def f(x: Tensor) -> Tensor:
        for _ in range(20):
            x = (x * 1.5 + x).contiguous().realize()
        return x

    for _ in range(2):
        f(row(*range(256)))
    (captured,) = f.valid_captures().values()
    programs = [one.executable.source.program for one in captured.replay.capture.launches]
    assert len(programs) == 20
    assert {program.cores for program in programs} == {1}
