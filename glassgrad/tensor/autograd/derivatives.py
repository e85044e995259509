"""The derivative rules: for each op, the gradient of its value -> the gradients of its sources.

A rule takes the node and the gradient g of its value and returns the gradient of one source. It
builds graph nodes, so gradients have gradients. g may have size 1 on axes along which it is
constant: `sum_to_shape` sums what broadcasting repeated, `broadcast_to` materializes the full
shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.shape import Shape
from glassgrad.ir.uop import UOp
from glassgrad.tensor.autograd.scan_gradient import factor_gradient, source_gradient
from glassgrad.tensor.core import device_of

# Enum member lookups cost 100 ns on Python 3.11, globals 5 ns.
ADD, MUL, MAX, FDIV, POW = Ops.ADD, Ops.MUL, Ops.MAX, Ops.FDIV, Ops.POW
RESHAPE, EXPAND, PERMUTE, REDUCE, IOTA = (
    Ops.RESHAPE, Ops.EXPAND, Ops.PERMUTE, Ops.REDUCE, Ops.IOTA,
)  # fmt: skip
PAD, SHRINK, FLIP, WINDOW, WINDOW_ADJOINT = (
    Ops.PAD,
    Ops.SHRINK,
    Ops.FLIP,
    Ops.WINDOW,
    Ops.WINDOW_ADJOINT,
)
COPY, SIN, LOG2 = Ops.COPY, Ops.SIN, Ops.LOG2
LN_2 = math.log(2)
Rule = Callable[[UOp, UOp], UOp]


# ---------------------------------------------------------------------- shapes of gradients


def reshape(x: UOp, shape: Shape) -> UOp:
    return x if x.shape == shape else UOp(RESHAPE, x.dtype, (x,), shape)


def reduce_sum(x: UOp, axes: tuple[int, ...]) -> UOp:
    return UOp(REDUCE, x.dtype, (x,), (ADD, axes)) if axes else x


def broadcast_to(x: UOp, shape: Shape) -> UOp:
    """x broadcast to a shape."""
    if x.shape == shape:
        return x
    lead = (1,) * (len(shape) - len(x.shape))
    return UOp(EXPAND, x.dtype, (reshape(x, lead + x.shape),), shape)


def sum_to_shape(x: UOp, wide: Shape, shape: Shape) -> UOp:
    """The gradient x of a value of shape `wide`, summed over the axes that were broadcast from
    `shape`.
    """
    if wide == shape:
        return x
    lead = len(wide) - len(shape)
    own = (1,) * (len(wide) - len(x.shape)) + x.shape
    repeated = [i for i, n in enumerate(wide) if n != 1 and (i < lead or shape[i - lead] == 1)]
    count = prod([wide[axis] for axis in repeated if own[axis] == 1])
    axes = tuple([axis for axis in repeated if own[axis] != 1])
    kept = [1 if axis in axes else n for axis, n in enumerate(own)]
    summed = reshape(reduce_sum(reshape(x, own), axes), tuple(kept[lead:]))
    return summed if count == 1 else summed * float(count)


# ---------------------------------------------------------------------- elementwise


def _cosine(x: UOp) -> UOp:
    """cos(x) as sin(x + π/2), whose argument lower/math/sine.py never rounds; -sin(y) if x is y +
    π/2.
    """
    if x.op is ADD and x.src[1].is_const and x.src[1].arg == math.pi / 2:
        return -x.src[0].alu(SIN)
    return (x + math.pi / 2).alu(SIN)


def _extreme(node: UOp, g: UOp, mine: int) -> UOp:
    """The larger source takes the gradient, half each on ties; against a constant it takes all of a
    tie (relu).

    The result shows whether x beat a constant, so x need not be stored for that. nan beats
    everything.
    """
    x, y = node.src[mine], node.src[1 - mine]
    zero = g.const_like(0)
    if y.is_const:
        return node.eq(y).where(zero, g)
    loses = x < y if node.op is MAX else y < x
    return loses.where(zero, x.eq(y).where(g * 0.5, g))


def _power_base(node: UOp, g: UOp) -> UOp:
    x, y = node.src
    if y.is_const:
        return g * UOp(POW, x.dtype, (x, y.const_like(y.arg - 1))) * y
    derivative = UOp(POW, x.dtype, (x, y - 1.0)) * y
    return y.eq(0.0).where(g.const_like(0), g * derivative)


def _power_exponent(node: UOp, g: UOp) -> UOp:
    """x^y log(x). At x = 0 it is the limit: 0 where y >= 0, -inf where y < 0."""
    x, y = node.src
    zero = y.const_like(0.0)
    is_flat = x.eq(0.0) & ((zero < y) | y.eq(zero))
    log = is_flat.where(x.const_like(1.0), x).alu(LOG2) * LN_2
    return is_flat.where(g.const_like(0), g * node * log)


def _cast(node: UOp, g: UOp) -> UOp:
    return g.cast(node.src[0].dtype)


# ---------------------------------------------------------------------- movement


def _permute(node: UOp, g: UOp) -> UOp:
    order = node.arg
    back = tuple(sorted(range(len(order)), key=order.__getitem__))
    return UOp(PERMUTE, g.dtype, (broadcast_to(g, node.shape),), back)


def _pad(node: UOp, g: UOp) -> UOp:
    inner = node.src[0].shape
    box = tuple((before, before + n) for n, (before, _) in zip(inner, node.arg, strict=True))
    return UOp(SHRINK, g.dtype, (broadcast_to(g, node.shape), *node.src[1:]), box)


def _shrink(node: UOp, g: UOp) -> UOp:
    outer = node.src[0].shape
    around = tuple((start, n - stop) for n, (start, stop) in zip(outer, node.arg, strict=True))
    return UOp(PAD, g.dtype, (broadcast_to(g, node.shape), *node.src[1:]), around)


def _flip(node: UOp, g: UOp) -> UOp:
    return UOp(FLIP, g.dtype, (broadcast_to(g, node.shape),), node.arg)


def _window(node: UOp, g: UOp) -> UOp:
    """Each element sums the gradients of the windows that contain it."""
    axis, _, stride, dilation = node.arg
    arg = (axis, node.src[0].shape[axis], stride, dilation)
    windows = UOp(WINDOW_ADJOINT, g.dtype, (broadcast_to(g, node.shape),), arg)
    return reduce_sum(windows, (len(windows.shape) - 1,))


def _window_adjoint(node: UOp, g: UOp) -> UOp:
    """y[i, k] = x[(i - k·dilation)/stride, k]  ->  dx[o, k] = dy[o·stride + k·dilation, k]"""
    axis, size, stride, dilation = node.arg
    shape = node.src[0].shape
    steps, width = shape[axis], shape[-1]
    reach = (steps - 1) * stride + (width - 1) * dilation + 1
    g = broadcast_to(g, node.shape)
    if reach < size:
        box = tuple((0, reach if i == axis else n) for i, n in enumerate(g.shape))
        g = UOp(SHRINK, g.dtype, (g,), box)
    windows = UOp(WINDOW, g.dtype, (g,), (axis, width, stride, dilation))
    # windows[o, …, k, j] has both the old k and the index j in the window: keep k = j.
    line = UOp(IOTA, dtypes.int32, (), width)
    same = reshape(line, (width, 1)).eq(line)
    return reduce_sum(same.where(windows, g.const_like(0)), (len(windows.shape) - 2,))


def _gather(node: UOp, g: UOp) -> UOp:
    """Row j sums the gradients of the elements whose index is j."""
    axis = node.arg
    x, index = node.src
    size = x.shape[axis]
    before, after = index.shape[: axis + 1], index.shape[axis + 1 :]
    line = reshape(UOp(IOTA, index.dtype, (), size), (size, *(1,) * len(after)))
    hit = reshape(index, (*before, 1, *after)).eq(line)
    spread = reshape(broadcast_to(g, node.shape), (*before, 1, *after))
    return reduce_sum(hit.where(spread, g.const_like(0)), (axis,))


# ---------------------------------------------------------------------- reductions and writes


def _with_reduced_axes(node: UOp, x: UOp) -> UOp:
    """A value of the reduced shape with its reduced axes as size 1."""
    axes = node.arg[1]
    shape = tuple([1 if i in axes else n for i, n in enumerate(node.src[0].shape)])
    return reshape(broadcast_to(x, node.shape), shape)


def _reduce_extreme(node: UOp, g: UOp) -> UOp:
    """Elements equal to the extreme share the gradient evenly."""
    x = node.src[0]
    hit = x.eq(_with_reduced_axes(node, node))
    wide = g.cast(dtypes.float32) if g.dtype.bits < 32 else g  # fp8 holds no count above 448
    count = reduce_sum(hit.where(wide.const_like(1), wide.const_like(0)), node.arg[1])
    share = wide.alu(FDIV, count).cast(g.dtype)
    return hit.where(_with_reduced_axes(node, share), g.const_like(0))


def _reduce_product(node: UOp, g: UOp) -> UOp:
    """The product of all other elements, correct also where some are 0."""
    x, axes = node.src[0], node.arg[1]
    one, zero = x.const_like(1), x.const_like(0)
    is_zero = x.eq(zero)
    safe = is_zero.where(one, x)
    others = _with_reduced_axes(node, UOp(REDUCE, x.dtype, (safe,), (MUL, axes)))
    zeros = _with_reduced_axes(node, reduce_sum(is_zero.where(one, zero), axes))
    alone = zeros.eq(one).where(others, zero)
    derivative = is_zero.where(alone, zeros.eq(zero).where(others.alu(FDIV, safe), zero))
    return _with_reduced_axes(node, g) * derivative


def _reduce(node: UOp, g: UOp) -> UOp:
    op = node.arg[0]
    if op is ADD:
        return _with_reduced_axes(node, g)
    return _reduce_product(node, g) if op is MUL else _reduce_extreme(node, g)


def _copy(node: UOp, g: UOp) -> UOp:
    return UOp(COPY, g.dtype, (broadcast_to(g, node.shape),), device_of(node.src[0]))


def _assigned_value(node: UOp, g: UOp) -> UOp:
    """The written value gets the gradient of the elements that it was written to."""
    g = broadcast_to(g, node.shape)
    for op, arg in node.arg or ():
        g = UOp(op, g.dtype, (g,), arg)
    return g


def _assigned_target(node: UOp, g: UOp) -> UOp:
    """The old contents get the gradient of the elements that were not written."""
    zero = g.const_like(0)
    return (
        _scattered(node.shape, node.arg, g.const_like(1))
        .eq(zero)
        .where(broadcast_to(g, node.shape), zero)
    )


def _scattered(shape: Shape, chain: Sequence[tuple[Ops, Any]], value: UOp) -> UOp:
    """A value placed at the elements that a chain of movement ops leads to; 0 elsewhere."""
    moved = [broadcast_to(value.const_like(0), shape)]
    for op, arg in chain:
        moved.append(UOp(op, value.dtype, (moved[-1],), arg))
    value = broadcast_to(value, moved[-1].shape)
    for view in reversed(moved[1:]):
        back = RULES[view.op][0]
        assert back is not None, view
        value = back(view, value)
    return broadcast_to(value, shape)


def after_write(target: UOp, value: UOp, chain: Sequence[tuple[Ops, Any]]) -> UOp:
    """ASSIGN(target, value; chain) as an expression that writes nothing."""
    if not chain:
        return broadcast_to(value, target.shape)
    zero = value.const_like(0)
    is_old = _scattered(target.shape, chain, value.const_like(1)).eq(zero)
    return is_old.where(target, _scattered(target.shape, chain, value))


RULES: dict[Ops, tuple[Rule | None, ...]] = {
    Ops.ADD: (lambda _, g: g, lambda _, g: g),
    Ops.SUB: (lambda _, g: g, lambda _, g: -g),
    Ops.MUL: (lambda node, g: g * node.src[1], lambda node, g: g * node.src[0]),
    Ops.FDIV: (
        lambda node, g: g.alu(FDIV, node.src[1]),
        lambda node, g: -(g.alu(FDIV, node.src[1]) * node),
    ),
    Ops.NEG: (lambda _, g: -g,),
    Ops.RECIPROCAL: (lambda node, g: -(g * node * node),),
    Ops.SQRT: (lambda node, g: (g * 0.5).alu(FDIV, node),),
    Ops.EXP2: (lambda node, g: g * node * LN_2,),
    Ops.LOG2: (lambda node, g: (g * (1 / LN_2)).alu(FDIV, node.src[0]),),
    Ops.SIN: (lambda node, g: g * _cosine(node.src[0]),),
    Ops.POW: (_power_base, _power_exponent),
    Ops.MAX: (lambda node, g: _extreme(node, g, 0), lambda node, g: _extreme(node, g, 1)),
    Ops.MIN: (lambda node, g: _extreme(node, g, 0), lambda node, g: _extreme(node, g, 1)),
    Ops.WHERE: (
        None,
        lambda node, g: node.src[0].where(g, g.const_like(0)),
        lambda node, g: node.src[0].where(g.const_like(0), g),
    ),
    Ops.CAST: (_cast,),
    Ops.RESHAPE: (lambda node, g: reshape(broadcast_to(g, node.shape), node.src[0].shape),),
    Ops.EXPAND: (lambda _, g: g,),
    Ops.PERMUTE: (_permute,),
    Ops.PAD: (_pad,),
    Ops.SHRINK: (_shrink,),
    Ops.FLIP: (_flip,),
    Ops.WINDOW: (_window,),
    Ops.WINDOW_ADJOINT: (_window_adjoint,),
    Ops.GATHER: (_gather, None),
    Ops.REDUCE: (_reduce,),
    Ops.SCAN: (
        lambda node, g: source_gradient(node, broadcast_to(g, node.shape)),
        lambda node, g: factor_gradient(node, broadcast_to(g, node.shape)),
    ),
    Ops.CONTIGUOUS: (lambda _, g: g,),
    Ops.COPY: (_copy,),
    Ops.ASSIGN: (_assigned_target, _assigned_value),
}
# Ops that broadcast their sources: gradients are summed to the shape of the source.
BROADCASTING = frozenset(
    (Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, Ops.POW, Ops.MAX, Ops.MIN, Ops.WHERE, Ops.EXPAND)
)
