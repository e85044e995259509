"""Open loops: instructions are emitted as far out as their operands allow."""

from __future__ import annotations

import pytest

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.uop import UOp, make_range
from glassgrad.lower.scope import Scopes, loops_of

I64 = dtypes.int64
ROWS, COLUMNS = make_range(0, 4), make_range(1, 6)


def line(number: int) -> UOp:
    return UOp(Ops.RANGE, I64, (UOp(Ops.CONST, I64, (), 8),), (number, AxisKind.LOOP))


def end(of: UOp) -> UOp:
    return UOp(Ops.END, dtypes.void, (of,))


def two_loops() -> tuple[Scopes, UOp, UOp]:
    scopes, outer, inner = Scopes(), line(0), line(1)
    scopes.emit(outer.src[0])
    scopes.open(ROWS, outer)
    scopes.open(COLUMNS, inner)
    return scopes, outer, inner


def test_an_instruction_is_emitted_in_the_loop_of_its_innermost_source() -> None:
    scopes, outer, inner = two_loops()
    of_outer, of_inner = scopes.emit(outer * 3), scopes.emit(inner + outer)
    assert scopes.depth_of_instruction(of_outer) == 1
    assert scopes.depth_of_instruction(of_inner) == 2
    assert scopes.depth_of_instruction(scopes.emit(UOp(Ops.CONST, I64, (), 5))) == 0


def test_an_instruction_is_emitted_once() -> None:
    scopes, outer, _ = two_loops()
    before = len(scopes.stack[1].lines)
    scopes.emit(outer * outer)
    scopes.emit(outer * outer)
    assert len(scopes.stack[1].lines) == before + 1


def test_closing_a_loop_appends_its_lines_to_the_outer_one() -> None:
    scopes, outer, inner = two_loops()
    scopes.emit(inner * inner)
    scopes.close(COLUMNS, end(inner))
    scopes.close(ROWS, end(outer))
    assert [uop.op for uop in scopes.stack[0].lines] == [
        Ops.CONST, Ops.RANGE, Ops.RANGE, Ops.MUL, Ops.END, Ops.END,
    ]  # fmt: skip
    assert not scopes.depth


def test_only_the_innermost_loop_is_closed() -> None:
    scopes, outer, _ = two_loops()
    with pytest.raises(AssertionError, match="innermost"):
        scopes.close(ROWS, end(outer))


def test_instructions_in_an_outer_scope_precede_the_open_loops() -> None:
    scopes, outer, inner = two_loops()
    scopes.emit(inner * inner)
    with scopes.at_depth(1):
        assert COLUMNS not in scopes.depth
        third = line(2)
        scopes.open(COLUMNS, third)
        scopes.close(COLUMNS, end(third))
        scopes.emit(outer * 7)
    assert scopes.depth == {ROWS: 1, COLUMNS: 2}
    scopes.close(COLUMNS, end(inner))
    ops = [uop.op for uop in scopes.stack[1].lines]
    assert ops == [Ops.RANGE, Ops.RANGE, Ops.END, Ops.MUL, Ops.RANGE, Ops.MUL, Ops.END]


def test_the_depth_of_no_loops_is_zero() -> None:
    scopes, _, _ = two_loops()
    assert scopes.depth_of(()) == 0
    assert scopes.depth_of((ROWS,)) == 1
    assert scopes.depth_of((ROWS, COLUMNS)) == 2


def test_grid_axes_and_unrolled_axes_are_not_loops() -> None:
    ranges = [make_range(n, 4, kind) for n, kind in enumerate(AxisKind)]
    kinds = {r.kind for r in loops_of(ranges)}
    assert kinds == {AxisKind.LOOP, AxisKind.REDUCE, AxisKind.CORE}


def test_an_instruction_of_a_closed_loop_is_not_available() -> None:
    scopes, outer, inner = two_loops()
    square = scopes.emit(inner * inner)
    assert scopes.is_available(square)
    with scopes.at_depth(1):
        assert not scopes.is_available(square) and scopes.is_available(outer)
    assert scopes.is_available(square)
    scopes.close(COLUMNS, end(inner))
    assert not scopes.is_available(square) and scopes.depth_of_instruction(square) == 0


def test_an_instruction_may_be_put_into_the_innermost_loop() -> None:
    scopes, outer, _ = two_loops()
    assert scopes.depth_of_instruction(scopes.emit_here(outer * outer)) == 2
