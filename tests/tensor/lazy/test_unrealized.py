"""The cost of a computation does not depend on the number of tensors."""

from __future__ import annotations

import sys
from types import FrameType

import numpy as np

from glassgrad import Tensor
from glassgrad.ir.ops import Ops
from glassgrad.tensor.core import live_tensors
from glassgrad.tensor.lazy.unrealized import unrealized_holders


def calls_of_an_addition() -> int:
    """Python calls of one more computation of the same graph."""
    a, b = Tensor([1.0, 2.0]).realize(), Tensor([3.0, 4.0]).realize()
    for _ in range(3):
        (a + b).realize()
    count = 0

    def notice(frame: FrameType, event: str, arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(notice)
    try:
        (a + b).realize()
    finally:
        sys.setprofile(None)
    return count


def test_tensors_in_memory_cost_nothing() -> None:
    before = calls_of_an_addition()
    kept = [Tensor(np.ones(3, np.float32)).realize() for _ in range(500)]
    assert calls_of_an_addition() < before + 100
    assert len(kept) == 500


def test_holders_of_lazy_nodes_are_listed() -> None:
    x = Tensor([1.0, 2.0, 3.0]).realize()
    part, other = x[1:], x * 2
    other.realize()
    x += 1  # the part shows contents that are not there yet
    x.replace(other + 1)
    listed = {id(holder) for holder in unrealized_holders()}
    lazy = [tensor for tensor in live_tensors() if tensor.uop.op is not Ops.BUFFER]
    assert {id(tensor) for tensor in lazy} <= listed
    assert id(part) in listed and id(x) in listed and id(other) not in listed


def test_a_parameter_is_found_by_its_node() -> None:
    w = Tensor([2.0], requires_grad=False)
    y = (w * 3).realize()
    assert y.uop.history is None
    w.requires_grad_()
    y = (w * 3).realize()
    assert y.uop.history is not None
    w.replace(Tensor([5.0]))
    y = (w * 3).realize()
    y.sum().backward()
    assert w.grad.tolist() == [3.0]


def test_a_parameter_that_is_computed_later_stays_one() -> None:
    for make_real in (Tensor.realize, Tensor.numpy, lambda w: (w + 1).numpy()):
        w = Tensor.rand(3, requires_grad=True) * 2
        w.requires_grad_()
        make_real(w)
        y = (w * 2).realize()
        y.sum().backward()
        assert w.grad.tolist() == [2.0, 2.0, 2.0]
