"""Values with late readers are computed a second time."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from support.compiler.schedules import memory, planned

from glassgrad import Tensor
from glassgrad.ir.stages import Schedule
from glassgrad.schedule.materialize import rematerialize

LAYERS, ROWS, WIDTH = 12, 2048, 512
SIZE = ROWS * WIDTH


def network(x: Tensor, weights: list[Tensor], activation: str = "gelu") -> Tensor:
    for weight in weights:
        x = getattr(x @ weight, activation)()
    return (x * x).sum()


def trained(activation: str = "gelu") -> Schedule:
    weights = [memory(WIDTH, WIDTH) for _ in range(LAYERS)]
    loss = network(memory(ROWS, WIDTH), weights, activation)
    return planned(loss, *loss.gradient(*weights))


def waiting(made: Schedule) -> int:
    """How many large values are alive when most of them are, without what is given."""
    given = {node for slots in made.buffers for node in slots} - {
        node for stored in made.stored for node in stored
    }
    large = {n for slots in made.buffers for n in slots if prod(n.shape) == SIZE} - given
    users = {n: [i for i, slots in enumerate(made.buffers) if n in slots] for n in large}
    steps = range(len(made.kernels))
    return max(sum(min(u) <= step <= max(u) for u in users.values()) for step in steps)


def test_activations_do_not_wait_for_the_gradient_of_the_next_layer() -> None:
    soon = rematerialize.MIN_DISTANCE // 2  # layers whose gradients do not come much later
    assert waiting(trained()) <= LAYERS + soon + 3  # what goes into each, and what is worked on


def test_relu_stores_its_result_and_not_its_input() -> None:
    assert waiting(trained("relu")) <= LAYERS + 2


def test_small_values_are_not_rematerialized(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rematerialize, "MIN_BYTES", 4 * SIZE + 1)
    assert waiting(trained()) >= 2 * LAYERS - 1


def test_a_rematerialized_value_shares_the_kernel_of_the_derivative(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = trained()
    monkeypatch.setattr(rematerialize, "MIN_BYTES", 4 * SIZE + 1)
    assert len(made.kernels) == len(trained().kernels)


@pytest.mark.parametrize("activation", ["gelu", "tanh", "silu", "exp2"])
def test_gradients_are_the_same_numbers(activation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    x = Tensor(rng.standard_normal((12, 8)).astype(np.float32) / 4)
    weights = [Tensor(rng.standard_normal((8, 8)).astype(np.float32) / 4) for _ in range(5)]
    statements = [g.numpy() for g in network(x, weights, activation).gradient(*weights)]
    monkeypatch.setattr(rematerialize, "MIN_BYTES", 0)
    monkeypatch.setattr(rematerialize, "MIN_DISTANCE", 2)
    again = [Tensor(w.numpy()) for w in weights]  # other nodes: nothing is found that was planned
    found = [g.numpy() for g in network(Tensor(x.numpy()), again, activation).gradient(*again)]
    for one, two in zip(statements, found, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-7)


def test_overwritten_values_are_read_before_the_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rematerialize, "MIN_BYTES", 0)
    monkeypatch.setattr(rematerialize, "MIN_DISTANCE", 2)
    rng = np.random.default_rng(6)
    start = [rng.standard_normal((6, 6)).astype(np.float32) / 3 for _ in range(4)]
    x = Tensor(rng.standard_normal((10, 6)).astype(np.float32))
    weights = [Tensor(w.copy()) for w in start]
    slopes = network(x, weights).gradient(*weights)
    for weight, slope in zip(weights, slopes, strict=True):
        weight.assign(weight - slope * 0.1)
    found = [w.numpy() for w in weights]
    fixed = [Tensor(w.copy()) for w in start]
    for w, g, end in zip(start, network(x, fixed).gradient(*fixed), found, strict=True):
        np.testing.assert_allclose(end, w - 0.1 * g.numpy(), rtol=1e-5, atol=1e-6)
