"""Which sums a maximum scales, and which loops run along its axis."""

from __future__ import annotations

from collections.abc import Callable
from math import log2

import numpy as np
import pytest
from support.compiler.nests import kernel_of
from support.compiler.schedules import TARGET, memory

from glassgrad import Tensor
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Nest
from glassgrad.loops.analysis.online_softmax import OnlineSoftmax, find_online_softmax
from glassgrad.loops.moves.table import apply_opt
from glassgrad.loops.opts import IllegalMove, Opt, OptOps


def nest_of(*tensors: Tensor) -> Nest:
    kernel = kernel_of(*tensors)
    return Nest(kernel.body, kernel.outer, kernel.may_alias)


def found(nest: Nest) -> OnlineSoftmax:
    """What is relative to the first maximum."""
    reduces = [node for node in nest.body.toposort() if node.op is Ops.REDUCE]
    (axis,) = next(node for node in reduces if node.arg is Ops.MAX).bound
    return find_online_softmax(nest, axis)


def test_attention_has_two_sums_and_two_rows_in_scratch() -> None:
    q, k, v = memory(16, 64, 4), memory(16, 40, 4), memory(16, 40, 4)
    family = found(nest_of((q @ k.transpose(-2, -1) * 0.5).softmax(-1) @ v))
    assert [relation.rate for relation in family.sums.values()] == pytest.approx([log2(np.e)] * 2)
    assert len(family.stages) == 2 and len(family.exponentials) == 1, (
        "scores, and what exp makes of them"
    )
    assert len(family.loops) == 5 and all(r.size == 40 for r in family.loops)


@pytest.mark.parametrize(
    ("result", "rates"),
    [
        (lambda x: (x - x.max(1, keepdim=True)).exp2().sum(1), [1.0]),
        (lambda x: ((x - x.max(1, keepdim=True)) * 3).exp2().sum(1), [3.0]),
        (lambda x: ((x - x.max(1, keepdim=True)).exp2() * x).sum(1), [1.0]),
        (lambda x: (x - x.max(1, keepdim=True)).exp2().square().sum(1), [2.0]),
        (lambda x: x.softmax(1), [log2(np.e)]),
    ],
)
def test_sums_of_powers_know_their_rate(
    result: Callable[[Tensor], Tensor], rates: list[float]
) -> None:
    family = found(nest_of(result(memory(6, 32))))
    assert [relation.rate for relation in family.sums.values()] == pytest.approx(rates)


def test_a_loop_that_is_cut_already_is_not_the_whole_axis() -> None:
    x = memory(6, 32)
    nest = nest_of((x - x.max(1, keepdim=True)).exp().sum(1))
    (node,) = found(nest).sums
    cut = apply_opt(nest, Opt(OptOps.UNROLL, node.bound[0].axis, 4), TARGET)
    with pytest.raises(IllegalMove, match="no sum is scaled"):
        found(cut)


@pytest.mark.parametrize(
    "result",
    [
        lambda x: x.max(1),
        lambda x: (x - x.max(1, keepdim=True)).sum(1),
        lambda x: (x * 2 - x.max(1, keepdim=True)).exp().sum(1),
        lambda x: (x.max(1, keepdim=True) - x).exp().sum(1),
        lambda x: ((x - x.max(1, keepdim=True)) * -1.0).exp().sum(1),
        lambda x: (x.flip(1) - x.max(1, keepdim=True)).exp().sum(1),
        lambda x: (x - x.max(1, keepdim=True)).exp2().square().log2().sum(1),
    ],
)
def test_sums_that_the_maximum_does_not_scale_are_not_carried(
    result: Callable[[Tensor], Tensor],
) -> None:
    nest = nest_of(result(memory(6, 32)))
    with pytest.raises(IllegalMove, match="no sum is scaled"):
        found(nest)


def test_weights_that_are_outputs_are_not_carried() -> None:
    q, k, v = memory(16, 64, 4), memory(16, 40, 4), memory(16, 40, 4)
    scores = q @ k.transpose(-2, -1)
    weights = (scores - scores.max(-1, keepdim=True)).exp()
    nest = nest_of(weights @ v, weights.contiguous())
    with pytest.raises(IllegalMove, match="more than the maximum and its sums"):
        found(nest)
