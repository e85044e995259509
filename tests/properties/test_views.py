"""Views and copies: random programs against a model of aliasing in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from glassgrad import Tensor, TinyJit


class Model(NamedTuple):
    """The model of a tensor: a memory, and indices of its elements."""

    memory: np.ndarray
    indices: np.ndarray

    @classmethod
    def of(cls, array: np.ndarray) -> Model:
        return cls(array.copy().reshape(-1), np.arange(array.size).reshape(array.shape))

    def read(self) -> np.ndarray:
        return self.memory[self.indices]

    def write(self, values: Any) -> None:
        self.memory[self.indices] = values


VIEWS: list[Callable[[Any], Any]] = [
    lambda x: x.reshape(-1),
    lambda x: x.reshape(x.shape),
    lambda x: x.T if x.ndim == 2 else x.reshape(1, *x.shape),
    lambda x: x.T.reshape(-1) if x.ndim == 2 else x.reshape(-1, 1),
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
    """Views, copies, writes and reads in any order; NumPy writes to shared memory."""

    def __init__(self) -> None:
        super().__init__()
        array = np.arange(6, dtype=np.float32).reshape(2, 3)
        self.theirs = array * 10
        self.doubled = {s: TinyJit(lambda x: x * 2) for s in [(2, 3), (3, 2), (6,)]}
        self.shared = Model.of(self.theirs)
        self.rows: list[tuple[Tensor, Model]] = [
            (Tensor(array), Model.of(array)),
            (Tensor.from_memory(self.theirs), self.shared),
        ]

    def row(self, number: int) -> tuple[Tensor, Model]:
        return self.rows[number % len(self.rows)]

    @rule(number=pick, kind=pick)
    def view(self, number: int, kind: int) -> None:
        tensor, model = self.row(number)
        move = VIEWS[kind % len(VIEWS)]
        self.rows.append((move(tensor), Model(model.memory, move(model.indices))))

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
        Model(model.memory, model.indices[0]).write(-5.0)

    @rule(number=pick)
    def realize(self, number: int) -> None:
        self.row(number)[0].realize()

    @rule(number=pick)
    def delete(self, number: int) -> None:
        if len(self.rows) > 1:
            del self.rows[number % len(self.rows)]

    @rule(number=pick)
    def write_by_numpy(self, number: int) -> None:
        tensor, model = self.row(number)
        array = np.asarray(tensor)
        if np.shares_memory(array, np.asarray(tensor)):  # views without strides are copied
            self.compute_values()
            array[...] = 3.0
            model.write(3.0)

    @rule(number=pick)
    def write_to_shared_memory(self, number: int) -> None:
        self.compute_values()
        for memory in (self.theirs.reshape(-1), self.shared.memory):
            memory[number % 6] = -7.0

    def compute_values(self) -> None:
        """Realize all copies, so that they do not see the next write."""
        for tensor, _ in self.rows:
            tensor.realize()

    @rule(number=pick)
    def call(self, number: int) -> None:
        tensor, model = self.row(number)
        for double in 3 * [self.doubled.get(tensor.shape)]:
            if double is None:
                return
            assert double(tensor).tolist() == (model.read() * 2).tolist()

    @rule(number=pick)
    def read(self, number: int) -> None:
        tensor, model = self.row(number)
        assert tensor.tolist() == model.read().tolist()

    def teardown(self) -> None:
        for tensor, model in self.rows:
            assert tensor.tolist() == model.read().tolist()
        self.rows.clear()  # the state machine outlives the test; later tests count live tensors


TestSharing = Sharing.TestCase
TestSharing.settings = settings(
    max_examples=40, stateful_step_count=20, deadline=None, derandomize=True
)


def test_repeated_writes_through_chunks() -> None:
    x = Tensor(np.zeros(6, np.float32)).realize()
    parts = x.chunk(3)
    for number in range(3):
        for part in parts:
            part += number + 1
    assert x.tolist() == [6.0] * 6


def test_repeated_writes_through_a_detached_view() -> None:
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
def test_writes_to_aliased_elements_are_refused(expand: Callable[[Any], Tensor]) -> None:
    x = Tensor([1.0, 2.0])
    view = expand(x)
    if x.numel() == view.numel():
        pytest.skip("no elements are aliased")
    with pytest.raises(ValueError, match="shows elements more than once"):
        view += 1
    assert x.tolist() == [1.0, 2.0]


def test_tensors_copy_arrays() -> None:
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


def test_clones_have_separate_memories() -> None:
    x = Tensor([1.0, 2.0])
    a, b = x.clone(), x.clone()
    Tensor.realize(a, b)
    np.asarray(a)[:] = 0
    assert (a.tolist(), b.tolist()) == ([0.0, 0.0], [1.0, 2.0])


def test_a_part_of_a_file_is_written_before_the_file_exists(tmp_path: Any) -> None:
    t = Tensor([0, 1, 2, 3]).to(f"DISK:{tmp_path / 'f'}")
    t[1:3].assign(Tensor([7, 8])).realize()
    assert t.tolist() == [0, 7, 8, 3]


MOVES: list[Callable[[Any], Any]] = [
    lambda x: x.reshape(2, 3)[1],
    lambda x: x[::2],
    lambda x: x[::-1],
    lambda x: x.reshape(2, 3).T,
    lambda x: x.reshape(2, 3).T.reshape(-1),  # not expressible by strides: a copy
]


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("source", ["array", "dlpack", "shared"])
def test_a_realized_view_sees_writes_of_others(move: Callable[[Any], Any], source: str) -> None:
    numbers = np.arange(6, dtype=np.float32)
    if source == "shared":
        x = Tensor(numbers)
        numbers = np.asarray(x)
    else:
        x = Tensor.from_memory(numbers) if source == "array" else Tensor.from_dlpack(numbers)
    view = move(x)
    double = TinyJit(lambda x: x * 2)
    copy = view * 10
    reads: list[Callable[[], Any]] = [
        lambda: view.tolist(),
        lambda: view.numpy().tolist(),
        lambda: view.realize().tolist(),
        lambda: (double(view) / 2).tolist(),
        lambda: (view + 0).tolist(),
        lambda: np.asarray(view).tolist(),
    ]
    copy.realize()
    before = move(numbers).tolist()
    for number, read in enumerate(2 * reads):
        numbers[:] = np.arange(6) * number - 1
        assert read() == move(numbers).tolist()
    assert copy.tolist() == (np.array(before) * 10).tolist()


def test_a_view_that_outlives_its_tensor_still_shares() -> None:
    numbers = np.arange(4, dtype=np.float32)
    view = Tensor.from_memory(numbers)[1:]
    view += 1
    assert view.tolist() == [2.0, 3.0, 4.0]
    assert numbers.tolist() == [0.0, 2.0, 3.0, 4.0]
    numbers[3] = 9
    assert view.tolist() == [2.0, 3.0, 9.0]


def test_copies_of_a_realized_view_keep_the_old_contents() -> None:
    numbers = np.arange(4, dtype=np.float32)
    x = Tensor.from_memory(numbers)
    view = x[1:].realize()
    before, same = view * 10, view.float()
    x += 1
    view += 1
    assert numbers.tolist() == [1.0, 3.0, 4.0, 5.0]
    assert before.tolist() == [10.0, 20.0, 30.0]
    assert same.tolist() == [1.0, 2.0, 3.0]
    assert view.tolist() == [3.0, 4.0, 5.0]


def test_gradients_flow_through_a_realized_view_of_shared_memory() -> None:
    x = Tensor.from_memory(np.arange(4, dtype=np.float32))
    view = x[1:].realize()
    (view * view).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [0.0, 2.0, 4.0, 6.0]


def test_captures_copy_the_views_that_they_return() -> None:
    numbers = np.arange(4, dtype=np.float32)
    whole = Tensor.from_memory(numbers)
    outside = whole[2:].realize()

    @TinyJit
    def f(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        inside = x[1:].realize()
        return inside, inside.sum() + outside.sum() + y

    for number in range(4):
        numbers[3] = number
        array = np.full(3, number, np.float32)
        part, total = f(Tensor.from_memory(array), Tensor([1.0]))
        assert total.tolist() == [2 * number + 2 + number + 1]
        array[1] = 77
        assert part.tolist() == [number, number]


def test_a_copy_shared_with_numpy_does_not_see_later_writes() -> None:
    x = Tensor(np.arange(3, dtype=np.float32))
    same = x**1
    x[0] = -5.0
    array = np.asarray(same)
    x.realize()
    array[...] = 3.0
    assert (x.tolist(), same.tolist()) == ([-5.0, 1.0, 2.0], [3.0, 3.0, 3.0])
