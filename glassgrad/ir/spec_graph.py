"""GRAPH_CLAIMS: what must hold for movement, reductions and all other ops with shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.uop import UOp

KEEPS_DTYPE = OpGroup.MOVEMENT | {
    Ops.REDUCE, Ops.SCAN, Ops.CONTIGUOUS, Ops.DETACH, Ops.CUSTOM, Ops.COPY, Ops.ASSIGN,
}  # fmt: skip


def _is_known(*sizes: object) -> bool:
    """True if all sizes are ints: sizes only known at launch cannot be compared here."""
    return all(isinstance(size, int) for size in sizes)


def _reshapes(node: UOp) -> bool:
    before, after = node.src[0].shape, node.arg
    if not _is_known(*before, *after):
        return True
    return all(size >= 0 for size in after) and prod(before) == prod(after)


def _permutes(node: UOp) -> bool:
    return sorted(node.arg) == list(range(len(node.src[0].shape)))


def _expands(node: UOp) -> bool:
    before, after = node.src[0].shape, node.arg
    return len(before) == len(after) and all(
        old == new or old == 1 for old, new in zip(before, after, strict=True)
    )


def _pads(node: UOp) -> bool:
    shape = node.src[0].shape
    return len(node.arg) == len(shape) and all(
        not _is_known(before, after) or (before >= 0 and after >= 0) for before, after in node.arg
    )


def _shrinks(node: UOp) -> bool:
    shape = node.src[0].shape
    return len(node.arg) == len(shape) and all(
        not _is_known(start, stop, size) or 0 <= start <= stop <= size
        for (start, stop), size in zip(node.arg, shape, strict=True)
    )


def _is_sorted_axes(axes: tuple[int, ...], ndim: int) -> bool:
    return list(axes) == sorted(set(axes)) and all(0 <= axis < ndim for axis in axes)


def _flips(node: UOp) -> bool:
    return _is_sorted_axes(node.arg, len(node.src[0].shape))


def _windows(node: UOp) -> bool:
    axis, size, stride, dilation = node.arg
    shape = node.src[0].shape
    if not (0 <= axis < len(shape) and size >= 1 and stride >= 1 and dilation >= 1):
        return False
    return not _is_known(shape[axis]) or dilation * (size - 1) + 1 <= shape[axis]


def _adjoint_windows(node: UOp) -> bool:
    axis, size, stride, dilation = node.arg
    shape = node.src[0].shape
    if not (0 <= axis < len(shape) - 1 and size >= 1 and stride >= 1 and dilation >= 1):
        return False
    steps, taps = shape[axis], shape[-1]
    return not _is_known(steps, taps) or (steps - 1) * stride + (taps - 1) * dilation < size


def _gathers(node: UOp) -> bool:
    source, index = node.src
    axis = node.arg
    if len(source.shape) != len(index.shape) or not 0 <= axis < len(source.shape):
        return False
    pairs = enumerate(zip(source.shape, index.shape, strict=True))
    fits = all(number == axis or left == right for number, (left, right) in pairs)
    return fits and dtypes.is_int(index.dtype)


def _reduces(node: UOp) -> bool:
    op, axes = node.arg
    is_chosen = op is Ops.ASSIGN and node.src[0].op is Ops.WHERE and len(axes) == 1
    is_one = len(node.src) == 1 and (op in OpGroup.REDUCING or is_chosen)
    return is_one and _is_sorted_axes(axes, len(node.src[0].shape))


def _scans(node: UOp) -> bool:
    op, axis = node.arg
    count = 2 if op is Ops.MULACC else 1
    fits = all(source.shape == node.shape for source in node.src)
    return (
        op in OpGroup.SCANNING and len(node.src) == count and fits and 0 <= axis < len(node.shape)
    )


def _assigns(node: UOp) -> bool:
    target, value = node.src
    if target.op not in (Ops.BUFFER, Ops.ASSIGN) or target.dtype is not value.dtype:
        return False
    return all(op in OpGroup.MOVEMENT for op, _ in node.arg or ())


def _binds(node: UOp) -> bool:
    (variable,) = node.src
    return variable.op is Ops.VARIABLE and variable.vmin <= node.arg <= variable.vmax


def _is_sized(node: UOp) -> bool:
    first = 0 if node.op is Ops.IOTA else 1
    return len(node.src) >= first and all(more.op is Ops.BIND for more in node.src[first:])


def _is_result(node: UOp) -> bool:
    return bool(node.src) and isinstance(getattr(node.arg, "shape", None), tuple)


SIZED = (Ops.IOTA, Ops.RESHAPE, Ops.EXPAND, Ops.PAD, Ops.SHRINK)
Row = tuple[str, Iterable[Ops], Callable[[UOp], bool]]
GRAPH_CLAIMS: tuple[Row, ...] = (
    ("it has the dtype of its view", [Ops.BUFFER], lambda node: node.arg.dtype is node.dtype),
    (
        "it counts in numbers to a size",
        [Ops.IOTA],
        lambda node: node.dtype.kind != "bool" and (not _is_known(node.arg) or node.arg >= 0),
    ),
    ("it is a variable with a value in its bounds", [Ops.BIND], _binds),
    ("beside its source it has only the values of variables", SIZED, _is_sized),
    ("it has its first source's dtype", KEEPS_DTYPE, lambda n: n.dtype is n.src[0].dtype),
    ("its sizes multiply to its source's", [Ops.RESHAPE], _reshapes),
    ("its arg is an order of the axes", [Ops.PERMUTE], _permutes),
    ("only axes of size 1 are repeated", [Ops.EXPAND], _expands),
    ("its arg has a pair of counts per axis", [Ops.PAD], _pads),
    ("its arg has a range inside of each axis", [Ops.SHRINK], _shrinks),
    ("its arg is a sorted tuple of axes", [Ops.FLIP], _flips),
    ("its windows fit the axis", [Ops.WINDOW], _windows),
    ("its windows come from an axis of that size", [Ops.WINDOW_ADJOINT], _adjoint_windows),
    ("it has an int index that differs in shape at the axis only", [Ops.GATHER], _gathers),
    (
        "its arg is ADD, MUL, MAX, MIN, or ASSIGN of a WHERE, and sorted axes",
        [Ops.REDUCE],
        _reduces,
    ),
    ("its arg is an op and an axis, its sources have its shape", [Ops.SCAN], _scans),
    ("it writes a value of that dtype to a BUFFER or ASSIGN", [Ops.ASSIGN], _assigns),
    ("its arg says what shape a function's result has", [Ops.DEFERRED], _is_result),
    ("its arg names a device", [Ops.COPY], lambda node: isinstance(node.arg, str)),
)
