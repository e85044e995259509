"""Small nests to make moves on, and whether a move left their meaning alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from glassgrad import Tensor
from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Kernel, Nest, Target
from glassgrad.ir.uop import UOp
from glassgrad.loops.moves.table import apply_opt
from glassgrad.loops.nest import axes
from glassgrad.loops.opts import IllegalMove, Opt, OptOps
from glassgrad.schedule import schedule
from support.compiler.schedules import TARGET, leaf, planned, reduce
from support.references.graph import Array, numpy_dtype
from support.references.kernel import run_kernel

GPU = Target(
    "GPU", "cuda", has_vector_alu=False, has_threads=True, group_size=64, shared_bytes=1 << 15
)


def kernel_of(*tensors: Tensor) -> Kernel:
    """The only kernel of these tensors."""
    (kernel,) = planned(*tensors).kernels
    return kernel


def ops_of(nest: Nest) -> list[OptOps]:
    return [opt.op for opt in nest.recipe]


def nest_of(*roots: UOp) -> Nest:
    """The only kernel of these values, as loops without a shape."""
    (kernel,) = schedule(roots, TARGET).kernels
    return Nest(kernel.body, kernel.outer, kernel.may_alias)


def numbers(*shape: int) -> UOp:
    return leaf(np.arange(float(np.prod(shape))).reshape(shape) % 7)


def added(*shape: int) -> Nest:
    """y[i, …] = x[i, …] + 1, in as many loops as there are axes."""
    x = UOp(Ops.PERMUTE, dtypes.float32, (numbers(*shape[::-1]),), tuple(range(len(shape)))[::-1])
    return nest_of(x + 1.0)


def row_sums(rows: int, columns: int) -> Nest:
    return nest_of(reduce(numbers(rows, columns), Ops.ADD, 1))


def product(m: int, n: int, k: int) -> Nest:
    x, w = numbers(m, k), numbers(k, n)
    left = UOp(Ops.RESHAPE, x.dtype, (x,), (m, 1, k))
    right = UOp(Ops.PERMUTE, w.dtype, (w,), (1, 0))
    return nest_of(reduce(left * right, Ops.ADD, 2))


def move(nest: Nest, op: OptOps, axis: int, arg: object = None, target: Target = TARGET) -> Nest:
    return apply_opt(nest, Opt(op, axis, arg), target)


def refused(nest: Nest, op: OptOps, axis: int, arg: object = None, target: Target = TARGET) -> str:
    """Why a move cannot be made."""
    with pytest.raises(IllegalMove) as caught:
        move(nest, op, axis, arg, target)
    return str(caught.value)


def results(nest: Nest) -> list[Array]:
    """What every argument holds after the nest ran on numbers that depend on the slot alone."""
    params = {n.arg.slot: n for n in nest.body.toposort() if n.op is Ops.PARAM}
    arrays = [np.zeros(0)] * (max(params) + 1)  # a slot may be left over
    for slot, param in params.items():
        counted = np.arange(np.prod(param.arg.shape)) % (5 + slot)
        arrays[slot] = counted.reshape(param.arg.shape).astype(numpy_dtype(param.dtype))
    run_kernel(nest, arrays)
    return arrays


def same(one: Nest, two: Nest) -> None:
    for left, right in zip(results(one), results(two), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-5)


def kinds(nest: Nest) -> dict[AxisKind, list[int]]:
    """The sizes of the ranges of each kind, by number."""
    found: dict[AxisKind, list[int]] = {}
    for axis in axes(nest):
        found.setdefault(axis.kind, []).append(axis.size)
    return found


def binders(nest: Nest, op: Ops) -> list[UOp]:
    return [node for node in nest.body.toposort() if node.op is op]


def loops(ranges: Sequence[UOp]) -> list[int]:
    return [r.axis for r in ranges]
