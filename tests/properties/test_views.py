"""A tensor is a value or a view of one; a model of a few lines of NumPy says what each shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from glassgrad import Tensor


class Model(NamedTuple):
    """Elements of a memory: which of them a tensor shows."""

    memory: np.ndarray
    at: np.ndarray

    @classmethod
    def of(cls, array: np.ndarray) -> Model:
        return cls(array.copy().reshape(-1), np.arange(array.size).reshape(array.shape))

    def read(self) -> np.ndarray:
        return self.memory[self.at]

    def write(self, values: Any) -> None:
        self.memory[self.at] = values


VIEWS: list[Callable[[Any], Any]] = [
    lambda x: x.reshape(-1),
    lambda x: x.reshape(x.shape),
    lambda x: x.T if x.ndim == 2 else x.reshape(1, *x.shape),
    lambda x: x[: x.shape[0] - 1] if x.shape[0] > 1 else x[:],
    lambda x: x[::2],
    lambda x: x[::-1],
    lambda x: x[-1:],
]
VALUES: list[tuple[Callable[[Tensor], Tensor], Callable[[np.ndarray], np.ndarray]]] = [
    (lambda x: x.float(), np.copy),
    (lambda x: x**1, np.copy),
    (lambda x: x.clone(), np.copy),
    (lambda x: x.roll(0), np.copy),
    (lambda x: x.contiguous(), np.copy),
    (lambda x: x * 2, lambda x: x * 2),
    (lambda x: x.unsqueeze(0).sum(0), np.copy),
    (lambda x: x.unsqueeze(0).max(0), np.copy),
]
pick = st.integers(0, 1 << 20)


class Sharing(RuleBasedStateMachine):
    """Views, values, writes and computing in any order."""

    def __init__(self) -> None:
        super().__init__()
        array = np.arange(6, dtype=np.float32).reshape(2, 3)
        self.rows: list[tuple[Tensor, Model]] = [(Tensor(array), Model.of(array))]

    def row(self, number: int) -> tuple[Tensor, Model]:
        return self.rows[number % len(self.rows)]

    @rule(number=pick, kind=pick)
    def view(self, number: int, kind: int) -> None:
        tensor, model = self.row(number)
        move = VIEWS[kind % len(VIEWS)]
        self.rows.append((move(tensor), Model(model.memory, move(model.at))))

    @rule(number=pick, kind=pick)
    def value(self, number: int, kind: int) -> None:
        tensor, model = self.row(number)
        ours, theirs = VALUES[kind % len(VALUES)]
        self.rows.append((ours(tensor), Model.of(theirs(model.read()))))

    @rule(number=pick)
    def add(self, number: int) -> None:
        tensor, model = self.row(number)
        tensor += 1
        model.write(model.read() + 1)

    @rule(number=pick)
    def set_first(self, number: int) -> None:
        tensor, model = self.row(number)
        tensor[0] = -5.0
        Model(model.memory, model.at[0]).write(-5.0)

    @rule(number=pick)
    def realize(self, number: int) -> None:
        self.row(number)[0].realize()

    @rule(number=pick)
    def forget(self, number: int) -> None:
        if len(self.rows) > 1:
            del self.rows[number % len(self.rows)]

    @rule(number=pick)
    def write_from_outside(self, number: int) -> None:
        tensor, model = self.row(number)
        if 0 not in tensor.shape and len(set(np.diff(model.at.reshape(-1)))) <= 1:
            seen = np.asarray(tensor)
            mine = tensor._whole  # lazy values would see the write, and realized views would not
            for other in [t for t, _ in self.rows if mine is None or t._whole is not mine]:
                other.realize()
            seen[...] = 3.0
            model.write(3.0)

    @rule(number=pick)
    def look(self, number: int) -> None:
        tensor, model = self.row(number)
        assert tensor.tolist() == model.read().tolist()

    def teardown(self) -> None:
        for tensor, model in self.rows:
            assert tensor.tolist() == model.read().tolist()


TestSharing = Sharing.TestCase
TestSharing.settings = settings(
    max_examples=40, stateful_step_count=20, deadline=None, derandomize=True
)


def test_chunks_are_written_again_and_again() -> None:
    x = Tensor(np.zeros(6, np.float32)).realize()
    parts = x.chunk(3)
    for number in range(3):
        for part in parts:
            part += number + 1
    assert x.tolist() == [6.0] * 6


def test_detached_views_write_again_and_again() -> None:
    x = Tensor([1.0, 2.0]).realize()
    view = x.detach()
    view += 1
    view += 1
    assert x.tolist() == [3.0, 4.0]


def test_a_write_to_no_elements_keeps_earlier_writes() -> None:
    a = Tensor(np.array([1.5], np.float32)).realize()
    b = a.unsqueeze(1)
    before = b.asinh()
    b[0:1, 0:1] = 3
    b[1:1, 0:1] *= 2
    Tensor.realize(b, before)
    assert (b.tolist(), a.tolist()) == ([[3.0]], [3.0])
    assert before.item() == pytest.approx(np.arcsinh(1.5))
    empty = Tensor(np.zeros((0, 3), np.float32))
    empty += 1
    assert empty.tolist() == []


@pytest.mark.parametrize("dtype", ["uint32", "int32", "uint8", "uint16"])
def test_bitcasts_are_views(dtype: str) -> None:
    array = np.array([1.0, 2.0, 3.0], np.float32)
    x = Tensor(array)
    bits = x.bitcast(dtype)
    wanted = array.view(dtype).copy()
    wanted[1] += 1
    bits[1] = int(wanted[1])
    assert bits.tolist() == wanted.tolist()
    assert x.tolist() == wanted.view(np.float32).tolist()
    bits.assign(bits * 0)
    assert x.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("expand", [lambda x: x.expand(3, 2), lambda x: x.unfold(0, 2, 1)])
def test_elements_that_are_shown_twice_are_not_written(expand: Callable[[Any], Tensor]) -> None:
    x = Tensor([1.0, 2.0])
    view = expand(x)
    if x.numel() == view.numel():
        pytest.skip("nothing is shown twice")
    with pytest.raises(ValueError, match="shows elements more than once"):
        view += 1
    assert x.tolist() == [1.0, 2.0]


def test_an_array_is_copied_when_a_tensor_is_made() -> None:
    buffer = np.zeros(2, np.float32)
    kept = []
    for number in range(3):
        buffer[:] = number
        kept.append(Tensor(buffer) * 10)
    assert [t.tolist() for t in kept] == [[0.0, 0.0], [10.0, 10.0], [20.0, 20.0]]
    x = Tensor(buffer)
    x += 1
    x.realize()
    assert buffer.tolist() == [2.0, 2.0]


def test_two_clones_are_two_memories_for_others() -> None:
    x = Tensor([1.0, 2.0])
    a, b = x.clone(), x.clone()
    Tensor.realize(a, b)
    np.asarray(a)[:] = 0
    assert (a.tolist(), b.tolist()) == ([0.0, 0.0], [1.0, 2.0])


def test_a_part_of_a_file_is_written_before_the_file_was_made(tmp_path: Any) -> None:
    t = Tensor([0, 1, 2, 3]).to(f"DISK:{tmp_path / 'f'}")
    t[1:3].assign(Tensor([7, 8])).realize()
    assert t.tolist() == [0, 7, 8, 3]
