"""Values in memory, and the Schedule that a fixed machine with two cores gets for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glassgrad import Tensor
from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Schedule, Target
from glassgrad.ir.uop import UOp
from glassgrad.memory.view import View
from glassgrad.schedule import schedule
from glassgrad.tensor.lazy.collect import collect_values, graph_to_compute
from support.random.graphs import differences
from support.references.graph import evaluate_all
from support.references.kernel import run_schedule

TARGET = Target("CPU", "llvm", cores=2)


def memory(*shape: int, dtype: Any = dtypes.float32) -> Tensor:
    """A tensor of this shape that is in memory; its numbers do not matter."""
    return Tensor.empty(*shape, dtype=dtype).realize()


def planned(*tensors: Tensor, target: Target = TARGET) -> Schedule:
    """The kernels for these tensors, writes included."""
    roots, *_ = collect_values([tensor.uop for tensor in tensors])
    return schedule(graph_to_compute(roots), target)


def kernels(*tensors: Tensor) -> int:
    return len(planned(*tensors).kernels)


def sizes(made: Schedule) -> set[int]:
    """How many elements the buffers of a schedule have."""
    return {int(np.prod(node.shape)) for slots in made.buffers for node in slots}


def leaf(values: object, dtype: str = "float32") -> UOp:
    """A BUFFER node of these numbers."""
    array = np.array(values, dtype)
    return UOp(Ops.BUFFER, dtypes.named(dtype), (), View.from_host(array))


def assign(target: UOp, value: UOp, *chain: tuple[Ops, Any]) -> UOp:
    return UOp(Ops.ASSIGN, target.dtype, (target, value), chain)


def reduce(x: UOp, op: Ops, *axes: int) -> UOp:
    return UOp(Ops.REDUCE, x.dtype, (x,), (op, axes))


def right(roots: Sequence[UOp]) -> Schedule:
    """The schedule of these values, after its kernels gave what the graph means."""
    wanted = evaluate_all(roots)
    made = schedule(roots, TARGET)
    assert differences(roots, run_schedule(made), wanted) == []
    return made
