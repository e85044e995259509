"""x[i // n, i % n]  ->  x[i]: merge adjacent buffer axes that one loop index addresses.

A reshape of a stored value is read through quotients and remainders. The flat address is the loop
index again; merging the axes removes the divisions.
"""

from __future__ import annotations

from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.linear import add, linear, scale
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Nest, Param
from glassgrad.ir.traverse import transform
from glassgrad.ir.uop import UOp

DIVISIONS = frozenset((Ops.FLOORDIV, Ops.FLOORMOD))


def flatten_buffer_axes(nest: Nest) -> Nest:
    """Merge adjacent axes of arguments while that removes divisions."""
    while axes := _find_axes(nest):
        nest = replace(nest, body=_merge_axes(nest.body, axes))
    return nest


def _find_axes(nest: Nest) -> dict[UOp, int]:
    """For each argument, one axis to merge with its successor."""
    accesses: dict[UOp, list[UOp]] = {}
    for node in nest.body.toposort():
        if node.op is Ops.INDEX and (param := _param_of(node)) is not None:
            accesses.setdefault(param, []).append(node)
    found: dict[UOp, int] = {}
    for param, uses in accesses.items():
        for axis in range(len(param.arg.shape) - 1):
            if param not in found and _saves_divisions(param, uses, axis):
                found[param] = axis
    return found


def _param_of(index: UOp) -> UOp | None:
    """The argument that an INDEX addresses, through earlier stores to it."""
    buffer = index.src[0]
    while buffer.op is Ops.STORE:
        buffer = buffer.buffer
    return buffer if buffer.op is Ops.PARAM else None


def _saves_divisions(param: UOp, accesses: list[UOp], axis: int) -> bool:
    """True if the two axes are contiguous and their merged index needs fewer divisions, or if one
    is of size 1 and keeps others apart.
    """
    shape, strides = param.arg.shape, param.arg.strides
    if any(access.gate is not None for access in accesses):
        return False
    if 1 in shape[axis : axis + 2]:
        return any(_divisions(*access.indices) for access in accesses)
    if strides[axis] != strides[axis + 1] * shape[axis + 1]:
        return False
    separate = [_divisions(*access.indices[axis : axis + 2]) for access in accesses]
    if not any(separate):
        return False
    merged = [_divisions(_merged_index(param, access.indices, axis)) for access in accesses]
    return merged != separate and all(
        after <= before for after, before in zip(merged, separate, strict=True)
    )


def _divisions(*indices: UOp) -> int:
    return sum([atom.op in DIVISIONS for index in indices for atom in linear(index).terms])


def _merged_index(param: UOp, indices: tuple[UOp, ...], axis: int) -> UOp:
    return add(scale(indices[axis], param.arg.shape[axis + 1]), indices[axis + 1])


def _merge_axes(body: UOp, axes: dict[UOp, int]) -> UOp:
    """The body with each of these argument axes merged with its successor."""

    def merge(node: UOp, rebuilt: UOp) -> UOp:
        if node in axes:
            return node.replace(arg=_merged_param(node.arg, axes[node]))
        param = _param_of(node) if node.op is Ops.INDEX else None
        if param not in axes:
            return rebuilt
        axis, (buffer, *indices) = axes[param], rebuilt.src
        merged = _merged_index(param, tuple(indices), axis)
        return buffer.index(*indices[:axis], merged, *indices[axis + 2 :])

    return transform(body, merge)


def _merged_param(param: Param, axis: int) -> Param:
    shape, strides = param.shape, param.strides
    size = shape[axis] * shape[axis + 1]
    stride = strides[axis + 1] if shape[axis + 1] > 1 else strides[axis]
    return Param(
        param.slot,
        (*shape[:axis], size, *shape[axis + 2 :]),
        (*strides[:axis], stride, *strides[axis + 2 :]),
    )
