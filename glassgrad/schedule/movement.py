"""Movement ops as index arithmetic: the source index of each element of a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from glassgrad.base.dtype import dtypes
from glassgrad.base.errors import ShapeError
from glassgrad.ir.divmod import floordiv, is_multiple, mod, within
from glassgrad.ir.linear import ZERO, add, scale, sub
from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.shape import Shape, windowed
from glassgrad.ir.size import Size
from glassgrad.ir.uop import UOp

Indices = tuple[UOp, ...]
Conditions = tuple[UOp, ...]
Moved = tuple[Indices, Conditions]

MAX_CACHED_MOVES = 1 << 16  # entries of the cache of `move`
_cache: dict[tuple[Ops, Any, Shape, Indices], Moved] = {}


def move(node: UOp, indices: Indices) -> Moved:
    """The source indices of the element at `indices`, and the conditions under which it exists."""
    source = node.src[0]
    key = (node.op, node.arg, source.shape, indices)
    found = _cache.get(key)
    if found is None:
        if len(_cache) > MAX_CACHED_MOVES:
            clear()
        found = _cache[key] = MOVES[node.op](node.arg, source.shape, indices)
    return found


def clear() -> None:
    _cache.clear()


def gather_indices(node: UOp, indices: Indices, gate: UOp | None = None) -> Moved:
    """GATHER: the index along one axis is itself a value of the graph.

    It appears as INDEX(value, i, …), an atom that is replaced when the expression is built.
    """
    axis = node.arg
    inner = indices if gate is None else (*indices, gate)
    atom = UOp(Ops.INDEX, dtypes.index, (node.src[1], *inner))
    moved = (*indices[:axis], atom, *indices[axis + 1 :])
    size = node.src[0].shape[axis]
    return moved, () if _is_in_bounds(node.src[1], size) else within(atom, 0, size)


def _is_in_bounds(value: UOp, size: int) -> bool:
    """True if every element is known to be in 0 … size-1. Movement only adds zeros."""
    while value.op in OpGroup.MOVEMENT:
        value = value.src[0]
    return bool(value.vmin >= 0 and value.vmax < size)


def broadcast_indices(indices: Indices, shape: Shape, source: Shape) -> Indices:
    """The indices into a source of an elementwise op."""
    if shape == source:
        return indices
    skipped = len(shape) - len(source)
    return tuple(
        [ZERO if n == 1 else index for index, n in zip(indices[skipped:], source, strict=True)]
    )


def reshape(shape: Shape, source: Shape, indices: Indices) -> Moved:
    """Flatten all axes and split them again; groups of axes with equal products stay separate."""
    if 0 in source:  # no element is read
        return (ZERO,) * len(source), ()
    result: list[UOp] = []
    taken = 0
    for before, after in _groups(source, shape):
        inner = indices[taken : taken + len(after)]
        taken += len(after)
        result.extend(_regroup(inner, after, before))
    return tuple(result), ()


def _groups(source: Shape, shape: Shape) -> list[tuple[Shape, Shape]]:
    """The finest partition of two shapes into groups of axes with equal products."""
    groups: list[tuple[Shape, Shape]] = []
    i = j = 0
    while i < len(source) or j < len(shape):
        start, begin = i, j
        left = right = 1
        if i < len(source):
            left, i = source[i], i + 1
        if j < len(shape):
            right, j = shape[j], j + 1
        while left != right:
            if i == len(source) and j == len(shape):
                raise _dynamic_split_error(
                    shape, source, next(n for n in (left, right) if isinstance(n, Size))
                )
            if (left < right or j == len(shape)) and i < len(source):
                left, i = left * source[i], i + 1
            else:
                right, j = right * shape[j], j + 1
        groups.append((source[start:i], shape[begin:j]))
    return groups


def _regroup(indices: Indices, shape: Shape, source: Shape) -> list[UOp]:
    if shape == source:
        return list(indices)
    flat = ZERO
    has_size = any(isinstance(n, Size) for n in shape)
    for index, n in zip(indices, shape, strict=True):
        if n == 1 and has_size:  # its only index is 0
            continue
        if isinstance(n, Size) and flat is not ZERO:
            raise _dynamic_split_error(shape, source, n)
        flat = add(scale(flat, n), index)
    result: list[UOp] = []
    for axis in range(len(source) - 1, -1, -1):
        last = all(n == 1 for n in source[:axis])
        if isinstance(source[axis], Size) and not last:
            raise _dynamic_split_error(shape, source, source[axis])
        result.append(flat if last and source[axis] != 1 else mod(flat, source[axis]))
        flat = floordiv(flat, source[axis])
    return result[::-1]


def _dynamic_split_error(shape: Shape, source: Shape, size: Size) -> ShapeError:
    return ShapeError(
        f"cannot reshape {source} to {shape}: element positions would depend on {size}",
        hint="keep axes whose size is known only at launch as they are",
    )


def _permute(order: tuple[int, ...], source: Shape, indices: Indices) -> Moved:
    moved = list(indices)
    for axis, origin in enumerate(order):
        moved[origin] = indices[axis]
    return tuple(moved), ()


def _expand(shape: Shape, source: Shape, indices: Indices) -> Moved:
    pairs = zip(indices, source, strict=True)
    return tuple([ZERO if n == 1 else index for index, n in pairs]), ()


def _pad(padding: tuple[tuple[int, int], ...], source: Shape, indices: Indices) -> Moved:
    moved: list[UOp] = []
    conditions: list[UOp] = []
    for index, (before, after), n in zip(indices, padding, source, strict=True):
        inner = sub(index, before) if before else index
        if before or after:
            conditions.extend(within(inner, 0, n))
        moved.append(inner)
    return tuple(moved), tuple(conditions)


def _shrink(box: tuple[tuple[int, int], ...], source: Shape, indices: Indices) -> Moved:
    pairs = zip(indices, box, strict=True)
    return tuple([add(index, start) if start else index for index, (start, _) in pairs]), ()


def _flip(axes: tuple[int, ...], source: Shape, indices: Indices) -> Moved:
    moved = list(indices)
    for axis in axes:
        moved[axis] = add(scale(indices[axis], -1), source[axis] - 1)
    return tuple(moved), ()


def _window(arg: tuple[int, int, int, int], source: Shape, indices: Indices) -> Moved:
    """in = o·stride + k·dilation"""
    axis, _, stride, dilation = arg
    moved = list(indices[:-1])
    moved[axis] = add(scale(indices[axis], stride), scale(indices[-1], dilation))
    return tuple(moved), ()


def _window_adjoint(arg: tuple[int, int, int, int], source: Shape, indices: Indices) -> Moved:
    """o = (in − k·dilation) / stride, where that is a whole number and in range"""
    axis, _, stride, dilation = arg
    distance = sub(indices[axis], scale(indices[-1], dilation))
    moved = list(indices)
    moved[axis] = floordiv(distance, stride)
    conditions = (*is_multiple(distance, stride), *within(moved[axis], 0, source[axis]))
    return tuple(moved), conditions


MOVES: dict[Ops, Callable[[Any, Shape, Indices], Moved]] = {
    Ops.RESHAPE: reshape,
    Ops.PERMUTE: _permute,
    Ops.EXPAND: _expand,
    Ops.PAD: _pad,
    Ops.SHRINK: _shrink,
    Ops.FLIP: _flip,
    Ops.WINDOW: _window,
    Ops.WINDOW_ADJOINT: _window_adjoint,
}


def destination(node: UOp, axes: Indices) -> Indices:
    """The indices written for the element at `axes`: an ASSIGN writes through its movement
    chain.
    """
    if node.op is not Ops.ASSIGN or not node.arg:
        return axes
    shapes = [node.src[0].shape]
    for op, arg in node.arg:
        shapes.append(SHAPES[op](arg, shapes[-1]))
    for (op, arg), shape in zip(reversed(node.arg), reversed(shapes[:-1]), strict=True):
        axes, conditions = MOVES[op](arg, shape, axes)
        assert not conditions, f"cannot write through {op}"
    return axes


def reshape_indices(node: UOp, axes: Indices) -> Indices:
    """The indices in a RESHAPE of its source's element at `axes`."""
    return reshape(node.src[0].shape, node.shape, axes)[0]


SHAPES: dict[Ops, Callable[[Any, Shape], Shape]] = {
    Ops.RESHAPE: lambda arg, shape: arg,
    Ops.PERMUTE: lambda arg, shape: tuple([shape[axis] for axis in arg]),
    Ops.SHRINK: lambda arg, shape: tuple([stop - start for start, stop in arg]),
    Ops.FLIP: lambda arg, shape: shape,
    Ops.WINDOW: windowed,
}
