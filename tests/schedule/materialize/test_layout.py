"""A value read through a reshape of a permutation is stored permuted."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiler.schedules import memory, planned

from glassgrad import Tensor
from glassgrad.ir.linear import total
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Schedule

BATCH, HEADS, TIME, WIDTH = 4, 6, 128, 32


def stored_shapes(made: Schedule) -> list[tuple[int, ...]]:
    return [node.shape for stored in made.stored for node in stored]


def attended() -> Tensor:
    q, k, v = [memory(BATCH, HEADS, TIME, WIDTH) for _ in range(3)]
    return q.scaled_dot_product_attention(k, v)


def test_heads_are_stored_side_by_side_for_the_product_that_joins_them() -> None:
    joined = attended().transpose(1, 2).reshape(BATCH, TIME, HEADS * WIDTH)
    made = planned(joined @ memory(HEADS * WIDTH, 512))
    assert stored_shapes(made) == [(BATCH, TIME, HEADS, WIDTH), (BATCH, TIME, 512)]


def test_permuted_storage_needs_no_copy() -> None:
    attention, product = planned(
        attended().transpose(1, 2).reshape(BATCH, TIME, HEADS * WIDTH) @ memory(HEADS * WIDTH, 512)
    ).kernels
    loads = [n for n in product.body.toposort() if n.op is Ops.INDEX and n.src[0].op is Ops.PARAM]
    places = [total(index.indices, index.src[0].arg.strides) for index in loads]
    assert not any(n.op is Ops.FLOORDIV for flat in places for n in flat.toposort())
    assert sum(n.op is Ops.STORE for n in attention.body.toposort()) == 1


def test_elementwise_values_are_stored_permuted() -> None:
    x = memory(HEADS, BATCH, TIME, WIDTH)
    heads = x.exp().permute(1, 2, 0, 3)
    made = planned(heads.reshape(BATCH, TIME, HEADS * WIDTH) @ memory(HEADS * WIDTH, 512))
    assert stored_shapes(made)[0] == (BATCH, TIME, HEADS, WIDTH)


@pytest.mark.parametrize("order", [(0, 2, 3, 1), (0, 1, 2, 3)])
def test_layouts_are_kept_if_the_last_axis_moves_or_none_does(order: tuple[int, ...]) -> None:
    made = planned(attended().permute(*order).reshape(BATCH * TIME, -1) @ memory(HEADS * WIDTH, 8))
    assert stored_shapes(made)[0] == (BATCH, HEADS, TIME, WIDTH)


def test_layouts_are_kept_if_a_reader_uses_the_unpermuted_value() -> None:
    heads = attended()
    joined = heads.transpose(1, 2).reshape(BATCH, TIME, HEADS * WIDTH) @ memory(HEADS * WIDTH, 512)
    made = planned(joined, heads)
    assert (BATCH, TIME, HEADS, WIDTH) not in stored_shapes(made)


def test_permuted_storage_keeps_the_values() -> None:
    rng = np.random.default_rng(7)
    x, w = rng.standard_normal((3, 5, 64, 8)), rng.standard_normal((40, 6))
    y = rng.standard_normal((3, 5, 8, 8))
    tensors = [Tensor(part.astype(np.float32)) for part in (x, y, w)]
    joined = (tensors[0] @ tensors[1]).transpose(1, 2).reshape(3, 64, 40)
    wanted = (x @ y).transpose(0, 2, 1, 3).reshape(3, 64, 40)
    np.testing.assert_allclose((joined @ tensors[2]).numpy(), wanted @ w, rtol=1e-4, atol=1e-4)
    slope = (joined @ tensors[2]).sum().gradient(tensors[2])[0]
    np.testing.assert_allclose(
        slope.numpy(), wanted.sum((0, 1))[:, None].repeat(6, 1), rtol=1e-4, atol=1e-3
    )
