"""What is needed behind a long sum is asked for before it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from nests import kernel_of
from programs import TARGET, depths
from schedules import memory

from glassgrad import Tensor
from glassgrad.ir.ops import Ops
from glassgrad.ir.spec import check
from glassgrad.ir.stages import Program, Target
from glassgrad.ir.uop import UOp
from glassgrad.loops import optimize
from glassgrad.lower import lower
from glassgrad.render import render


def lines_of(tensor: Tensor, target: Target = TARGET) -> tuple[UOp, ...]:
    lines = lower(optimize(kernel_of(tensor), target), target).uops
    check(lines, "program")
    return lines


def asked(lines: tuple[UOp, ...]) -> list[bool]:
    """Is it going to be written, for every place that is asked for?"""
    return [line.arg for line in lines if line.op is Ops.PREFETCH]


def test_a_tile_asks_for_the_rows_it_adds_to_and_for_its_place() -> None:
    lines = lines_of(memory(2048, 384) @ memory(384, 384) + memory(2048, 384))
    assert asked(lines) == [False] * 6 + [True] * 6, "6 rows of one line, two vectors each"
    last = max(i for i, line in enumerate(lines) if line.op is Ops.PREFETCH)
    first = min(i for i, line in enumerate(lines) if line.op is Ops.MULACC)
    assert last < first, "before the sums"


def test_a_tile_that_is_written_in_a_loop_asks_for_all_of_it_before_the_sums() -> None:
    lines = lines_of((memory(2048, 384) @ memory(384, 384)).gelu() + memory(2048, 384))
    assert asked(lines) == [False] * 6 + [True] * 6
    places = {line.src[0] for line in lines if line.op is Ops.PREFETCH}
    assert len(places) == 12, "each of them once"
    last = max(i for i, line in enumerate(lines) if line.op is Ops.PREFETCH)
    first = min(i for i, line in enumerate(lines) if line.op is Ops.MULACC)
    assert last < first


def test_what_is_near_is_not_asked_for() -> None:
    product = memory(2048, 384) @ memory(384, 384) + memory(384)
    assert asked(lines_of(product)) == [True] * 6, "not for a bias"
    assert not asked(lines_of(memory(128, 384) @ memory(384, 128)))


@pytest.mark.parametrize("make", [lambda x: x.exp(), lambda x: x.sum(0), lambda x: x.softmax()])
def test_only_long_sums_leave_time_for_it(make: object) -> None:
    assert callable(make)
    assert not asked(lines_of(make(memory(2048, 384))))
    assert not asked(lines_of(memory(2048, 32) @ memory(32, 384)))


def test_threads_do_not_wait_for_memory() -> None:
    target = replace(TARGET, has_threads=True, has_vector_alu=False)
    assert not asked(lines_of(memory(2048, 384) @ memory(384, 384), target))


def test_processors_are_told_which_places_are_written() -> None:
    kernel = kernel_of(memory(2048, 384) @ memory(384, 384) + memory(2048, 384))
    text = render(lower(optimize(kernel, TARGET), TARGET), TARGET).text
    assert text.count("i32 0, i32 3, i32 1)") == text.count("i32 1, i32 3, i32 1)") == 6


def test_what_is_stored_beside_a_sum_is_asked_for_as_well() -> None:
    x = memory(2048, 384)
    kernel = kernel_of(memory(2048, 384) @ memory(384, 384) + x, x.exp())
    lines = lower(optimize(kernel, TARGET), TARGET).uops
    assert asked(lines) == [False, True, True], "18 lines: in six turns"


def shares(program: Program) -> list[tuple[int, ...]]:
    """How far apart the lines are that a turn asks for, and how far it is to the next turn."""
    found: dict[UOp, list[UOp]] = {}
    for line in program.uops:
        if line.op is Ops.PREFETCH:
            found.setdefault(line.src[0].src[0], []).append(line.src[0].src[1])
    return [tuple([n.arg for n in offsets]) for offsets in found.values()]


def test_many_lines_are_asked_for_in_turns() -> None:
    wide = replace(TARGET, vector_bytes=64, registers=32)
    x = memory(2048, 1536)
    nest = optimize(kernel_of((memory(2048, 384) @ memory(384, 1536)).gelu() + x), wide)
    program = lower(nest, wide)
    check(program.uops, "program")
    assert shares(program) == [(0, 16, 32)] * 2, "the three lines of a row, to read and to write"
    at, sums = depths(program, Ops.PREFETCH), max(depths(program, Ops.MULACC))
    assert set(at) == {sums - 1}, "in the loop around the steps of a turn"
    (step,) = {
        line.src[0].src[0].src[1].src[1].arg for line in program.uops if line.op is Ops.PREFETCH
    }
    assert step == 1536, "a row further on in every turn"


def test_lines_that_turns_do_not_divide_are_asked_for_before_all_of_them() -> None:
    wide = replace(TARGET, vector_bytes=64, registers=32)
    kernel = kernel_of(memory(2048, 384) @ memory(384, 1536))
    *others, turns = optimize(kernel, wide).recipe
    assert turns.arg == 48, "eight turns"
    nest = optimize(kernel, wide, lambda *_: (*others, replace(turns, arg=384 // 3)))
    program = lower(nest, wide)
    assert len(asked(program.uops)) == 24
    assert set(depths(program, Ops.PREFETCH)) == {max(depths(program, Ops.MULACC)) - 2}


def test_lines_that_begin_anywhere_are_asked_for_by_every_vector() -> None:
    x = memory(2048, 390).shrink(((0, 2048), (3, 387)))
    lines = lines_of(memory(2048, 384) @ memory(384, 384) + x)
    assert asked(lines) == [False] * 12 + [True] * 6


def test_rows_that_are_packed_side_by_side_are_asked_for_if_they_are_many() -> None:
    wide = replace(TARGET, vector_bytes=64, registers=32)
    product = memory(100, 768) @ memory(3072, 768).transpose(0, 1)
    assert asked(lines_of(product, wide)).count(False) == 48 + 1, "three vectors, and what follows"
    assert asked(lines_of(product)).count(False) == 1, "16 rows are foreseen, and 32"
    assert not asked(lines_of(memory(4096, 4096).transpose(0, 1).contiguous(), wide))
