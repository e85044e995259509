"""Fused kernels keep their loops optimizable: every matrix product gets a register tile.

Matrix products share a kernel with other steps only where row blocks can pass through all of them,
and loops/ must recognise that. A product without a register tile is ten times slower.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import pytest
from support.compiler.schedules import TARGET, memory, planned

from glassgrad import Tensor
from glassgrad.base.config import Context
from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.loops import optimize
from glassgrad.nn.gpt import GPT, Config
from glassgrad.nn.optim import AdamW
from glassgrad.nn.state import get_parameters

MANY = 1 << 20  # products, for which a tile is worth its while


def attention(places: int, is_causal: bool = False, dtype: object = dtypes.float32) -> Tensor:
    q, k, v = (memory(2, 6, places, 64, dtype=dtype) for _ in range(3))
    return q.scaled_dot_product_attention(k, v, is_causal=is_causal)


def gradients_of_attention(places: int, is_causal: bool) -> list[Tensor]:
    q, k, v = (memory(2, 6, places, 64) for _ in range(3))
    found = q.scaled_dot_product_attention(k, v, is_causal=is_causal)
    return found.gradient(q, k, v, gradient=memory(2, 6, places, 64))


def layers() -> list[Tensor]:
    x, w, v = memory(512, 384), memory(384, 1536), memory(1536, 384)
    return [(x.layernorm() @ w + memory(1536)).gelu() @ v + x, (x @ w).softmax() @ v]


def step_of_a_gpt() -> list[Tensor]:
    model = GPT(Config(vocab_size=512, context=256, layers=2, heads=6, width=384))
    optimizer = AdamW(get_parameters(model))
    tokens = Tensor.zeros(4, 257, dtype="int32").contiguous().realize()
    with Context(TRAINING=1):
        loss = model.loss(tokens[:, :-1], tokens[:, 1:]).backward()
        return [loss, *optimizer.schedule_step()]


WORK: dict[str, Callable[[], list[Tensor]]] = {
    "attention": lambda: [attention(512)],
    "causal": lambda: [attention(500, is_causal=True)],
    "long": lambda: [attention(3000)],
    "half": lambda: [attention(512, dtype=dtypes.float16)],
    "gradients": lambda: gradients_of_attention(512, is_causal=False),
    "causal gradients": lambda: gradients_of_attention(1024, is_causal=True),
    "layers": layers,
    "convolution": lambda: [memory(8, 64, 28, 28).conv2d(memory(64, 64, 3, 3), padding=1)],
    "a step of a GPT": step_of_a_gpt,
}


def is_product(reduce: UOp) -> bool:
    """Is it a large sum of products, whose factors each lack an axis that the other has?"""
    if reduce.op is not Ops.REDUCE or reduce.arg is not Ops.ADD or reduce.value.op is not Ops.MUL:
        return False
    bound = set(reduce.bound)
    left, right = (factor.ranges - bound for factor in reduce.value.src)
    size = prod(r.size for r in {*reduce.ranges, *bound})
    return size >= MANY and bool(left - right) and bool(right - left)


@pytest.mark.parametrize("name", WORK)
def test_every_product_has_a_tile(name: str) -> None:
    found = 0
    for kernel in dict.fromkeys(planned(*WORK[name]()).kernels):
        nest = optimize(kernel, TARGET)
        for reduce in filter(is_product, nest.body.toposort()):
            found += 1
            tile = [r.size for r in {*reduce.ranges, *reduce.bound} if r.kind.is_unrolled]
            assert prod(tile) >= 16, f"{nest.name} by {nest.recipe}"
    assert found
