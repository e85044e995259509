"""Temporaries of real models: the plan's arena against the least that lifetimes allow."""

from __future__ import annotations

import pytest
from support.compiler.lifetimes import peak_by_lifetime

from glassgrad import Tensor, nn
from glassgrad.base.config import Context
from glassgrad.devices.registry import Device
from glassgrad.engine.cache.graph_keys import signature
from glassgrad.engine.plan.arena import assign_offsets
from glassgrad.engine.plan.memory import _temporaries
from glassgrad.nn import optim
from glassgrad.nn.state import get_parameters
from glassgrad.schedule import base_buffer, schedule
from glassgrad.tensor.lazy.collect import collect_values, graph_to_compute


class Mlp:
    def __init__(self) -> None:
        self.layers = [nn.Linear(64, 128), nn.Linear(128, 128), nn.Linear(128, 10)]

    def __call__(self, x: Tensor) -> Tensor:
        for layer in self.layers[:-1]:
            x = layer(x).gelu()
        return self.layers[-1](x)


class Convnet:
    def __init__(self) -> None:
        self.one, self.two = nn.Conv2d(1, 8, 3), nn.Conv2d(8, 16, 3)
        self.last = nn.Linear(16 * 4, 10)

    def __call__(self, x: Tensor) -> Tensor:
        x = self.two(self.one(x.reshape(-1, 1, 8, 8)).relu()).relu().max_pool2d()
        return self.last(x.flatten(1))


class Attention:
    def __init__(self) -> None:
        self.qkv, self.last = nn.Linear(16, 48), nn.Linear(64, 10)
        self.norm = nn.LayerNorm(16)

    def __call__(self, x: Tensor) -> Tensor:
        x = x.reshape(-1, 4, 16)
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        x = x + q.scaled_dot_product_attention(k, v)
        return self.last(x.flatten(1))


@pytest.mark.parametrize("kind", [Mlp, Convnet, Attention])
def test_the_arena_of_a_training_step_is_close_to_the_lower_bound(kind: type) -> None:
    model = kind()
    optimizer = optim.Adam(get_parameters(model), lr=0.01)
    x, y = Tensor.rand(32, 64).realize(), Tensor.randint(32, low=0, high=10).realize()
    with Context(TRAINING=1):
        loss = model(x).sparse_categorical_crossentropy(y).backward()
        step = [loss, *optimizer.schedule_step()]
    roots, *_ = collect_values([tensor.uop for tensor in step])
    values = graph_to_compute(roots)
    made = schedule(values, Device["CPU"].target)
    known = dict.fromkeys([*signature(values).leaves, *map(base_buffer, made.outputs)], 0)
    lives = _temporaries(made, known)
    _, size = assign_offsets(lives)
    best = peak_by_lifetime(lives)
    print(f"{kind.__name__}: {size:,} bytes, at best {best:,}")
    assert best > 0
    assert size <= 1.1 * best
