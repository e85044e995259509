"""Sizes, offsets and masks that are known only at launch: one plan serves all values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassgrad import Tensor, TinyJit, Variable
from glassgrad.base.errors import CaptureError, ShapeError
from glassgrad.base.events import StageEntered, listen

ON_COMPILED_BACKEND = True
ROWS = np.random.default_rng(0).standard_normal((12, 6), np.float32)


def rows(first: Any, behind: Any = None) -> Tensor:
    return Tensor(ROWS)[first:behind] if behind is not None else Tensor(ROWS)[:first]


CASES = {
    "sum": (lambda t: t.sum(0), lambda a: a.sum(0)),
    "all": (lambda t: t.sum(), lambda a: a.sum()),
    "mean": (lambda t: t.mean(0), lambda a: a.mean(0)),
    "var": (lambda t: t.var(0, correction=0), lambda a: a.var(0)),
    "max": (lambda t: t.max(0), lambda a: a.max(0)),
    "elementwise": (lambda t: t * 2 + 1, lambda a: a * 2 + 1),
    "exp of rows": (lambda t: t.exp() / t.exp().sum(0), lambda a: np.exp(a) / np.exp(a).sum(0)),
    "transposed": (lambda t: t.T + 1, lambda a: a.T + 1),
    "product inside": (lambda t: t.T @ t, lambda a: a.T @ a),
    "product outside": (lambda t: t @ t.T, lambda a: a @ a.T),
    "flipped": (lambda t: t.flip(0) * 1, lambda a: a[::-1]),
    "padded": (lambda t: t.pad(((1, 2), (0, 1))), lambda a: np.pad(a, ((1, 2), (0, 1)))),
    "columns": (lambda t: t[:, 1:3] + 0, lambda a: a[:, 1:3]),
    "new axes": (lambda t: t.unsqueeze(1).unsqueeze(0) + 0, lambda a: a[None, :, None]),
    "joined": (lambda t: t.flatten() * 2, lambda a: a.reshape(-1) * 2),
    "gathered": (lambda t: t[:, [5, 0, 2]], lambda a: a[:, [5, 0, 2]]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_method_of_rows_that_a_variable_counts(name: str) -> None:
    compute, wanted = CASES[name]
    n = Variable("n", 1, 12)
    for value in (5, 12, 1, 7):
        found = compute(rows(n.bind(value)))
        np.testing.assert_allclose(found.numpy(), wanted(ROWS[:value]), rtol=1e-5, atol=1e-6)


@given(st.integers(0, 8), st.integers(1, 4))
def test_offsets_and_sizes_may_both_be_variables(start: int, count: int) -> None:
    a, n = Variable("a", 0, 8).bind(start), Variable("n", 1, 4).bind(count)
    part = rows(a, a + n)
    assert part.shape[0] == a + n - a == n
    assert np.array_equal((part * 1).numpy(), ROWS[start : start + count])
    assert np.array_equal(Tensor(ROWS)[a].numpy(), ROWS[start])


def test_a_variable_is_a_number_in_expressions_and_masks() -> None:
    p = Variable("p", 0, 9)
    for value in (0, 4, 9):
        at = p.bind(value)
        x = Tensor([1.0, 2.0])
        assert (x * at + (at + 1)).tolist() == [value + value + 1, 3 * value + 1]
        assert (Tensor.arange(10) < at).tolist() == [i < value for i in range(10)]
        assert Tensor.arange(at + 1).sum().item() == sum(range(value + 1))
        assert Tensor.ones(at + 1, 3).sum().item() == 3 * (value + 1)


def test_other_values_enter_no_stage() -> None:
    x, n = Tensor(ROWS).realize(), Variable("m", 1, 12)

    def compute(value: int) -> np.ndarray:
        part = x[: n.bind(value)]
        return (part.softmax(0) @ part.T.sum(1)).numpy()

    first = compute(3)
    stages: list[Any] = []
    with listen(stages.append):
        second = compute(9)
    assert not any(isinstance(event, StageEntered) for event in stages)
    assert (first.shape, second.shape) == ((3,), (9,))


def test_writing_at_a_variable_index() -> None:
    memory, p = Tensor.zeros(5, 2).contiguous().realize(), Variable("p", 0, 4)
    for value in (3, 0, 4):
        at = p.bind(value)
        memory[at : at + 1].assign(Tensor([[value, 1.0]])).realize()
    assert memory.tolist() == [[0, 1], [0, 0], [0, 0], [3, 1], [4, 1]]
    memory[p.bind(1)] = Tensor([7.0, 7.0])
    assert memory[1].tolist() == [7, 7]


def test_decoding_with_a_cache_is_captured_once() -> None:
    size, heads, width = 9, 2, 4
    rng = np.random.default_rng(1)
    cache = Tensor.zeros(2, heads, size, width).contiguous().realize()
    pos = Variable("pos", 0, size - 1)
    calls = []

    @TinyJit
    def step(q: Tensor, k: Tensor, v: Tensor, at: Any) -> Tensor:
        calls.append(at)
        cache[:, :, at : at + 1].assign(Tensor.stack(k, v)).realize()
        keys, values = cache[0][:, : at + 1], cache[1][:, : at + 1]
        return q.scaled_dot_product_attention(keys, values).realize()

    seen: list[tuple[np.ndarray, np.ndarray]] = []
    for i in range(size):
        q, k, v = (rng.standard_normal((heads, 1, width)).astype(np.float32) for _ in range(3))
        seen.append((k, v))
        found = step(Tensor(q), Tensor(k), Tensor(v), pos.bind(i)).numpy()
        keys = np.concatenate([pair[0] for pair in seen], 1)
        values = np.concatenate([pair[1] for pair in seen], 1)
        scores = q @ keys.transpose(0, 2, 1) / 2
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        np.testing.assert_allclose(found, weights @ values, rtol=1e-5, atol=1e-6)
    assert len(calls) == 4  # the last two are checks


def test_a_variable_that_is_no_argument_is_refused_by_a_capture() -> None:
    n = Variable("n", 1, 12)
    f = TinyJit(lambda x: x[: n.bind(3)].sum(0))
    f(Tensor(ROWS))
    with pytest.raises(CaptureError, match="variable n, which is none of its arguments"):
        f(Tensor(ROWS))


@pytest.mark.parametrize("value", [0, 13, -1, 2.5, True, None])
def test_values_out_of_range_are_refused(value: Any) -> None:
    with pytest.raises(ShapeError, match="n is a whole number from 1 to 12"):
        Variable("n", 1, 12).bind(value)


def test_a_variable_has_one_value_at_a_time() -> None:
    n = Variable("n", 1, 12)
    with pytest.raises(ShapeError, match="n is bound to 3 and to 4"):
        (rows(n.bind(3)).sum(0) + rows(n.bind(4)).sum(0)).tolist()


def test_a_variable_without_a_value_cannot_be_computed_with() -> None:
    with pytest.raises(ShapeError, match="n has no value"):
        rows(Variable("n", 1, 12)).numpy()


def test_a_slice_that_may_leave_the_axis_is_checked_at_launch() -> None:
    n = Variable("n", 1, 13)
    assert np.array_equal(rows(n.bind(12)).numpy(), ROWS)
    with pytest.raises(IndexError, match="slice 0:13 is out of range for axis 0 of size 12"):
        rows(n.bind(13))


def test_prompts_are_read_at_any_offset() -> None:
    weight, start = Tensor(ROWS).realize(), Variable("start", 0, 11)
    read = TinyJit(lambda at: (weight[at : at + 3] * 2).realize())
    for value in (0, 4, 9, 2):
        assert np.array_equal(read(start.bind(value)).numpy(), ROWS[value : value + 3] * 2)
    with pytest.raises(IndexError, match="slice 10:13 is out of range for axis 0 of size 12"):
        read(start.bind(10))
    assert np.array_equal(read(start.bind(1)).numpy(), ROWS[1:4] * 2)


def test_a_replay_that_is_out_of_range_writes_nothing() -> None:
    memory, at = Tensor.zeros(6).contiguous().realize(), Variable("at", 0, 5)

    @TinyJit
    def step(at: Any) -> Tensor:
        memory.assign(memory + 1)
        memory[at : at + 2] = Tensor([10.0, 20.0])
        return memory[at + 1].realize()

    for value in (0, 2, 4):
        assert step(at.bind(value)).item() == 20.0
    before = memory.tolist()
    with pytest.raises(IndexError, match="slice 5:7 is out of range for axis 0 of size 6"):
        step(at.bind(5))
    assert memory.tolist() == before
    assert step(at.bind(1)).item() == 20.0


NUMBERS = {
    "full": lambda x, n: Tensor.full((2,), n) + x[0],
    "power": lambda x, n: (x.abs() + 1) ** n,
    "base": lambda x, n: n**x,
    "product": lambda x, n: n * x * (n % 3 + 1),
    "clip": lambda x, n: x.clip(-n, n - 2),
    "comparison": lambda x, n: (x * 9 < n).where(n, 0),
    "line": lambda x, n: Tensor.arange(n, n + 4) + Tensor.linspace(0, n, 4),
    "mean": lambda x, n: Tensor.arange(n).mean() + x[:n].var(correction=0),
    "tensor": lambda x, n: Tensor(n) * x + Tensor([n, 1]).sum(),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_read_at_launch_and_one_plan_serves_all(name: str) -> None:
    compute, x, n = NUMBERS[name], Tensor(ROWS[:, 0].copy()).realize(), Variable("n", 1, 12)
    plans = 0
    stages: list[Any] = []
    captured = TinyJit(lambda n: compute(x, n).realize())
    for value in (3, 12, 1, 7):
        with listen(stages.append):
            found = compute(x, n.bind(value)).numpy()
        if value == 3:
            plans = sum(isinstance(event, StageEntered) for event in stages)
        wanted = compute(x, value).numpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
        np.testing.assert_allclose(captured(n.bind(value)).numpy(), wanted, rtol=1e-5)
    assert plans == sum(isinstance(event, StageEntered) for event in stages)


def test_what_is_computed_of_rows_may_be_used_with_rows_that_are_not() -> None:
    n = Variable("n", 1, 12)
    for value in (3, 12, 1):
        part = rows(n.bind(value))
        twice = part * 2
        after = twice.exp()  # reads `twice`, which is in memory before this is computed
        twice.realize()
        assert twice.shape == (value, 6)
        np.testing.assert_allclose((after + part).numpy(), np.exp(2 * ROWS[:value]) + ROWS[:value],
                                   rtol=1e-5)  # fmt: skip


@pytest.mark.parametrize(
    "look",
    [
        int, float, hash, range, lambda n: [0] * n, lambda n: np.zeros(n), lambda n: f"{n:3d}",
        lambda n: len(Tensor(ROWS)[:n]), lambda n: n.val, lambda n: n.unbind(),
    ],
)  # fmt: skip
def test_a_captured_function_cannot_look_at_a_value(look: Any) -> None:
    def function(n: Any) -> Tensor:
        look(n)
        return (Tensor.ones(3) * n).realize()

    captured, n = TinyJit(function), Variable("n", 1, 12)
    captured(n.bind(2))
    with pytest.raises(CaptureError, match="reads the value of n, but replays would not read"):
        captured(n.bind(3))


def test_sizes_that_a_captured_function_cannot_know_or_return() -> None:
    x, n = Tensor(ROWS).realize(), Variable("n", 1, 12)
    for function, words in (
        (lambda n: x[:n].sort(0)[0], "cannot call sort of a tensor of shape .n, 6."),
        (lambda n: x[:n][[0, 0]], "cannot call indexing of a tensor of shape .n, 6."),
        (lambda n: Tensor.rand(n), "cannot call rand of n"),
        (lambda n: (x, n), "cannot return n: replays would not change it"),
        (lambda n: (x, x[:n].shape), "cannot return n"),
    ):
        captured = TinyJit(function)
        with pytest.raises(CaptureError, match=words):
            for value in (2, 3):
                captured(n.bind(value))


def test_a_reshape_that_mixes_a_variable_with_other_axes_is_refused() -> None:
    n = Variable("n", 1, 12).bind(4)
    with pytest.raises(ShapeError, match="would depend on n"):
        rows(n).T.reshape(6 * n).numpy()


def test_gradients_flow_through_variable_sizes() -> None:
    n = Variable("n", 1, 12)
    for value in (2, 9):
        x = Tensor(ROWS)
        (grad,) = (x[: n.bind(value)] * 3).sum().gradient(x)
        wanted = np.zeros_like(ROWS)
        wanted[:value] = 3
        assert np.array_equal(grad.numpy(), wanted)


def test_padding_and_joining_by_variable_sizes() -> None:
    data = np.arange(1, 7, dtype=np.float32)
    x, n = Tensor(data).realize(), Variable("n", 1, 4)
    for value in (2, 4, 1):
        count = n.bind(value)
        padded = x.pad(((count, 1),)).numpy()
        np.testing.assert_array_equal(padded, np.pad(data, (value, 1)))
        joined = x[:count].cat(x[4:], x[count:]).numpy()
        np.testing.assert_array_equal(joined, np.r_[data[:value], data[4:], data[value:]])


def test_a_size_may_be_0() -> None:
    n = Variable("n", 0, 12)
    for value in (0, 4, 12):
        part = rows(n.bind(value))
        assert part.softmax(0).shape[1] == 6 and part.softmax(0).numpy().shape == (value, 6)
        np.testing.assert_allclose(part.sum(0).numpy(), ROWS[:value].sum(0), rtol=1e-5, atol=1e-6)
        assert part.cumsum(0).numpy().shape == (value, 6)
        assert np.array_equal(Tensor.eye(n.bind(value)).numpy(), np.eye(value, dtype=np.float32))
    with pytest.raises(IndexError, match="slice 0:1 is out of range for axis 0 of size 0"):
        rows(n.bind(0)).max(0)  # there is no largest element


@pytest.mark.parametrize("is_together", [False, True])
def test_what_waits_for_rows_that_are_overwritten_sees_them_as_they_were(is_together: bool) -> None:
    n = Variable("n", 1, 12)
    for value in (3, 12, 1):
        x = Tensor(ROWS).realize()
        part = x[: n.bind(value)]
        twice = part * 2
        after, total = twice + 1, (twice + part).sum(0)
        twice.realize()
        twice.assign(twice * 0 + 7)
        if is_together:
            Tensor.realize(twice, after, total)
        np.testing.assert_allclose(after.numpy(), ROWS[:value] * 2 + 1, rtol=1e-6)
        np.testing.assert_array_equal(twice.numpy(), np.full((value, 6), 7.0, np.float32))
        np.testing.assert_allclose(total.numpy(), 3 * ROWS[:value].sum(0), rtol=1e-5, atol=1e-5)
