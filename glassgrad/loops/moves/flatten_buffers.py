"""x[i // n, i % n]  ->  x[i]: axes of an argument that one number walks through become one.

What was reshaped is stored as it was made, and read by quotients and remainders. As a place in
memory they add up to the number again; but no longer where loops cut it at other places.
"""

from __future__ import annotations

from glassgrad.base.fast_dataclasses import replace
from glassgrad.ir.facts import rebuilt
from glassgrad.ir.linear import add, linear, scale
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Nest, Param
from glassgrad.ir.uop import UOp

DIVIDING = frozenset((Ops.FLOORDIV, Ops.FLOORMOD))


def straighten(nest: Nest) -> Nest:
    """Join neighbouring axes of arguments as long as it makes indices simpler."""
    while axes := _joinable(nest):
        nest = replace(nest, body=_joined(nest.body, axes))
    return nest


def _joinable(nest: Nest) -> dict[UOp, int]:
    """Arguments, and an axis of each that is better joined with the next one."""
    places: dict[UOp, list[UOp]] = {}
    for node in nest.body.toposort():
        if node.op is Ops.INDEX and (param := _param_of(node)) is not None:
            places.setdefault(param, []).append(node)
    found: dict[UOp, int] = {}
    for param, indices in places.items():
        for axis in range(len(param.arg.shape) - 1):
            if param not in found and _helps(param, indices, axis):
                found[param] = axis
    return found


def _param_of(index: UOp) -> UOp | None:
    """The argument that an INDEX is a place in, also if it was stored to before."""
    buffer = index.src[0]
    while buffer.op is Ops.STORE:
        buffer = buffer.buffer
    return buffer if buffer.op is Ops.PARAM else None


def _helps(param: UOp, places: list[UOp], axis: int) -> bool:
    """Do indices of an axis and the next one lie in a row, and need fewer divisions as one?"""
    shape, strides = param.arg.shape, param.arg.strides
    if strides[axis] != strides[axis + 1] * shape[axis + 1]:
        return False
    if any(place.gate is not None for place in places):
        return False
    apart = [_divisions(*place.indices[axis : axis + 2]) for place in places]
    if not any(apart):
        return False
    joined = [_divisions(_as_one(param, place.indices, axis)) for place in places]
    return joined != apart and all(one <= two for one, two in zip(joined, apart, strict=True))


def _divisions(*indices: UOp) -> int:
    return sum([atom.op in DIVIDING for index in indices for atom in linear(index).terms])


def _as_one(param: UOp, indices: tuple[UOp, ...], axis: int) -> UOp:
    return add(scale(indices[axis], param.arg.shape[axis + 1]), indices[axis + 1])


def _joined(body: UOp, axes: dict[UOp, int]) -> UOp:
    """The body with these axes of arguments, each together with the next one, as one axis."""
    done = {param: param.replace(arg=_with_one_axis(param.arg, n)) for param, n in axes.items()}
    for node in body.toposort():
        if node in done:
            continue
        done[node] = rebuilt(node, done)
        param = _param_of(node) if node.op is Ops.INDEX else None
        if param in axes:
            axis, (buffer, *indices) = axes[param], done[node].src
            one = _as_one(param, tuple(indices), axis)
            done[node] = buffer.index(*indices[:axis], one, *indices[axis + 2 :])
    return done[body]


def _with_one_axis(param: Param, axis: int) -> Param:
    shape, strides = param.shape, param.strides
    size = shape[axis] * shape[axis + 1]
    return Param(
        param.slot,
        (*shape[:axis], size, *shape[axis + 2 :]),
        (*strides[:axis], *strides[axis + 1 :]),
    )
