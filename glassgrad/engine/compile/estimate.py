"""Kernel -> (bytes, operations): the least memory traffic, and the arithmetic."""

from __future__ import annotations

from math import prod

from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.stages import Kernel
from glassgrad.ir.uop import UOp

COUNTED = OpGroup.ELEMENTWISE - {Ops.CAST, Ops.BITCAST}


def estimate(kernel: Kernel) -> tuple[int, int]:
    """Every buffer once, and every operation once per iteration of the loops it depends on."""
    nodes = kernel.body.toposort()
    moved = sum(_bytes(node) for node in nodes if node.op is Ops.PARAM)
    operations = 0
    for node in nodes:
        if node.op in COUNTED and node.dtype.kind not in ("index", "bool"):
            operations += _steps(node)
        elif node.op is Ops.REDUCE:
            operations += _steps(node) * prod(r.size for r in node.src[1:])
    return moved, operations


def _bytes(param: UOp) -> int:
    shape: tuple[int, ...] = param.arg.shape
    return prod(shape) * param.dtype.itemsize


def _steps(node: UOp) -> int:
    sizes: list[int] = [r.size for r in node.ranges]
    return prod(sizes)
