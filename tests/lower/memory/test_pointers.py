"""Each loop adds its term to a pointer once; constants come last."""

from __future__ import annotations

from dataclasses import replace

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Param, Target
from glassgrad.ir.uop import UOp, make_range
from glassgrad.lower.emit import Emitter
from glassgrad.lower.memory.pointers import AddressTerm, extend_pointer

F32 = dtypes.float32
CPU = Target("CPU", "llvm")
ROWS, COLUMNS = make_range(0, 4), make_range(1, 6)


def two_loops(target: Target = CPU) -> tuple[Emitter, UOp, list[AddressTerm]]:
    """An emitter inside of two loops, a pointer, and the terms of rows of 100 and columns of 7."""
    emitter = Emitter(target, UOp(Ops.SINK))
    emitter.open(ROWS)
    emitter.open(COLUMNS)
    pointer = emitter.scopes.emit(UOp(Ops.PARAM, F32, (), Param(0, (4, 100), (100, 1))))
    columns = (2, emitter.value(COLUMNS, {}), 7)
    return emitter, pointer, [columns, (1, emitter.value(ROWS, {}), 100)]


def indices(emitter: Emitter, depth: int) -> int:
    return sum(line.op is Ops.INDEX for line in emitter.scopes.stack[depth].lines)


def test_each_loop_has_its_own_index_and_the_constant_comes_last() -> None:
    emitter, pointer, parts = two_loops()
    found = extend_pointer(emitter, pointer, parts, 5, None)
    assert (indices(emitter, 1), indices(emitter, 2)) == (1, 2)
    assert found.src[1].arg == 5 and found.src[0].src[0].src[0] is pointer


def test_offsets_that_differ_by_a_constant_share_a_pointer() -> None:
    emitter, pointer, parts = two_loops()
    one, two = [extend_pointer(emitter, pointer, list(parts), offset, None) for offset in (1, 2)]
    assert one.src[0] is two.src[0]
    assert (indices(emitter, 1), indices(emitter, 2)) == (1, 3)


def test_terms_of_a_closed_loop_are_added_again() -> None:
    emitter, pointer, parts = two_loops()
    first = extend_pointer(emitter, pointer, list(parts), 0, None)
    emitter.close(COLUMNS)
    emitter.open(COLUMNS)
    again = [(2, emitter.value(COLUMNS, {}), 7), parts[-1]]
    assert extend_pointer(emitter, pointer, again, 0, None) is not first
    assert indices(emitter, 2) == 1


def test_terms_of_one_loop_are_summed_first() -> None:
    emitter, pointer, parts = two_loops()
    column = parts[0][1]
    twice = emitter.scopes.emit(column * column)
    found = extend_pointer(emitter, pointer, [(2, column, 7), (2, twice, 3)], 0, None)
    assert found.src[0] is pointer and found.src[1].op is Ops.ADD


def test_without_vectors_all_buffers_share_one_sum() -> None:
    emitter, pointer, parts = two_loops(replace(CPU, has_vector_alu=False))
    found = extend_pointer(emitter, pointer, parts, 5, None)
    assert found.src[0] is pointer and indices(emitter, 2) == 1
    assert found.src[1].op is Ops.ADD and found.src[1].src[1].arg == 5
