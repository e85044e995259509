"""Buffers larger than the private caches exceed the cache."""

from __future__ import annotations

from glassgrad.base.dtype import dtypes
from glassgrad.ir.cache_size import exceeds_cache
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Param, Target
from glassgrad.ir.uop import UOp, const, make_range

TARGET = Target("CPU", "llvm", l2_bytes=1 << 10)


def index_of(size: int, gate: UOp | None = None) -> UOp:
    param = UOp(Ops.PARAM, dtypes.float32, (), Param(0, (size,), (1,)))
    return param.index(make_range(0, size), gate=gate)


def test_a_buffer_larger_than_l2_exceeds_the_cache() -> None:
    assert not exceeds_cache(index_of(256), TARGET)
    assert exceeds_cache(index_of(257), TARGET)


def test_conditional_loads_and_scratch_never_exceed_the_cache() -> None:
    assert not exceeds_cache(
        index_of(257, make_range(1, 9).alu(Ops.CMPLT, const(3, dtypes.index))), TARGET
    )
    steps = make_range(0, 257)
    scratch = UOp(Ops.STAGE, dtypes.float32, (const(1.0, dtypes.float32), steps, steps), (257,))
    assert not exceeds_cache(scratch.index(steps), TARGET)
