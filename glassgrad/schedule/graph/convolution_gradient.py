"""sum(window_adjoint(sum(x·y))) -> one sum: the gradient of a convolution is a convolution.

The adjoint of WINDOW spreads a sum of products over the original axis and sums the overlaps
(col2im). Computed separately, the first sum has an element per element of each window. Sums commute
with movement, so both sums become one contraction, in which only the factor along the axis is
moved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from glassgrad.ir.ops import Ops
from glassgrad.ir.shape import Shape
from glassgrad.ir.traverse import transform_nodes
from glassgrad.ir.uop import UOp, toposort

REDUCE, WINDOW_ADJOINT, RESHAPE, PERMUTE, MUL = (
    Ops.REDUCE,
    Ops.WINDOW_ADJOINT,
    Ops.RESHAPE,
    Ops.PERMUTE,
    Ops.MUL,
)
SHRINK = Ops.SHRINK
MOVABLE_OPS = frozenset((WINDOW_ADJOINT, RESHAPE, PERMUTE))


def fuse_convolution_gradients(roots: Sequence[UOp]) -> list[UOp]:
    """The same values with fewer sums."""
    nodes = toposort(roots)
    if not any(node.op in (WINDOW_ADJOINT, SHRINK) for node in nodes):
        return list(roots)
    uses = Counter(source for node in nodes for source in node.src)
    uses.update(roots)
    single_use = {node for node in nodes if uses[node] == 1}
    rewritten_single_use: set[UOp] = set()  # replacements of nodes with one reader

    def fuse(node: UOp, rebuilt: UOp) -> UOp:
        if node.op is REDUCE:
            rebuilt = _fuse_sums(rebuilt, rewritten_single_use) or rebuilt
        elif node.op is SHRINK and node.src[0] in single_use and rebuilt.src[0].op is REDUCE:
            rebuilt = _shrink_terms(rebuilt)
        if rebuilt.origin is None:
            rebuilt.origin = node.origin
        if node in single_use:
            rewritten_single_use.add(rebuilt)
        return rebuilt

    done = transform_nodes(nodes, fuse)
    return [done[root] for root in roots]


def _shrink_terms(shrink: UOp) -> UOp:
    """shrink(sum(x))  ->  sum(shrink(x))"""
    reduce = shrink.src[0]
    x, axes = reduce.src[0], reduce.arg[1]
    box = iter(shrink.arg)
    pairs = tuple([(0, n) if axis in axes else next(box) for axis, n in enumerate(x.shape)])
    cut = UOp(SHRINK, x.dtype, (x, *shrink.src[1:]), pairs)
    return UOp(REDUCE, reduce.dtype, (cut,), reduce.arg)


def _fuse_sums(outer: UOp, single_use: set[UOp]) -> UOp | None:
    """One sum instead of two, if this sums a single-use sum of products behind a WINDOW_ADJOINT."""
    chain: list[UOp] = []
    inner = outer.src[0]
    while inner.op in MOVABLE_OPS and inner in single_use:
        chain.insert(0, inner)
        inner = inner.src[0]
    if not any(move.op is WINDOW_ADJOINT for move in chain) or inner not in single_use:
        return None
    if not all(_is_sum(node) for node in (outer, inner)) or inner.src[0].op is not MUL:
        return None
    product, axes = inner.src[0], inner.arg[1]
    rest = [axis for axis in range(len(product.shape)) if axis not in axes]
    order = (*axes, *rest)
    factors = [_permuted(_with_rank(factor, product.shape), order) for factor in product.src]
    for move in chain:
        moved = _move_factors(factors, move, len(axes))
        if moved is None:
            return None
        factors = moved
    summed = (*range(len(axes)), *[axis + len(axes) for axis in outer.arg[1]])
    value = UOp(MUL, outer.dtype, tuple(factors))
    return UOp(REDUCE, outer.dtype, (value,), (Ops.ADD, summed))


def _is_sum(node: UOp) -> bool:
    return node.op is REDUCE and node.arg[0] is Ops.ADD and node.dtype.kind == "float"


def _move_factors(factors: list[UOp], move: UOp, reduced_axes: int) -> list[UOp] | None:
    """The factors after a movement of their sum, whose reduced axes come first; None if that is not
    possible.
    """
    if move.op is PERMUTE:
        order = (*range(reduced_axes), *[axis + reduced_axes for axis in move.arg])
        return [_permuted(factor, order) for factor in factors]
    if move.op is RESHAPE:
        kept = _match_axes(move.src[0].shape, move.shape)
        return (
            None
            if kept is None
            else [_reshape_factor(factor, kept, reduced_axes) for factor in factors]
        )
    axis, size, stride, dilation = move.arg
    along = [factor for factor in factors if factor.shape[axis + reduced_axes] != 1]
    if len(along) != 1 or stride != 1:  # with a stride, most products would be zero
        return None
    taps = move.src[0].shape[-1]
    adjoint = _window_adjoint(along[0], (axis + reduced_axes, size, stride, dilation), taps)
    return [adjoint if factor is along[0] else factor for factor in factors]


def _with_rank(factor: UOp, shape: Shape) -> UOp:
    return _reshaped(factor, (1,) * (len(shape) - len(factor.shape)) + factor.shape)


def _reshaped(x: UOp, shape: Shape) -> UOp:
    return x if x.shape == shape else UOp(RESHAPE, x.dtype, (x,), shape)


def _permuted(x: UOp, order: tuple[int, ...]) -> UOp:
    return x if order == tuple(range(len(order))) else UOp(PERMUTE, x.dtype, (x,), order)


def _window_adjoint(x: UOp, arg: tuple[int, int, int, int], taps: int) -> UOp:
    if x.shape[-1] != taps:
        x = UOp(Ops.EXPAND, x.dtype, (x,), (*x.shape[:-1], taps))
    return UOp(WINDOW_ADJOINT, x.dtype, (x,), arg)


def _match_axes(source: Shape, shape: Shape) -> list[int | None] | None:
    """For each axis of the new shape its source axis, None for a new 1; None if more changes."""
    kept: list[int | None] = []
    left = [axis for axis, n in enumerate(source) if n != 1]
    for n in shape:
        if n == 1:
            kept.append(None)
        elif left and source[left[0]] == n:
            kept.append(left.pop(0))
        else:
            return None
    return None if left else kept


def _reshape_factor(factor: UOp, kept: list[int | None], reduced_axes: int) -> UOp:
    sizes = [1 if axis is None else factor.shape[axis + reduced_axes] for axis in kept]
    return _reshaped(factor, (*factor.shape[:reduced_axes], *sizes))
