"""The shape of every op's value, from the shapes of its sources: one function per op."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from glassgrad.ir.ops import OpGroup, Ops

if TYPE_CHECKING:
    from glassgrad.ir.uop import UOp

Shape = tuple[Any, ...]


class Sizes:
    """`exist`: shapes may hold sizes only known at launch (ir/size.py). Equal sizes may stand for
    different values, so shapes are not cached then.

    `are_shown`: the user made a variable, so tensor shapes may have to show SymbolicInts.
    """

    exist = False
    are_shown = False


def broadcast(*shapes: Shape) -> Shape:
    """The shape that all of these stretch to: aligned at the last axis, ones repeat.

    >>> broadcast((4, 1), (3,), ())
    (4, 3)
    """
    return _broadcast(*shapes) if Sizes.exist else _broadcast_cached(*shapes)


def _broadcast(*shapes: Shape) -> Shape:
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    ndim = max(map(len, shapes))
    padded = [(1,) * (ndim - len(shape)) + shape for shape in shapes]
    result = []
    for sizes in zip(*padded, strict=True):
        wide = [size for size in sizes if size != 1]
        if any(size != wide[0] for size in wide):
            raise ValueError(f"shapes {', '.join(map(str, shapes))} do not broadcast")
        result.append(wide[0] if wide else 1)
    return tuple(result)


_broadcast_cached = lru_cache(maxsize=4096)(_broadcast)


def _none(node: UOp) -> Shape:
    return ()


def _same(node: UOp) -> Shape:
    return node.src[0].shape


def _elementwise(node: UOp) -> Shape:
    src = node.src
    if len(src) == 1:
        return src[0].shape
    if len(src) == 2:
        left, right = src[0].shape, src[1].shape
        return left if left == right or not right else broadcast(left, right)
    return broadcast(*[source.shape for source in src])


def _arg(node: UOp) -> Shape:
    shape: Shape = node.arg
    return shape


def _buffer(node: UOp) -> Shape:
    shape: Shape = node.arg.shape
    return shape


def _iota(node: UOp) -> Shape:
    return (node.arg,)


def _permute(node: UOp) -> Shape:
    shape = node.src[0].shape
    return tuple([shape[axis] for axis in node.arg])


def _pad(node: UOp) -> Shape:
    shape = node.src[0].shape
    return tuple([n + before + after for n, (before, after) in zip(shape, node.arg, strict=True)])


def _shrink(node: UOp) -> Shape:
    return tuple([stop - start for start, stop in node.arg])


def _window(node: UOp) -> Shape:
    return windowed(node.arg, node.src[0].shape)


def windowed(arg: tuple[int, int, int, int], shape: Shape) -> Shape:
    """WINDOW: the axis numbers the windows, a new last axis their elements."""
    axis, size, stride, dilation = arg
    steps = (shape[axis] - dilation * (size - 1) - 1) // stride + 1
    return (*shape[:axis], steps, *shape[axis + 1 :], size)


def _window_adjoint(node: UOp) -> Shape:
    axis, size, _, _ = node.arg
    shape = node.src[0].shape
    return (*shape[:axis], size, *shape[axis + 1 :])


def _deferred(node: UOp) -> Shape:
    shape: Shape = node.arg.shape
    return shape


def _gather(node: UOp) -> Shape:
    return node.src[1].shape


def _reduce(node: UOp) -> Shape:
    if len(node.src) > 1 or not isinstance(node.arg, tuple):  # under ranges, in a kernel
        return ()
    axes = node.arg[1]
    return tuple([n for axis, n in enumerate(node.src[0].shape) if axis not in axes])


SHAPE_OF: dict[Ops, Callable[[UOp], Shape]] = dict.fromkeys(Ops, _none)
SHAPE_OF |= dict.fromkeys(OpGroup.POINTWISE, _elementwise)
SHAPE_OF |= {
    Ops.BUFFER: _buffer,
    Ops.IOTA: _iota,
    Ops.RESHAPE: _arg,
    Ops.PERMUTE: _permute,
    Ops.EXPAND: _arg,
    Ops.PAD: _pad,
    Ops.SHRINK: _shrink,
    Ops.FLIP: _same,
    Ops.WINDOW: _window,
    Ops.WINDOW_ADJOINT: _window_adjoint,
    Ops.GATHER: _gather,
    Ops.REDUCE: _reduce,
    Ops.SCAN: _same,
    Ops.CONTIGUOUS: _same,
    Ops.DETACH: _same,
    Ops.CUSTOM: _same,
    Ops.DEFERRED: _deferred,
    Ops.ASSIGN: _same,
    Ops.COPY: _same,
}
