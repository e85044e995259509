"""A GPT training step of plain Tensor operations: time to record, schedule and look it up.

python bench/gpt_step.py [--layers 6] [--run]
"""

from __future__ import annotations

import argparse
import math
from time import perf_counter

from glassgrad import Tensor
from glassgrad.devices.registry import Device
from glassgrad.engine.cache.graph_keys import signature
from glassgrad.schedule import schedule


class Layer:
    """One transformer layer: attention and a two-layer perceptron, each after a layernorm."""

    def __init__(self, width: int) -> None:
        self.norm1 = (Tensor.ones(width), Tensor.zeros(width))
        self.norm2 = (Tensor.ones(width), Tensor.zeros(width))
        self.qkv = (Tensor.scaled_uniform(width, 3 * width), Tensor.zeros(3 * width))
        self.proj = (Tensor.scaled_uniform(width, width), Tensor.zeros(width))
        self.up = (Tensor.scaled_uniform(width, 4 * width), Tensor.zeros(4 * width))
        self.down = (Tensor.scaled_uniform(4 * width, width), Tensor.zeros(width))

    def parameters(self) -> list[Tensor]:
        pairs = (self.norm1, self.norm2, self.qkv, self.proj, self.up, self.down)
        return [tensor for pair in pairs for tensor in pair]


def norm(x: Tensor, pair: tuple[Tensor, Tensor]) -> Tensor:
    return x.layernorm() * pair[0] + pair[1]


def linear(x: Tensor, pair: tuple[Tensor, Tensor]) -> Tensor:
    return x @ pair[0] + pair[1]


class GPT:
    """A small GPT-2."""

    def __init__(self, layers: int, width: int, heads: int, vocabulary: int, context: int) -> None:
        self.heads = heads
        self.tokens = Tensor.normal(vocabulary, width, std=0.02)
        self.positions = Tensor.normal(context, width, std=0.02)
        self.layers = [Layer(width) for _ in range(layers)]
        self.last = (Tensor.ones(width), Tensor.zeros(width))

    def parameters(self) -> list[Tensor]:
        inner = [tensor for layer in self.layers for tensor in layer.parameters()]
        return [self.tokens, self.positions, *inner, *self.last]

    def attention(self, x: Tensor, layer: Layer) -> Tensor:
        batch, time, width = x.shape
        size = width // self.heads
        qkv = linear(norm(x, layer.norm1), layer.qkv)
        qkv = qkv.reshape(batch, time, 3, self.heads, size).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]  # (B, H, T, D)
        scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(size))
        rows, columns = Tensor.arange(time).reshape(time, 1), Tensor.arange(time).reshape(1, time)
        scores = (rows >= columns).where(scores, -math.inf)
        mixed = (scores.softmax() @ v).permute(0, 2, 1, 3).reshape(batch, time, width)
        return linear(mixed, layer.proj)

    def loss(self, tokens: Tensor, targets: Tensor) -> Tensor:
        x = self.tokens[tokens] + self.positions[: tokens.shape[1]]
        for layer in self.layers:
            x = x + self.attention(x, layer)
            x = x + linear(linear(norm(x, layer.norm2), layer.up).gelu(), layer.down)
        logits = norm(x, self.last) @ self.tokens.transpose(-2, -1)
        return logits.sparse_categorical_crossentropy(targets)


class AdamW:
    """The optimiser, as a list of in-place updates."""

    def __init__(self, parameters: list[Tensor], lr: float = 3e-4) -> None:
        self.parameters, self.lr = parameters, lr
        self.m = [Tensor.zeros(*p.shape).contiguous() for p in parameters]
        self.v = [Tensor.zeros(*p.shape).contiguous() for p in parameters]
        self.b1, self.b2 = Tensor.ones(1).contiguous(), Tensor.ones(1).contiguous()

    def states(self) -> list[Tensor]:
        return [*self.m, *self.v, self.b1, self.b2]

    def step(self, gradients: list[Tensor]) -> list[Tensor]:
        self.b1.assign(self.b1 * 0.9)
        self.b2.assign(self.b2 * 0.999)
        for p, m, v, g in zip(self.parameters, self.m, self.v, gradients, strict=True):
            m.assign(m * 0.9 + g * 0.1)
            v.assign(v * 0.999 + g * g * 0.001)
            update = (m / (1 - self.b1)) / ((v / (1 - self.b2)).sqrt() + 1e-8)
            p.assign(p - (update + p * 0.01) * self.lr)
        return [*self.parameters, *self.states()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--run", action="store_true", help="also run training steps")
    options, _ = parser.parse_known_args()
    model = GPT(options.layers, 384, 6, 512, 256)
    optimizer = AdamW(model.parameters())
    batch = Tensor.randint(options.batch, 257, low=0, high=512)
    state = [*model.parameters(), *optimizer.states(), batch]
    Tensor.realize(*state)
    device = Device[Device.DEFAULT]

    def record() -> list[Tensor]:
        loss = model.loss(batch[:, :-1], batch[:, 1:])
        gradients = loss.gradient(*model.parameters())
        return [loss, *optimizer.step(gradients)]

    start = perf_counter()
    outputs = record()
    recorded = perf_counter()
    values = [tensor.uop for tensor in outputs]
    nodes = len({node for value in values for node in value.toposort()})
    begin = perf_counter()
    result = schedule(values, device.target)
    scheduled = perf_counter()
    signature(values)
    hashed = perf_counter()
    print(f"nodes                 {nodes:8}")
    print(f"graph recorded        {(recorded - start) * 1e3:8.1f} ms")
    print(f"scheduled             {(scheduled - begin) * 1e3:8.1f} ms")
    print(f"graph key             {(hashed - scheduled) * 1e3:8.1f} ms")
    print(f"kernels               {len(result.kernels):8}")
    print(f"distinct kernels      {len(set(result.kernels)):8}")
    if options.run:
        for _ in range(4):
            start = perf_counter()
            Tensor.realize(*outputs)
            print(f"step {(perf_counter() - start) * 1e3:8.1f} ms, loss {outputs[0].item():.4f}")
            outputs = record()


if __name__ == "__main__":
    main()
