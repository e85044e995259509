"""Nest -> Program: loops are balanced, operands precede their users, and results are right."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from support.compiler.nests import GPU, added, binders, move, numbers, product, row_sums
from support.compiler.on_cpu import cpu
from support.compiler.programs import all_of, count, depths, program_of
from support.compiler.schedules import TARGET, assign, reduce
from support.random.graphs import random_graph
from support.random.recipes import RandomChooser

from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest
from glassgrad.ir.uop import UOp
from glassgrad.loops import assign_grid_axes, optimize
from glassgrad.loops.opts import OptOps
from glassgrad.lower import lower
from glassgrad.memory.view import View
from glassgrad.render import render
from glassgrad.schedule import schedule


def run(nest: Nest, *arrays: np.ndarray) -> None:
    """Compile and run a nest on these arrays."""
    device = cpu()
    executable = device.compile(render(program_of(nest, device.target), device.target))
    executable(tuple(View.from_host(array).address for array in arrays))


def test_a_loop_per_axis_and_one_store() -> None:
    program = program_of(added(4, 6))
    assert count(program, Ops.RANGE) == count(program, Ops.END) == 2
    assert depths(program, Ops.STORE) == [2]
    assert count(program, Ops.LOAD) == 1


@pytest.mark.parametrize("batch", range(2))
def test_programs_are_well_formed_under_any_recipe(batch: int) -> None:
    for seed in range(batch * 40, batch * 40 + 40):
        for kernel in schedule(random_graph(Random(seed), 12), TARGET).kernels:
            program = lower(optimize(kernel, TARGET, RandomChooser(seed)), TARGET)
            seen = set()
            open_loops = []
            for uop in program.uops:
                assert all(source in seen for source in uop.src), uop
                seen.add(uop)
                if uop.op is Ops.RANGE:
                    open_loops.append(uop)
                elif uop.op is Ops.END:
                    assert open_loops.pop() is uop.src[0]
            assert not open_loops


def test_loops_have_distinct_numbers() -> None:
    program = program_of(product(4, 6, 8))
    numbers_given = [uop.arg[0] for uop in all_of(program, Ops.RANGE)]
    assert numbers_given == sorted(set(numbers_given))


def test_the_core_loop_is_outermost_and_its_size_is_known() -> None:
    program = program_of(move(added(4, 6), OptOps.CORE, 1))
    assert program.cores == 6
    ranges = all_of(program, Ops.RANGE)
    assert ranges[0].arg[1] is AxisKind.CORE


def test_a_grid_has_coordinates_instead_of_loops() -> None:
    nest = move(assign_grid_axes(added(4, 6), GPU), OptOps.LOCAL, 1, 3, GPU)
    program = program_of(nest, GPU)
    assert count(program, Ops.RANGE) == 0
    assert program.groups == (4, 2)
    assert program.threads == (3,)
    assert [uop.arg for uop in all_of(program, Ops.SPECIAL)] == [
        ("gidx0", 4),
        ("gidx1", 2),
        ("lidx0", 3),
    ]


def test_a_barrier_follows_the_fill_of_shared_scratch() -> None:
    nest = move(assign_grid_axes(row_sums(4, 12), GPU), OptOps.GROUP, 1, 3, GPU)
    program = program_of(nest, GPU)
    assert count(program, Ops.BARRIER) >= 1
    assert program.threads == (3,)
    assert count(program, Ops.SCRATCH) == 1


def test_overwritten_values_are_read_first() -> None:
    """A sum over x overwrites x and is read once more afterwards."""
    x, w = numbers(64), numbers(64, 16)
    column = UOp(Ops.RESHAPE, x.dtype, (x,), (64, 1))
    total = reduce(column * w, Ops.ADD, 1)
    roots = [assign(x, total + 1.0), total * 3.0]
    made = schedule(roots, TARGET)
    (kernel,), (slots,) = made.kernels, made.buffers
    assert any(line.op is Ops.STAGE for line in kernel.body.src)
    old = np.arange(64, dtype=np.float32)
    weights = np.ones((64, 16), np.float32)
    arrays = {x: old.copy(), w: weights, roots[1]: np.zeros(64, np.float32)}
    run(Nest(kernel.body, kernel.outer, kernel.may_alias), *[arrays[node] for node in slots])
    np.testing.assert_array_equal(arrays[x], old * 16 + 1)
    np.testing.assert_array_equal(arrays[roots[1]], old * 48)


def test_a_matrix_product_with_staged_panels_is_right() -> None:
    nest = product(12, 16, 10)
    for op, axis, arg in (
        (OptOps.UPCAST, 1, 8),
        (OptOps.UPCAST, 0, 6),
        (OptOps.SWAP, 0, 1),
        (OptOps.PACK, 1, 2),
    ):
        nest = move(nest, op, axis, arg)
    rng = np.random.default_rng(0)
    x = rng.integers(-4, 5, (12, 10)).astype(np.float32)
    w = rng.integers(-4, 5, (10, 16)).astype(np.float32)
    out = np.zeros((12, 16), np.float32)
    run(nest, out, x, w)
    np.testing.assert_array_equal(out, x @ w)


def test_the_program_has_the_name_and_scratch_size() -> None:
    nest = move(product(6, 8, 10), OptOps.PACK, 0, 2)
    program = program_of(nest)
    assert program.scratch_bytes == 8 * 10 * 4
    assert program.name == nest.name
    assert len(binders(nest, Ops.STAGE)) == count(program, Ops.SCRATCH)
