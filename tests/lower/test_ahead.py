"""The next panel is asked for while sums go over this one."""

from __future__ import annotations

import pytest
from nests import kernel_of
from programs import TARGET, depths
from schedules import memory

from glassgrad import Tensor
from glassgrad.base.records import replace
from glassgrad.ir.ops import Ops
from glassgrad.ir.spec import check
from glassgrad.ir.stages import Program, Target
from glassgrad.ir.uop import UOp
from glassgrad.loops import optimize
from glassgrad.lower import lower

MANY_REGISTERS = replace(TARGET, registers=32, vector_bytes=64, l2_bytes=1 << 20)


def program_of(tensor: Tensor, target: Target = MANY_REGISTERS) -> Program:
    program = lower(optimize(kernel_of(tensor), target), target)
    check(program.uops, "program")
    return program


def asked_beside_products(program: Program) -> list[UOp]:
    """What is asked for in the innermost loop, among the products."""
    products = [n for n, line in enumerate(program.uops) if line.op is Ops.MULACC]
    begin = max(n for n in range(products[0]) if program.uops[n].op is Ops.RANGE)
    inside = program.uops[begin : products[-1]]
    return [line.src[0] for line in inside if line.op is Ops.PREFETCH]


def linear(rows: int, depth: int, columns: int) -> Tensor:
    """A layer whose weights lie one row behind the other."""
    return memory(rows, depth) @ memory(columns, depth).transpose()


@pytest.mark.parametrize("columns", [3072, 3000])
def test_weights_are_asked_for_once_in_each_step(columns: int) -> None:
    program = program_of(linear(256, 768, columns))
    (place,) = asked_beside_products(program)
    steps = [u.src[1] for u in place.toposort() if u.op is Ops.INDEX]
    assert steps, "the place moves on with the loops"
    inner = max(depths(program, Ops.MULACC))
    assert inner in depths(program, Ops.PREFETCH)


def test_the_place_is_behind_what_is_packed_now() -> None:
    """Two panels of 48 rows are packed at a time: what follows begins 96 rows further on."""
    program = program_of(linear(256, 768, 3072))
    (place,) = asked_beside_products(program)
    assert place.op is Ops.INDEX and place.src[1].is_const
    assert place.src[1].arg % (48 * 768) == 0 and place.src[1].arg > 0


def test_all_of_the_next_panels_has_been_asked_for_when_these_are_done() -> None:
    (place,) = asked_beside_products(program_of(linear(256, 768, 3072)))
    ahead = place.src[1].arg
    steps = 32 * ahead // 48  # 32 tiles of 8 rows, each with sums of all steps, for every panel
    inner = place.src[0].src[1]
    assert inner.op is Ops.SHL, "a power of two of elements in every step of the inner loop"
    assert ahead <= steps << inner.src[1].arg < 2 * ahead


def test_nobody_asks_for_what_is_packed_once_or_does_not_lie_in_a_row() -> None:
    assert not asked_beside_products(program_of(memory(1024, 768) @ memory(768, 3072)))
    assert not asked_beside_products(program_of(linear(48, 64, 48)))
