"""Zeros are fresh memory, without a kernel."""

from __future__ import annotations

import math

import pytest

from glassgrad import DType, GlobalCounters, Tensor, TinyJit, Variable, dtypes
from glassgrad.nn.optim import Adam
from glassgrad.tensor.lazy.lazy_zeros import fresh_zeros

ON_COMPILED_BACKEND = True


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float16, dtypes.int64, dtypes.bool])
def test_zeros_of_every_kind_take_no_kernel(dtype: DType) -> None:
    zeros = Tensor.zeros(3, 4, dtype=dtype)
    assert fresh_zeros(zeros.uop) is not None
    assert zeros.tolist() == [[0] * 4] * 3


def test_memory_that_was_used_before_reads_as_zeros() -> None:
    for _ in range(3):
        used = (Tensor.ones(257) * 3).realize()
        del used
        assert Tensor.zeros(257).realize().tolist() == [0.0] * 257


def test_other_numbers_are_computed() -> None:
    assert fresh_zeros(Tensor.ones(5).uop) is None
    negative = Tensor.full((3,), -0.0)
    assert fresh_zeros(negative.uop) is None
    assert [math.copysign(1.0, x) for x in negative.tolist()] == [-1.0] * 3


def test_two_tensors_of_zeros_have_memory_each() -> None:
    a, b = Tensor.zeros(3).realize(), Tensor.zeros(3).realize()
    a.assign(Tensor.ones(3)).realize()
    assert (a.tolist(), b.tolist()) == ([1.0] * 3, [0.0] * 3)


def test_a_second_value_of_the_same_zeros_does_not_see_later_writes() -> None:
    a = Tensor.zeros(3)
    b = a + 0
    same = a.float()
    a.realize()
    a.assign(Tensor.ones(3)).realize()
    assert a.tolist() == [1.0] * 3
    assert b.tolist() == [0.0] * 3
    assert same.tolist() == [0.0] * 3


def test_replays_of_a_captured_function_begin_with_zeros_each_time() -> None:
    @TinyJit
    def counted(x: Tensor) -> Tensor:
        total = Tensor.zeros(4).realize()
        total.assign(total + x).realize()
        return (total * 1).realize()

    assert [counted(Tensor.full((4,), float(n)).realize()).tolist() for n in range(1, 6)] == [
        [float(n)] * 4 for n in range(1, 6)
    ]


def test_zeros_of_symbolic_size() -> None:
    n = Variable("n", 1, 8).bind(3)
    assert fresh_zeros(Tensor.zeros(n).uop) is None
    assert Tensor.zeros(8).realize()[:n].sum().item() == 0.0


def test_gradients_reach_zeros_that_were_realized() -> None:
    w = Tensor.zeros(3, requires_grad=True).realize()
    ((w - 2) ** 2).sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == [-4.0] * 3


def test_an_optimiser_starts_without_kernels() -> None:
    w = Tensor([[1.0, 2.0]]).realize()
    before = GlobalCounters.kernel_count
    Adam([w])
    assert GlobalCounters.kernel_count == before
