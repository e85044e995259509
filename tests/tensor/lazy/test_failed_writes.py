"""A computation that fails leaves all tensors unchanged."""

from __future__ import annotations

import numpy as np
import pytest

from glassgrad import Tensor, TinyJit, nn
from glassgrad.base.errors import AxisError

ON_COMPILED_BACKEND = True


def numbers() -> Tensor:
    return Tensor([1.0, 2.0, 3.0]).realize()


def test_a_write_at_a_bad_index_is_reported_once_and_never_was() -> None:
    x = numbers()
    view, value = x[0:2], x + 1
    x[Tensor([1]) + 7] = 9.0
    with pytest.raises(AxisError, match="index 8 is out of range for axis 0 of size 3"):
        x.realize()
    assert (x.tolist(), view.tolist(), value.tolist()) == ([1, 2, 3], [1, 2], [2, 3, 4])
    x[Tensor([1])] = 9.0
    assert (x.tolist(), view.tolist()) == ([1, 9, 3], [1, 9])


def test_good_writes_beside_a_bad_one_stay() -> None:
    x, y = numbers(), numbers()
    x[0] = 5.0
    x[Tensor([0, 9]) * 1] = 7.0
    x[2] = 6.0
    y += 1
    with pytest.raises(AxisError):
        (x + y).realize()
    assert (x.tolist(), y.tolist()) == ([5, 2, 6], [2, 3, 4])


def test_captured_functions_do_not_hear_of_writes_that_failed() -> None:
    x = numbers()
    function = TinyJit(lambda a: a * 2)
    for n in range(4):
        x[Tensor([n]) + 3] = 0.0
        with pytest.raises(AxisError):
            x.tolist()
        assert function(Tensor([n])).tolist() == [2 * n]
    assert x.tolist() == [1, 2, 3]


def test_an_unrequested_write_fails_once_where_it_runs() -> None:
    x = numbers()
    function = TinyJit(lambda a: a * 2)
    x[Tensor([4]) + 1] = 0.0
    with pytest.raises(AxisError, match="index 5"):
        function(Tensor([1]))
    assert [function(Tensor([n])).tolist() for n in range(3)] == [[0], [2], [4]]


class Tokens:
    def __init__(self) -> None:
        Tensor.manual_seed(2)
        self.table = nn.Embedding(5, 4)
        self.out = nn.Linear(4, 5)
        self.optimizer = nn.optim.AdamW(nn.state.get_parameters([self.table, self.out]))

    def step(self, tokens: Tensor) -> Tensor:
        logits = self.out(self.table(tokens))
        loss = logits.sparse_categorical_crossentropy(tokens)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.realize()

    def weights(self) -> list[np.ndarray]:
        state = nn.state.get_state_dict([self.table, self.out, self.optimizer])
        return [tensor.numpy().copy() for tensor in state.values()]


GOOD, BAD = [0, 1, 4, 2], [0, 1, 5, 2]


@pytest.mark.parametrize("is_captured", [False, True])
def test_a_training_step_with_a_bad_token_leaves_the_weights(is_captured: bool) -> None:
    model = Tokens()
    step = TinyJit(model.step) if is_captured else model.step
    with Tensor.train():
        for _ in range(3):
            step(Tensor(GOOD).realize())
        before = model.weights()
        with pytest.raises(AxisError, match="index 5"):
            step(Tensor(BAD).realize())
        held = [model.table.weight, model.out.weight, model.out.bias]
        after = [tensor.numpy().copy() for tensor in held]
        names = [model.weights()[n] for n in range(3)]
        for old, new in zip(before[: len(names)], names, strict=True):
            np.testing.assert_array_equal(old, new)
        assert all(np.isfinite(array).all() for array in after)
        step(Tensor(GOOD).realize()).item()


def test_replays_with_a_bad_index_leave_arguments_and_tensors_outside() -> None:
    outside = numbers()

    @TinyJit
    def put(x: Tensor, index: Tensor) -> Tensor:
        x[index] = 7.0
        outside[index] = 8.0
        return (x + outside).realize()

    x = numbers()
    for n in range(3):
        put(x, Tensor([n]).realize())
    x, old = numbers(), outside.tolist()
    with pytest.raises(AxisError, match="index 3"):
        put(x, Tensor([3]).realize())
    assert (x.tolist(), outside.tolist()) == ([1, 2, 3], old)
    put(x, Tensor([0]).realize())
    assert x.tolist() == [7, 2, 3]
