"""Loads are shared; reversed and strided vectors are shuffled from contiguous ones."""

from __future__ import annotations

import numpy as np
from support.compiler.nests import added, move, nest_of, numbers
from support.compiler.programs import all_of, count, program_of
from support.compiler.schedules import leaf

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.uop import UOp
from glassgrad.loops.nest import axes
from glassgrad.loops.opts import OptOps


def test_equal_loads_are_emitted_once() -> None:
    x = numbers(64)
    program = program_of(nest_of(x * x + x))
    assert count(program, Ops.LOAD) == 1


def test_a_padded_load_carries_its_gate() -> None:
    x = numbers(4, 6)
    padded = UOp(Ops.PAD, x.dtype, (x,), ((0, 0), (1, 2)))
    program = program_of(nest_of(padded * 2.0))
    (load,) = all_of(program, Ops.LOAD)
    assert load.src[0].gate is not None
    (store,) = all_of(program, Ops.STORE)
    assert store.src[0].gate is None


def test_strided_lanes_are_loaded_one_by_one() -> None:
    nest = move(added(4, 8), OptOps.UPCAST, 1, 8)  # stored along rows, loaded along columns
    program = program_of(nest)
    assert [u.dtype.count for u in all_of(program, Ops.LOAD)] == [1] * 8
    assert [u.src[1].dtype.count for u in all_of(program, Ops.STORE)] == [8]


def test_a_gather_in_lanes_is_loaded_one_by_one() -> None:
    x, index = numbers(20), leaf(np.zeros(16), "int32")
    nest = move(nest_of(UOp(Ops.GATHER, x.dtype, (x, index), 0)), OptOps.UPCAST, 0, 8)
    program = program_of(nest)
    assert (
        sum(u.dtype.count == 1 and u.dtype.kind == "float" for u in all_of(program, Ops.LOAD)) == 8
    )


def test_a_reversed_vector_is_one_load() -> None:
    x = UOp(Ops.FLIP, dtypes.float32, (numbers(64),), (0,))
    program = program_of(move(nest_of(x + 1.0), OptOps.UPCAST, 0, 8))
    (load,) = all_of(program, Ops.LOAD)
    assert load.dtype.count == 8
    (turned,) = all_of(program, Ops.SHUFFLE)
    assert turned.src == (load, load) and turned.arg == (7, 6, 5, 4, 3, 2, 1, 0)


def test_stride_two_is_shuffled_from_two_vectors() -> None:
    x = numbers(4, 32)
    every_other = UOp(Ops.WINDOW, x.dtype, (x,), (1, 1, 2, 1))
    program = program_of(move(nest_of(every_other * 2.0), OptOps.UPCAST, 1, 8))
    loads = all_of(program, Ops.LOAD)
    assert [load.dtype.count for load in loads] == [8, 8]
    first, second = (load.src[0] for load in loads)
    assert second.src[0] is first
    assert second.src[1].arg == 7  # the second vector ends with the last lane


def test_stride_two_with_an_odd_number_of_lanes() -> None:
    x = numbers(4, 32)
    every_other = UOp(Ops.WINDOW, x.dtype, (x,), (1, 1, 2, 1))
    nest = move(nest_of(every_other * 2.0), OptOps.UPCAST, 1, 5)
    (number,) = [axis.axis for axis in axes(nest) if axis.kind is AxisKind.UPCAST]
    program = program_of(move(nest, OptOps.LANES, number, 5))
    (taken,) = all_of(program, Ops.SHUFFLE)
    assert taken.arg == (0, 2, 4, 5 + 2, 5 + 4), "the second vector begins with the fifth element"
