"""Working sets of kernels: temporary buffers and scratch.

No im2col buffer, attention scores, one-hot matrix, transposed or converted copy is stored; scratch
holds the part of it that a core needs at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import NamedTuple

import pytest
from support.compiler.schedules import TARGET, memory, planned

from glassgrad import Tensor
from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import ERROR_CELLS, Schedule
from glassgrad.loops import optimize
from glassgrad.lower import lower

KIB = 1 << 10
HALF, BF16, BYTE, INT = dtypes.float16, dtypes.bfloat16, dtypes.int8, dtypes.int32


class Family(NamedTuple):
    """The number of kernels, and limits of the bytes in temporary buffers and in scratch."""

    compute: Callable[[], list[Tensor]]
    kernels: int
    buffer_bytes: int  # between kernels
    scratch_bytes: int  # of one core
    content: str  # of these


def product(
    left: tuple[int, int], right: tuple[int, int], dtype: object = dtypes.float32
) -> Tensor:
    x, y = memory(*left, dtype=dtype), memory(*right, dtype=dtype)
    x = x if left[1] in right else x.transpose(0, 1)
    return x @ (y if x.shape[1] == right[0] else y.transpose(0, 1))


def attention(is_causal: bool = False, dtype: object = dtypes.float32) -> Tensor:
    q, k, v = (memory(2, 4, 1024, 64, dtype=dtype) for _ in range(3))
    return q.scaled_dot_product_attention(k, v, is_causal=is_causal)


def convolution(groups: int = 1, dtype: object = dtypes.float32) -> Tensor:
    x, w = memory(8, 64, 28, 28, dtype=dtype), memory(64, 64 // groups, 3, 3, dtype=dtype)
    return x.conv2d(w, padding=1, groups=groups)


def convolution_gradients() -> list[Tensor]:
    x, w = memory(8, 64, 28, 28), memory(64, 64, 3, 3)
    return (x.conv2d(w, padding=1) * memory(8, 64, 28, 28)).sum().gradient(x, w)


def embedding_gradient() -> list[Tensor]:
    table = memory(5000, 64)
    return (table[memory(256, dtype=INT)] * memory(256, 64)).sum().gradient(table)


def cross_entropy() -> Tensor:
    return memory(256, 5000).sparse_categorical_crossentropy(memory(256, dtype=INT))


PANELS = 384 * 160 * 4  # a quarter of the columns
TILE = 384 * 6 * 4  # six rows
IMAGE, WEIGHTS = 64 * 30 * 32 * 4, 64 * 64 * 9 * 4
HEAD, ROWS = 1024 * 64 * 4, 64 * 1024 * 4
FAMILIES = {
    "product": Family(lambda: [product((512, 384), (384, 640))], 1, 0, PANELS, "packed panels"),
    "product of a transposed matrix": Family(
        lambda: [product((512, 384), (640, 384))], 1, 0, PANELS, "transposed while it is packed"
    ),
    "product of a matrix read by columns": Family(
        lambda: [product((384, 512), (384, 640))], 1, 0, 2 * PANELS + TILE, "both panels, a tile"
    ),
    "product of few rows": Family(
        lambda: [product((8, 384), (384, 640))], 1, 0, 0, "no packing"
    ),
    "product in bfloat16": Family(
        lambda: [product((512, 384), (384, 640), BF16)], 1, 0, PANELS + TILE, "converted in panels"
    ),
    "product in float16, transposed": Family(
        lambda: [product((512, 384), (640, 384), HALF)], 1, 0, PANELS + TILE, "converted in panels"
    ),
    "product of bytes": Family(
        lambda: [memory(512, 384, dtype=BYTE).cast(INT) @ memory(384, 640, dtype=BYTE).cast(INT)],
        1, 0, PANELS + TILE, "converted in panels",
    ),
    "convolution": Family(
        lambda: [convolution()], 1, 0, IMAGE + WEIGHTS, "an image with zeros around it"
    ),
    "convolution in bfloat16": Family(
        lambda: [convolution(dtype=BF16)], 1, 0, IMAGE + WEIGHTS, "an image, converted"
    ),
    "depthwise convolution": Family(lambda: [convolution(groups=64)], 1, 0, 0, "no copy"),
    "convolution and its gradients": Family(
        convolution_gradients, 3, 8 * 64 * 28 * 28 * 4, IMAGE + WEIGHTS, "the result's gradient"
    ),
    "pooling": Family(lambda: [memory(8, 64, 28, 28).max_pool2d()], 1, 0, 0, "no copy"),
    "attention": Family(lambda: [attention()], 1, 0, HEAD + ROWS, "keys and a block of scores"),
    "causal attention": Family(lambda: [attention(True)], 1, 0, HEAD + ROWS, "the same"),
    "attention in bfloat16": Family(
        lambda: [attention(dtype=BF16)], 1, 0, 2 * HEAD + ROWS, "values as well, converted"
    ),
    "softmax": Family(lambda: [memory(512, 4096).softmax()], 1, 0, 4096 * 4, "a row"),
    "layernorm": Family(lambda: [memory(512, 4096).layernorm()], 1, 0, 4096 * 4, "a row"),
    "cross-entropy": Family(lambda: [cross_entropy()], 2, 2 * 256 * 4, 0, "two numbers per row"),
    "embedding": Family(
        lambda: [memory(5000, 64)[memory(256, dtype=INT)]], 1, 0, 0, "no one-hot"
    ),
    "gradient of an embedding": Family(
        embedding_gradient, 3, 256 * 64 * 4 + 256 * 4, 0, "gradients of rows, and their indices"
    ),
    "gather": Family(
        lambda: [memory(64, 5000).gather(1, memory(64, 40, dtype=INT))], 1, 0, 0, "no one-hot"
    ),
    "running sum": Family(lambda: [memory(512, 4096).cumsum(1)], 1, 0, 0, "a register"),
    "sort": Family(lambda: [memory(64, 256).sort()[0]], 3, 2 * 64 * 256 * 4, 2 * 8 * 256 * 4, ""),
    "argmax": Family(lambda: [memory(512, 4096).argmax(1)], 1, 0, 0, "no one-hot"),
    "transpose": Family(
        lambda: [memory(512, 4096).transpose(0, 1).contiguous()], 1, 0, 0, "in registers"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
def test_working_sets_are_small(name: str) -> None:
    family = FAMILIES[name]
    schedule = planned(*family.compute())
    assert len(schedule.kernels) == family.kernels
    assert buffer_bytes(schedule) <= family.buffer_bytes, f"between kernels: {family.content}"
    assert scratch_bytes(schedule) <= family.scratch_bytes, f"in scratch: {family.content}"


def test_stored_attention_scores_would_exceed_the_limit() -> None:
    schedule = planned((memory(2, 4, 1024, 64) @ memory(2, 4, 64, 1024)).contiguous().softmax())
    assert buffer_bytes(schedule) + scratch_bytes(schedule) > HEAD + ROWS


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("length", [4096, 16384])
def test_long_attention_keeps_the_scores_of_a_block_of_keys(length: int, is_causal: bool) -> None:
    q, k, v = (memory(4, length, 64) for _ in range(3))
    schedule = planned(q.scaled_dot_product_attention(k, v, is_causal=is_causal))
    (kernel,) = schedule.kernels
    stages = [n for n in optimize(kernel, TARGET).body.toposort() if n.op is Ops.STAGE]
    packed = [n for n in stages if prod(n.arg) == length * 64]
    assert len(packed) == 2, "keys and values"
    others = [prod(n.arg) * n.dtype.itemsize for n in stages if n not in packed]
    assert sum(others) <= TARGET.l2_bytes // 2 + 64 * 64 * 4 + 8 * 64 * 4, "and a tile, and rows"


def buffer_bytes(schedule: Schedule) -> int:
    """Bytes of temporary buffers between kernels."""
    excluded = {*schedule.outputs, ERROR_CELLS}
    nodes = {node for slots in schedule.buffers for node in slots if node not in excluded}
    return sum(prod(n.shape) * n.dtype.itemsize for n in nodes if n.op is not Ops.BUFFER)


def scratch_bytes(schedule: Schedule) -> int:
    """Scratch bytes of a core, of the kernel that needs most."""
    programs = [lower(optimize(kernel, TARGET), TARGET) for kernel in schedule.kernels]
    return max(program.scratch_bytes for program in programs)
