"""Columns of a block are loaded as rows and transposed in registers, for every size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.compiler.nests import move, nest_of, numbers
from support.compiler.programs import TARGET, all_of, count, program_of

from glassgrad import Tensor
from glassgrad.base.dtype import DType, dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Nest, Param
from glassgrad.ir.uop import UOp, const
from glassgrad.loops.opts import OptOps
from glassgrad.lower.memory.transpose import interleave_lanes, transpose_registers
from glassgrad.lower.scope import Scopes


def transposed(rows: int, columns: int, lanes: int, registers: int) -> Nest:
    """y = x.T, with lanes along a column of x and registers along a row."""
    x = numbers(rows, columns)
    nest = nest_of(UOp(Ops.PERMUTE, x.dtype, (x,), (1, 0)) + 1.0)
    return move(move(nest, OptOps.UPCAST, 1, lanes), OptOps.UPCAST, 0, registers)


def test_a_block_is_loaded_by_rows_and_shuffled() -> None:
    program = program_of(transposed(32, 24, 8, 8))
    assert [load.dtype.count for load in all_of(program, Ops.LOAD)] == [8] * 8
    assert count(program, Ops.SHUFFLE) == 8 * 3, "three steps for eight columns"
    assert count(program, Ops.STACK) <= 1, "the number that is added, and nothing lane by lane"


def test_longer_runs_are_several_blocks() -> None:
    program = program_of(transposed(32, 48, 8, 16))
    assert count(program, Ops.LOAD) == 16 and count(program, Ops.SHUFFLE) == 48


def test_registers_after_the_last_whole_block_are_loaded_one_by_one() -> None:
    program = program_of(transposed(32, 27, 8, 9))
    assert sorted(load.dtype.count for load in all_of(program, Ops.LOAD)) == [1] * 8 + [8] * 8
    assert count(program, Ops.SHUFFLE) == 8 * 3


@pytest.mark.parametrize("registers", [3, 4])
def test_registers_that_form_no_block_are_loaded_one_by_one(registers: int) -> None:
    program = program_of(transposed(32, 24, 8, registers))
    assert count(program, Ops.SHUFFLE) == 0
    assert all(load.dtype.count == 1 for load in all_of(program, Ops.LOAD))


def test_a_block_needs_registers_for_its_rows_and_columns() -> None:
    small = replace(TARGET, registers=8)
    assert count(program_of(transposed(32, 24, 8, 8), small), Ops.SHUFFLE) == 0


@pytest.mark.parametrize("device", ["CPU", "PYTHON"])
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("shape", [(8, 8), (32, 24), (13, 11), (9, 40)])
def test_values_are_right_where_the_last_block_overlaps(
    shape: tuple[int, int], kind: type, device: str
) -> None:
    x = np.arange(np.prod(shape)).astype(kind).reshape(shape)
    found = Tensor(x, device=device).transpose(0, 1).contiguous()
    np.testing.assert_array_equal(found.numpy(), x.T)


@pytest.mark.parametrize("dtype", [dtypes.float64, dtypes.float32, dtypes.int16, dtypes.int8])
@pytest.mark.parametrize("size", [2, 4, 8, 16])
def test_columns_of_every_size_of_element(dtype: DType, size: int) -> None:
    scopes = Scopes()
    buffer = UOp(Ops.PARAM, dtype, (), Param(0, (size * size,), (1,)))
    places = [UOp(Ops.INDEX, dtype, (buffer, const(i * size, dtypes.long))) for i in range(size)]
    rows = [UOp(Ops.LOAD, dtype.vec(size), (place,)) for place in places]
    columns = transpose_registers(scopes, rows)
    held = {row: [(i, j) for j in range(size)] for i, row in enumerate(rows)}
    for line in scopes.stack[0].lines:
        both = [*held[line.src[0]], *held[line.src[1]]]
        held[line] = [both[i] for i in line.arg]
    assert [held[c] for c in columns] == [[(i, j) for i in range(size)] for j in range(size)]
    steps = size.bit_length() - 1
    assert len(scopes.stack[0].lines) == steps * size


@pytest.mark.parametrize("turns", [1, 2, 4])
def test_interleaved_vectors_alternate_their_elements(turns: int) -> None:
    scopes, count = Scopes(), 8
    param = UOp(Ops.PARAM, dtypes.int8, (), Param(0, (turns * count,), (1,)))
    places = [param.index(const(row * count)) for row in range(turns)]
    rows = [UOp(Ops.LOAD, dtypes.int8.vec(count), (place,)) for place in places]
    values = {row: [(number, i) for i in range(count)] for number, row in enumerate(rows)}
    found = interleave_lanes(scopes, rows)
    for line in scopes.stack[0].lines:
        both = [*values[line.src[0]], *values[line.src[1]]]
        values[line] = [both[i] for i in line.arg]
    laid = [element for vector in found for element in values[vector]]
    assert laid == [(row, i) for i in range(count) for row in range(turns)]
