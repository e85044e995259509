"""Offsets of slices are launch arguments, so a loop over slices compiles once."""

from __future__ import annotations

import numpy as np
import pytest

from glassgrad import Tensor, nn

ON_COMPILED_BACKEND = True


def data(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


def test_a_loop_over_batches_compiles_its_step_once(written: list[object]) -> None:
    array, labels = data(400, 7), np.arange(400) % 3
    x, y = Tensor(array).realize(), Tensor(labels.astype(np.int32)).realize()
    model = [nn.Linear(7, 8), Tensor.relu, nn.Linear(8, 3)]
    optimizer = nn.optim.SGD(nn.state.get_parameters(model), lr=0.1)
    counts = []
    with Tensor.train():
        for start in range(0, 400, 40):
            part, wanted = x[start : start + 40], y[start : start + 40]
            loss = part.sequential(model).sparse_categorical_crossentropy(wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.item()
            counts.append(len(written))
    assert counts[1] > 0
    assert counts[-1] == counts[1]


@pytest.mark.parametrize(
    "part",
    [
        lambda x, i: x[i : i + 5],
        lambda x, i: x[i],
        lambda x, i: x[:, i : i + 3],
        lambda x, i: x.T[i],
        lambda x, i: x[i : i + 5].flip(0),
        lambda x, i: x[i : i + 6 : 2],
        lambda x, i: x[-1 - i],
        lambda x, i: x[i, 2],
        lambda x, i: x.reshape(-1)[i : i + 4],
        lambda x, i: x[i : i + 5] * x[2 * i : 2 * i + 5],
        lambda x, i: x[i : i + 5][1:3, 1],
    ],
)
def test_parts_are_right_wherever_they_begin_and_compile_once(written, part) -> None:
    array = data(32, 16)
    x = Tensor(array).realize()
    counts = []
    for i in range(1, 8):
        found = (part(x, i) * 2 + 1).sum()
        other = (part(x, i).exp()).numpy()
        expected = part(array, i) if "flip" not in str(part.__code__.co_names) else None
        if expected is not None:
            np.testing.assert_allclose(found.item(), (expected * 2 + 1).sum(), rtol=1e-4)
            np.testing.assert_allclose(other, np.exp(expected), rtol=1e-5)
        else:
            np.testing.assert_allclose(other, np.exp(array[i : i + 5][::-1]), rtol=1e-5)
            found.item()
        counts.append(len(written))
    assert counts[-1] == counts[0]


def test_parts_and_the_whole_in_one_graph_are_right() -> None:
    array = data(10, 3)
    x = Tensor(array).realize()
    for i in range(3):
        found = (x[i : i + 4].sum() + x.mean()).item()
        np.testing.assert_allclose(found, array[i : i + 4].sum() + array.mean(), rtol=1e-5)


def test_gradients_of_parts_go_where_the_part_was() -> None:
    x = Tensor(data(6)).realize()
    for i in range(4):
        x.grad = None
        (x[i : i + 2] * 3).sum().backward()
        expected = np.zeros(6, np.float32)
        expected[i : i + 2] = 3
        assert x.grad is not None
        np.testing.assert_array_equal(x.grad.numpy(), expected)


def test_gradients_through_parts_of_computed_values() -> None:
    w = Tensor(data(6), requires_grad=True).realize()
    for i in range(4):
        w.grad = None
        h = (w * 2).realize()
        (h[i : i + 2] * 3).sum().backward()
        expected = np.zeros(6, np.float32)
        expected[i : i + 2] = 6
        assert w.grad is not None
        np.testing.assert_array_equal(w.grad.numpy(), expected)


def test_parts_that_were_read_before_a_write_keep_their_value() -> None:
    array = data(8)
    x = Tensor(array.copy()).realize()
    model = array.copy()
    for i in range(3):
        old = x[i : i + 3] + 0  # a value, computed after the write
        before = model[i : i + 3].copy()
        x[i + 1 : i + 3] *= 2
        model[i + 1 : i + 3] *= 2
        np.testing.assert_array_equal(x.numpy(), model)
        np.testing.assert_array_equal(old.numpy(), before)
        np.testing.assert_array_equal((x[i : i + 3] + 1).numpy(), model[i : i + 3] + 1)


def test_moving_a_part_inside_of_its_tensor() -> None:
    for step in (1, 2, 3):
        model = data(12)
        x = Tensor(model.copy()).realize()
        for i in range(3):
            x[i : i + 4] = x[i + step : i + step + 4] * 2
            model[i : i + 4] = model[i + step : i + step + 4] * 2
        np.testing.assert_array_equal(x.numpy(), model)


def test_slices_computed_alone_have_memory_of_their_own() -> None:
    x = Tensor(data(8)).realize()
    part = x[2:5].clone().realize()
    x += 1
    x.realize()
    np.testing.assert_array_equal(part.numpy(), data(8)[2:5])
