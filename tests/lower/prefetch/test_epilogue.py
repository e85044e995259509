"""The memory of a long sum's epilogue is prefetched before the sum ends."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.compiler.nests import kernel_of
from support.compiler.programs import TARGET, depths
from support.compiler.schedules import memory

from glassgrad import Tensor
from glassgrad.ir.ops import Ops
from glassgrad.ir.spec import check
from glassgrad.ir.stages import Program, Target
from glassgrad.ir.uop import UOp
from glassgrad.loops import optimize
from glassgrad.lower import lower
from glassgrad.render import render

WIDE = replace(TARGET, vector_bytes=64, registers=32)


def program_of(*tensors: Tensor, target: Target = TARGET) -> Program:
    program = lower(optimize(kernel_of(*tensors), target), target)
    check(program.uops, "program")
    return program


def epilogue_prefetches(program: Program) -> list[tuple[int, UOp]]:
    """(depth of the loops with sums inside, prefetch); without those of operands."""
    found = [line for line in program.uops if line.op is Ops.PREFETCH]
    inner = max(depths(program, Ops.MULACC), default=99)
    places = zip(depths(program, Ops.PREFETCH), found, strict=True)
    return [(inner - depth, line) for depth, line in places if depth < inner]


def is_written_flags(program: Program) -> list[bool]:
    """For every prefetch of the epilogue: True if the memory will be written."""
    return [line.arg for _, line in epilogue_prefetches(program)]


def test_a_tile_prefetches_the_rows_it_reads_and_writes_in_its_epilogue() -> None:
    program = program_of(memory(2048, 384) @ memory(384, 384) + memory(2048, 384))
    assert is_written_flags(program) == [False] * 6 + [True] * 6, (
        "6 rows of one line, two vectors each"
    )
    assert {inside for inside, _ in epilogue_prefetches(program)} == {1}
    last = program.uops.index(epilogue_prefetches(program)[-1][1])
    first = min(i for i, line in enumerate(program.uops) if line.op is Ops.MULACC)
    assert last < first, "before the sums"


def test_a_tile_stored_in_a_loop_is_prefetched_before_the_sums() -> None:
    program = program_of((memory(2048, 384) @ memory(384, 384)).gelu() + memory(2048, 384))
    assert is_written_flags(program) == [False] * 6 + [True] * 6
    assert len({line.src[0] for _, line in epilogue_prefetches(program)}) == 12, "each of them once"


def test_cached_memory_is_not_prefetched() -> None:
    product = memory(2048, 384) @ memory(384, 384) + memory(384)
    assert is_written_flags(program_of(product)) == [True] * 6, "not for a bias"
    assert not is_written_flags(program_of(memory(128, 384) @ memory(384, 128)))


@pytest.mark.parametrize("make", [lambda x: x.exp(), lambda x: x.sum(0), lambda x: x.softmax()])
def test_only_long_sums_prefetch_their_epilogue(make: object) -> None:
    assert callable(make)
    assert not is_written_flags(program_of(make(memory(2048, 384))))
    assert not is_written_flags(program_of(memory(2048, 32) @ memory(32, 384)))


def test_gpus_do_not_prefetch() -> None:
    target = replace(TARGET, has_threads=True, has_vector_alu=False)
    program = program_of(memory(2048, 384) @ memory(384, 384), target=target)
    assert all(line.op is not Ops.PREFETCH for line in program.uops)


def test_prefetches_tell_reads_from_writes() -> None:
    program = program_of(memory(2048, 384) @ memory(384, 384) + memory(2048, 384))
    text = render(program, TARGET).text
    assert text.count("i32 1, i32 3, i32 1)") == 6
    assert text.count("i32 0, i32 3, i32 1)") == 6 + 1, "and the rows of the next tile"


def test_stores_beside_a_sum_are_prefetched() -> None:
    x = memory(2048, 384)
    program = program_of(memory(2048, 384) @ memory(384, 384) + x, x.exp())
    assert is_written_flags(program) == [False, True, True], "18 lines: in six turns"


def test_prefetches_are_distributed_over_blocks_of_iterations() -> None:
    x = memory(2048, 1536)
    program = program_of((memory(2048, 384) @ memory(384, 1536)).gelu() + x, target=WIDE)
    shares: dict[UOp, list[int]] = {}
    for inside, line in epilogue_prefetches(program):
        assert inside == 1, "in the loop around the steps of a turn"
        pointer, offset = line.src[0].src
        shares.setdefault(pointer, []).append(offset.arg)
    assert list(shares.values()) == [[0, 16, 32]] * 2, "a row's three lines, to read and to write"
    steps = {pointer.src[1].src[1].arg for pointer in shares}
    assert steps == {1536}, "a row further on in every turn"


def test_cache_lines_that_blocks_do_not_divide_are_prefetched_first() -> None:
    kernel = kernel_of(memory(2048, 384) @ memory(384, 1536))
    *others, turns = optimize(kernel, WIDE).recipe
    assert turns.arg == 48, "eight turns"
    nest = optimize(kernel, WIDE, lambda *_: (*others, replace(turns, arg=384 // 3)))
    found = epilogue_prefetches(lower(nest, WIDE))
    assert [inside for inside, _ in found] == [2] * 24


def test_unaligned_cache_lines_are_prefetched_by_every_vector() -> None:
    x = memory(2048, 390).shrink(((0, 2048), (3, 387)))
    program = program_of(memory(2048, 384) @ memory(384, 384) + x)
    assert is_written_flags(program) == [False] * 12 + [True] * 6


def test_many_packed_rows_are_prefetched() -> None:
    product = memory(100, 768) @ memory(3072, 768).transpose(0, 1)
    assert is_written_flags(program_of(product, target=WIDE)).count(False) == 48, (
        "three vectors of rows"
    )
    assert all(is_written_flags(program_of(product))), (
        "16 rows are foreseen, and 32: only for its place"
    )
    turned = program_of(memory(4096, 4096).transpose(0, 1).contiguous(), target=WIDE)
    assert not is_written_flags(turned)
