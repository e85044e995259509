"""Rows of any length have loops of aligned length, if a mask hides the padding from all rows."""

from __future__ import annotations

import pytest
from support.compiler.programs import TARGET
from support.compiler.schedules import memory, planned

from glassgrad import Tensor
from glassgrad.engine.compile.optimizer_policy import current_policy
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Nest
from glassgrad.ir.uop import UOp
from glassgrad.loops import optimize
from glassgrad.loops.analysis.mask_alignment import align_masked_loops
from glassgrad.loops.analysis.mask_bounds import MASK_ALIGNMENT
from glassgrad.loops.moves.table import apply_opt
from glassgrad.loops.nest import axes
from glassgrad.loops.opts import Opt, OptOps


def attention(time: int, offset: int = 1) -> Nest:
    """Causal attention: each query attends to the keys before it, and `offset` more."""
    q, k, v = [memory(8, time, 32) for _ in range(3)]
    line = Tensor.arange(time)
    mask = line < line.unsqueeze(1) + offset
    scores = mask.where(q @ k.transpose(-2, -1), -float("inf"))
    (kernel,) = planned(scores.softmax(-1) @ v).kernels
    return Nest(kernel.body, kernel.outer)


def gates(nest: Nest, base: Ops) -> list[UOp | None]:
    return [n.gate for n in nest.body.toposort() if n.op is Ops.INDEX and n.src[0].op is base]


def test_loops_over_masked_elements_are_padded_to_the_alignment() -> None:
    before = attention(250)
    after = align_masked_loops(before, before.outer[-1])
    assert sorted({r.size for r in axes(after)}) == [8, 32, 250, 256]
    stages = [n.arg for n in after.body.toposort() if n.op is Ops.STAGE and n.arg]
    assert stages and set(stages) == {(256,)}
    assert all(r.size == 250 for s in after.body.src for r in s.bound if r.size > 32)


def test_memory_is_not_touched_beyond_its_end_and_scratch_needs_no_condition() -> None:
    nest = attention(250)
    nest = align_masked_loops(nest, nest.outer[-1])
    assert sum(gate is not None for gate in gates(nest, Ops.PARAM)) == 2, "keys and values"
    assert all(gate is None for gate in gates(nest, Ops.STAGE))


@pytest.mark.parametrize(
    ("time", "offset"), [(100, 1), (3 * MASK_ALIGNMENT, 1), (256, 1), (250, 2), (250, 60)]
)
def test_loops_without_masked_steps_at_the_end_are_not_changed(time: int, offset: int) -> None:
    nest = attention(time, offset)
    assert align_masked_loops(nest, nest.outer[-1]) is nest


def test_all_loops_of_odd_rows_end_early() -> None:
    q, k, v = [memory(8, 250, 32) for _ in range(3)]
    (kernel,) = planned(q.scaled_dot_product_attention(k, v, is_causal=True)).kernels
    nest = optimize(kernel, TARGET, current_policy())
    short = [r for r in axes(nest) if not r.src[0].is_const]
    assert len(short) == 5, "scores, their largest, exponentials, their sum, values"


def test_a_move_with_unknown_steps_removes_the_bounds() -> None:
    nest = attention(256)
    nest = apply_opt(nest, Opt(OptOps.ROW_BLOCK, nest.outer[-1].axis, 32), TARGET)
    assert nest.mask_bounds
    axis = next(r for r in axes(nest) if r.axis == nest.mask_bounds[-1].axis)
    reduced = [n.axis for n in nest.mask_bounds if any(r.axis == n.axis for r in _reduced(nest))]
    tiled = apply_opt(nest, Opt(OptOps.TILE, reduced[0], 16), TARGET)
    assert [n.step for n in tiled.mask_bounds if n.axis == reduced[0]] == [16]
    assert axis.size == 256
    shared = apply_opt(nest, Opt(OptOps.GROUPTOP, reduced[0], 4), TARGET)
    assert shared.mask_bounds == ()


def _reduced(nest: Nest) -> list[UOp]:
    return [r for node in nest.body.toposort() if node.op is Ops.REDUCE for r in node.bound]
