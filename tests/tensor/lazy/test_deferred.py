"""Deferred nodes, which are expanded on demand."""

from __future__ import annotations

import numpy as np

from glassgrad.base.config import Context
from glassgrad.ir.ops import Ops
from glassgrad.tensor.lazy.deferred import defer, expand_deferred
from glassgrad.tensor.tensor import Tensor

ON_BOTH_BACKENDS = True


def _sum(scale: float, x: Tensor, y: Tensor) -> Tensor:
    return (x + y) * scale


def made(x: Tensor, y: Tensor, scale: float = 2.0) -> Tensor:
    return Tensor._from_uop(defer(_sum, (scale,), (x, y), x.shape, x.dtype))


def test_one_deferred_node_represents_a_function() -> None:
    x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    z = made(x, y)
    assert z.uop.op is Ops.DEFERRED and z.uop.src == (x.uop, y.uop)
    assert (z.shape, z.dtype) == (x.shape, x.dtype)
    assert z.tolist() == [8.0, 12.0]


def test_equal_functions_of_equal_values_are_one_node() -> None:
    x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    assert made(x, y).uop is made(x, y).uop
    assert made(x, y).uop is not made(x, y, 3.0).uop


def test_tensors_hold_the_expanded_graphs() -> None:
    x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    z = made(x, y) + 1
    changed = expand_deferred()
    assert len(changed) == 2
    assert z.uop.op is Ops.ADD and z.uop.src[0].op is Ops.MUL
    assert expand_deferred() == {}


def test_gradients_flow_through_deferred_nodes() -> None:
    x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    assert (made(x, y) * x).sum().gradient(x)[0].tolist() == [10.0, 16.0]


def test_gradients_of_backward_wait_and_are_constants() -> None:
    x = Tensor([1.0, 2.0])
    (x * x * x).sum().backward()
    first = x.grad
    assert first is not None and first.uop.src[0].op is Ops.DEFERRED
    assert (first * x).sum().gradient(x)[0].tolist() == [3.0, 12.0]
    assert first.tolist() == [3.0, 12.0]


def test_a_write_that_waits_is_still_the_only_one_of_its_version() -> None:
    x, y = Tensor([1.0, 2.0]).realize(), Tensor([3.0, 4.0])
    same = Tensor(x)
    x.assign(made(x, y))
    expand_deferred()
    same.assign(same + 1)  # gets memory of its own
    assert (x.tolist(), same.tolist()) == ([8.0, 12.0], [2.0, 3.0])


def test_new_nodes_have_the_line_of_the_value_they_stand_for() -> None:
    x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    z = Tensor._from_uop(defer(_sum, (2.0,), (x, y), x.shape, x.dtype))
    line = z.uop.origin
    expand_deferred()
    assert z.uop.op is Ops.MUL
    assert z.uop.origin == z.uop.src[0].origin == line


def test_expansion_ignores_no_grad() -> None:
    x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    z = made(x, y).sum()
    with Context(NO_GRAD=1):
        expand_deferred()
    assert z.gradient(x)[0].tolist() == [2.0, 2.0]


def test_realized_values_survive_expansion() -> None:
    x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    z = made(x, y)
    (z * 2).sum().backward()
    assert z.tolist() == [8.0, 12.0]
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), [4.0, 4.0])
