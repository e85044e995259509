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

MIN_MULTIPLICATIONS = 1 << 20  # smaller products need no register tile


def attention(length: int, is_causal: bool = False, dtype: object = dtypes.float32) -> Tensor:
    q, k, v = (memory(2, 6, length, 64, dtype=dtype) for _ in range(3))
    return q.scaled_dot_product_attention(k, v, is_causal=is_causal)


def attention_gradients(length: int, is_causal: bool) -> list[Tensor]:
    q, k, v = (memory(2, 6, length, 64) for _ in range(3))
    found = q.scaled_dot_product_attention(k, v, is_causal=is_causal)
    return found.gradient(q, k, v, gradient=memory(2, 6, length, 64))


def layers() -> list[Tensor]:
    x, w, v = memory(512, 384), memory(384, 1536), memory(1536, 384)
    return [(x.layernorm() @ w + memory(1536)).gelu() @ v + x, (x @ w).softmax() @ v]


def gpt_step() -> list[Tensor]:
    model = GPT(Config(vocab_size=512, context=256, layers=2, heads=6, width=384))
    optimizer = AdamW(get_parameters(model))
    tokens = Tensor.zeros(4, 257, dtype="int32").contiguous().realize()
    with Context(TRAINING=1):
        loss = model.loss(tokens[:, :-1], tokens[:, 1:]).backward()
        return [loss, *optimizer.schedule_step()]


PROGRAMS: dict[str, Callable[[], list[Tensor]]] = {
    "attention": lambda: [attention(512)],
    "causal": lambda: [attention(500, is_causal=True)],
    "long": lambda: [attention(3000)],
    "half": lambda: [attention(512, dtype=dtypes.float16)],
    "gradients": lambda: attention_gradients(512, is_causal=False),
    "causal gradients": lambda: attention_gradients(1024, is_causal=True),
    "layers": layers,
    "convolution": lambda: [memory(8, 64, 28, 28).conv2d(memory(64, 64, 3, 3), padding=1)],
    "GPT step": gpt_step,
}


def is_product(reduce: UOp) -> bool:
    """True for a large sum of products of two factors with different axes."""
    if reduce.op is not Ops.REDUCE or reduce.arg is not Ops.ADD or reduce.value.op is not Ops.MUL:
        return False
    bound = set(reduce.bound)
    left, right = (factor.ranges - bound for factor in reduce.value.src)
    size = prod(r.size for r in {*reduce.ranges, *bound})
    return size >= MIN_MULTIPLICATIONS and bool(left - right) and bool(right - left)


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_matrix_product_has_a_register_tile(name: str) -> None:
    found = 0
    for kernel in dict.fromkeys(planned(*PROGRAMS[name]()).kernels):
        nest = optimize(kernel, TARGET)
        for reduce in filter(is_product, nest.body.toposort()):
            found += 1
            tile = [r.size for r in {*reduce.ranges, *reduce.bound} if r.kind.is_unrolled]
            assert prod(tile) >= 16, f"{nest.name} by {nest.recipe}"
    assert found
