"""TinyJit: replays equal the function, and what a replay could not know is an error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from glassgrad import Context, GlobalCounters, Tensor, TinyJit, jit, nn
from glassgrad.base.errors import CaptureError
from glassgrad.base.events import listen
from glassgrad.nn import optim, state

ON_COMPILED_BACKEND = True


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return Tensor(np.random.default_rng(seed).standard_normal(shape, np.float32)).realize()


def test_a_thousand_replays_with_fresh_inputs_equal_the_function_bit_for_bit() -> None:
    def f(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return (x @ y).relu().softmax(), x.sum(0) * y.mean()

    captured = jit(f)
    for seed in range(1000):
        x, y = numbers(3, 4, seed=seed), numbers(4, 5, seed=seed + 5000)
        for found, wanted in zip(captured(x, y), f(x, y), strict=True):
            assert found.numpy().tobytes() == wanted.numpy().tobytes()


def test_a_replay_enters_no_stage_and_is_one_call() -> None:
    @TinyJit
    def f(x: Tensor) -> Tensor:
        y = (x + 1).realize()
        return (y * y.sum()).realize()

    for _ in range(2):
        f(numbers(7))
    stages: list[str] = []
    with listen(lambda event: stages.append(type(event).__name__)):
        GlobalCounters.reset()
        x = numbers(7, seed=3)
        found = f(x)
    assert "StageEntered" not in stages
    assert GlobalCounters.kernel_count >= 2
    y = x.numpy() + 1
    np.testing.assert_allclose(found.numpy(), y * y.sum(), rtol=1e-5)


@dataclass
class Batch:
    image: Tensor
    labels: list[Tensor]


class Pair(NamedTuple):
    left: Tensor
    right: Tensor


def test_arguments_and_results_may_be_nested() -> None:
    @TinyJit
    def f(batch: Batch, extra: dict[str, Any], *, scale: Tensor) -> dict[str, Any]:
        total = batch.image + batch.labels[0] + extra["pair"].right
        return {"sum": total * scale, "rest": [Pair(total - 1, total), 7, None]}

    for n in range(4):
        batch = Batch(Tensor([1.0 * n]), [Tensor([2.0])])
        found = f(batch, {"pair": (Pair(Tensor([0.0]), Tensor([10.0 * n])))}, scale=Tensor([2.0]))
        assert found["sum"].tolist() == [2 * (11.0 * n + 2)]
        assert found["rest"][0].left.tolist() == [11.0 * n + 1]
        assert found["rest"][1:] == [7, None]


def test_returned_tensors_stay_what_they_were() -> None:
    @TinyJit
    def f(x: Tensor) -> Tensor:
        return x * 2

    kept = [f(Tensor([float(n)])) for n in range(6)]
    assert [found.tolist() for found in kept] == [[2.0 * n] for n in range(6)]
    seen = [f(Tensor([float(n)])).numpy() for n in range(6)]
    assert [found.tolist() for found in seen] == [[2.0 * n] for n in range(6)]
    lazy = [f(Tensor([float(n)])) + 1 for n in range(6)]
    assert [found.tolist() for found in lazy] == [[2.0 * n + 1] for n in range(6)]


def test_parameters_are_updated_in_place() -> None:
    weight = Tensor([1.0, 2.0]).realize()

    @TinyJit
    def step(x: Tensor) -> Tensor:
        weight.assign(weight + x)
        return (weight * 10).realize(weight)

    for n in range(1, 6):
        assert step(Tensor([1.0, 1.0])).tolist() == [10 * (1.0 + n), 10 * (2.0 + n)]
        assert weight.tolist() == [1.0 + n, 2.0 + n]
        assert (weight + 1).tolist() == [2.0 + n, 3.0 + n]


def test_replays_read_parameters_written_in_between() -> None:
    weight = Tensor([1.0, 2.0]).realize()

    @TinyJit
    def f(x: Tensor) -> Tensor:
        return x + weight

    for n in range(5):
        weight.assign(Tensor([n, n + 1.0]))
        assert f(Tensor([1.0, 1.0])).tolist() == [n + 1.0, n + 2.0]


def test_expressions_of_what_a_replay_overwrote_are_refused() -> None:
    weight = Tensor([1.0, 2.0]).realize()

    @TinyJit
    def step() -> None:
        weight.assign(weight + 1).realize()

    for _ in range(3):
        step()
    before = weight * 1.0 + 3
    step()
    with pytest.raises(CaptureError, match="has been overwritten"):
        before.tolist()


def test_inputs_may_be_written_and_returned() -> None:
    @TinyJit
    def f(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x.assign(x + y).realize()
        return x, y, x.reshape(2, 1)

    for n in range(5):
        x, y = Tensor([1.0, 2.0]).realize(), Tensor([float(n), 1.0]).realize()
        same, other, moved = f(x, y)
        assert same is x and other is y
        assert x.tolist() == [1.0 + n, 3.0]
        assert moved.tolist() == [[1.0 + n], [3.0]]


def test_the_same_tensor_may_be_passed_twice() -> None:
    @TinyJit
    def f(x: Tensor, y: Tensor) -> Tensor:
        x.assign(x + 1).realize()
        return x * 10 + y

    def plain(x: Tensor, y: Tensor) -> Tensor:
        return f.fxn(x, y)

    for n in range(6):
        x, y, z = (Tensor([float(n)]).realize() for _ in range(3))
        expected = plain(z, z if n % 2 else y).tolist()
        assert f(x, x if n % 2 else y).tolist() == expected


def test_views_of_one_array_may_be_passed() -> None:
    @TinyJit
    def f(x: Tensor, y: Tensor) -> Tensor:
        return x - y

    raw = np.arange(20, dtype=np.float32)
    for n in range(5):
        x, y = Tensor.from_memory(raw[n : n + 4]), Tensor.from_memory(raw[n + 5 : n + 9])
        assert f(x, y).tolist() == [-5] * 4
        assert f(Tensor.from_memory(raw[n : n + 8 : 2]), y).tolist() == [-5 + i for i in range(4)]


def test_constants_among_the_arguments_are_captured_one_by_one() -> None:
    @TinyJit
    def f(x: Tensor, n: int, mode: str = "add") -> Tensor:
        return x + n if mode == "add" else x * n

    for _ in range(3):
        for n in (2, 3, 2.0, True):
            assert f(Tensor([5.0]), n).item() == 5.0 + n
            assert f(Tensor([5.0]), n, mode="times").item() == 5.0 * n


def test_in_strict_mode_another_constant_is_an_error() -> None:
    f = TinyJit(lambda x, n: x + n, strict=True)
    for _ in range(3):
        f(Tensor([1.0]), 2)
    with pytest.raises(CaptureError, match="a constant or the shape"):
        f(Tensor([1.0]), 3)


def test_random_numbers_advance_on_each_replay() -> None:
    def f(x: Tensor) -> Tensor:
        return Tensor.rand(4) + x + Tensor.randn(4)

    with Tensor.train():
        for function in (f, lambda x: x.dropout(0.5)):
            captured, x = jit(function), numbers(4)
            Tensor.manual_seed(5)
            wanted = [function(x).tolist() for _ in range(6)]
            Tensor.manual_seed(5)
            assert [captured(x).tolist() for _ in range(6)] == wanted
            Tensor.manual_seed(5)
            assert [captured(x).tolist() for _ in range(6)] == wanted
            assert len({tuple(found) for found in wanted}) == 6


def test_training_mode_is_part_of_a_capture() -> None:
    f = jit(lambda x: x.dropout(0.999))
    x = Tensor.ones(64).realize()
    for _ in range(3):
        assert f(x).tolist() == [1.0] * 64
        with Tensor.train():
            assert f(x).tolist() != [1.0] * 64


@pytest.mark.parametrize("look", [lambda t: t.item(), lambda t: t.numpy(), lambda t: t.tolist()])
def test_looking_at_a_value_inside_of_a_capture_is_an_error_that_shows_where(look: Any) -> None:
    @TinyJit
    def f(x: Tensor) -> Tensor:
        total = x.sum()
        look(total)
        return x / total

    f(Tensor([1.0, 2.0]))
    with pytest.raises(CaptureError, match="looks at a value") as caught:
        f(Tensor([1.0, 2.0]))
    assert "test_function.py" in str(caught.value)


@pytest.mark.parametrize(
    "other",
    [
        lambda: Tensor([1.0, 2.0, 3.0]),
        lambda: Tensor([1, 2]),
        lambda: Tensor([1.0, 2.0], device="PYTHON"),
    ],
)
def test_other_shapes_dtypes_and_devices_have_captures_of_their_own(other: Any) -> None:
    f = jit(lambda x: x + 1)
    for _ in range(3):
        for x in (Tensor([1.0, 2.0]), other()):
            found = f(x)
            assert found.tolist() == (x + 1).tolist()
            assert (found.dtype, found.device) == (x.dtype, x.device)
    assert f.count_captures() == 2
    strict = TinyJit(lambda x: x + 1, strict=True)
    strict(Tensor([1.0, 2.0]))
    with pytest.raises(CaptureError, match="the shape of a tensor among the arguments"):
        strict(other())


def test_data_that_changes_inside_is_reported_with_its_line() -> None:
    count = iter(range(9))

    @TinyJit
    def f(x: Tensor) -> Tensor:
        return x + Tensor([float(next(count)), 1.0])

    f(Tensor([1.0, 2.0]))
    with pytest.raises(CaptureError, match="became a tensor inside") as caught:
        f(Tensor([1.0, 2.0]))
    assert "return x + Tensor([float(next(count)), 1.0])" in str(caught.value)


@pytest.mark.parametrize(
    "use", [lambda x, n: x * n, lambda x, n: x + Tensor(n), lambda x, n: x.full_like(n)]
)
def test_numbers_that_change_inside_are_reported_with_their_line(use: Any) -> None:
    count = iter((0.5, 0.25, 0.125))

    @TinyJit
    def f(x: Tensor) -> Tensor:
        return use(x, next(count)) + 1

    f(Tensor([1.0, 2.0]))
    with pytest.raises(CaptureError, match=r"0\.25, which was 0\.5") as caught:
        f(Tensor([1.0, 2.0]))
    assert "test_function.py" in str(caught.value)


def test_constant_data_inside_is_fine() -> None:
    @TinyJit
    def f(x: Tensor) -> Tensor:
        return x + Tensor([1.0, 5.0]) + Tensor(2.0) + Tensor.arange(2)

    for n in range(4):
        assert f(Tensor([n, 0.0])).tolist() == [3.0 + n, 8.0]


def test_a_replaced_outside_tensor_is_captured_again() -> None:
    state = {"scale": Tensor([2.0]).realize()}

    @TinyJit
    def f(x: Tensor) -> Tensor:
        return x * state["scale"]

    for _ in range(3):
        assert f(Tensor([3.0])).tolist() == [6.0]
    state["scale"] = Tensor([5.0]).realize()
    for _ in range(3):
        assert f(Tensor([3.0])).tolist() == [15.0]


def test_lazy_arguments_and_constants_are_inputs() -> None:
    f = jit(lambda x, y: x * y)
    for n in range(5):
        assert f(Tensor([1.0]) + n, Tensor(float(n)).expand(1)).tolist() == [(1.0 + n) * n]


def test_stored_gradients_follow_the_replays() -> None:
    weight = Tensor([1.0, 2.0], requires_grad=True).realize()

    @TinyJit
    def f(x: Tensor) -> Tensor:
        weight.grad = None
        loss = (weight * x * x).sum()
        loss.backward()
        assert weight.grad is not None
        return loss.realize(weight.grad)

    for n in range(5):
        f(Tensor([1.0 * n, 2.0]))
        assert weight.grad is not None and weight.grad.tolist() == [1.0 * n * n, 4.0]


def test_lazy_tensors_left_behind_are_refused_after_a_replay() -> None:
    left: list[Tensor] = []

    @TinyJit
    def f(x: Tensor) -> Tensor:
        left[:] = [x * 3]
        return x + 1

    for n in range(3):
        f(Tensor([float(n)]))
    with pytest.raises(CaptureError, match="has been overwritten"):
        left[0].tolist()


def test_training_a_network_with_a_capture_is_training_it_without() -> None:
    def train(is_captured: bool) -> tuple[list[float], list[Any]]:
        Tensor.manual_seed(3)
        layers = [nn.Linear(4, 8), nn.Linear(8, 3)]
        optimizer = optim.Adam(state.get_parameters(layers), lr=0.05)

        @Context(TRAINING=1)
        def step(x: Tensor, y: Tensor) -> Tensor:
            optimizer.zero_grad()
            logits = layers[1](layers[0](x).relu().dropout(0.2))
            loss = logits.sparse_categorical_crossentropy(y).backward()
            return loss.realize(*optimizer.schedule_step())

        run = TinyJit(step) if is_captured else step
        losses = [run(numbers(16, 4, seed=n), Tensor([n % 3] * 16)).item() for n in range(12)]
        return losses, [p.tolist() for p in state.get_parameters(layers)]

    assert train(True) == train(False)
