"""Addresses with a constant stride per iteration are advancing pointers; others are computed."""

import numpy as np
import pytest
from support.compiler.hand_programs import Lines, address, integer, load, source_of
from support.compiler.on_cpu import cpu

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Program
from glassgrad.ir.uop import UOp
from glassgrad.render.llvm_pointers import MAX_ADVANCING, advancing_indices

F32 = dtypes.float32


def copy(step: UOp | int, size: int = 5, kind: AxisKind = AxisKind.LOOP) -> Program:
    """out[8·i] = x[i · step]; a step that is a UOp is what i is shifted by."""
    lines = Lines()
    out, x = lines.param(0, F32), lines.param(1, F32)
    loop = lines.loop(0, size, kind)
    far = loop * integer(step) if isinstance(step, int) else UOp(Ops.SHL, loop.dtype, (loop, step))
    lines.store(out.index(lines.add(loop * integer(8))), lines.add(load(x.index(lines.add(far)))))
    lines.end(loop)
    return lines.program("copy", cores=size if kind is AxisKind.CORE else 1)


@pytest.mark.parametrize("kind", [AxisKind.LOOP, AxisKind.CORE])
@pytest.mark.parametrize(("step", "elements"), [(3, 3), (integer(2), 4)])
def test_a_product_with_the_loop_counter_is_an_advancing_pointer(
    step: UOp | int, elements: int, kind: AxisKind
) -> None:
    program = copy(step, kind=kind)
    assert sorted(advancing_indices(program.uops)[program.uops[3]].values()) == sorted(
        (8, elements)
    )
    text = source_of(program).text
    assert text.count("phi ptr") == 2 and f"i64 {elements}\n" in text
    assert " shl " not in text and text.count(" = mul ") == 2 * (kind is AxisKind.CORE)
    data, got = np.arange(64, dtype=np.float32), np.zeros(40, np.float32)
    cpu().compile(source_of(program))((address(got), address(data)))
    assert np.array_equal(got[::8], data[:20][::elements][:5])


def test_an_offset_computed_inside_of_the_loop_does_not_advance() -> None:
    """The second pointer starts from one that the same loop has moved already."""
    lines = Lines()
    out, x = lines.param(0, F32), lines.param(1, F32)
    loop = lines.loop(0, 5)
    far = lines.add(loop * integer(2))
    twice = lines.add(lines.add(x.index(far)).index(far))
    lines.store(out.index(loop), lines.add(load(twice)))
    lines.end(loop)
    program = lines.program()
    (steps,) = advancing_indices(program.uops).values()
    assert list(steps.values()) == [2] and twice not in steps
    assert " = mul " in source_of(program).text
    data, got = np.arange(20, dtype=np.float32), np.zeros(5, np.float32)
    cpu().compile(source_of(program))((address(got), address(data)))
    assert np.array_equal(got, data[::4])


def test_a_product_that_is_a_value_too_is_still_computed() -> None:
    lines = Lines()
    out = lines.param(0, dtypes.int64)
    loop = lines.loop(0, 5)
    far = lines.add(loop * integer(3))
    lines.store(lines.add(out.index(far)), far)
    lines.end(loop)
    got = np.zeros(15, np.int64)
    cpu().compile(source_of(lines.program()))((address(got),))
    assert np.array_equal(got[::3], [0, 3, 6, 9, 12])


def test_many_pointers_share_the_loop_counter() -> None:
    lines = Lines()
    buffers = [lines.param(slot, F32) for slot in range(MAX_ADVANCING + 1)]
    loop = lines.loop(0, 4)
    far = lines.add(loop * integer(3))
    for buffer in buffers:
        lines.store(lines.add(buffer.index(far)), UOp(Ops.CONST, F32, (), 1.0))
    lines.end(loop)
    program = lines.program()
    assert advancing_indices(program.uops) == {} and "phi ptr" not in source_of(program).text


def test_pointers_restart_in_every_iteration_of_the_outer_loop() -> None:
    """out[i, j] = x[j, i]"""
    rows, columns = 3, 4
    lines = Lines()
    out, x = lines.param(0, F32), lines.param(1, F32)
    i = lines.loop(0, rows)
    row = lines.add(out.index(lines.add(i * integer(columns))))
    column = lines.add(x.index(i))
    j = lines.loop(1, columns)
    value = lines.add(load(column.index(lines.add(j * integer(rows)))))
    lines.store(row.index(j), value)
    lines.end(j)
    lines.end(i)
    data, got = np.arange(12, dtype=np.float32).reshape(4, 3), np.zeros((3, 4), np.float32)
    program = lines.program()
    assert [list(steps.values()) for steps in advancing_indices(program.uops).values()] == [
        [4],
        [3],
    ]
    cpu().compile(source_of(program))((address(got), address(data)))
    assert np.array_equal(got, data.T)
