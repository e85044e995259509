"""sum(shear(sum(x·y)))  ->  one sum of products: the gradient of a convolution is a convolution.

The adjoint of sliding windows spreads a sum of products back over the axis that the windows came
from, and sums what overlaps. Taken one by one, the first sum has an element for each place in each
window, which is a lot of memory. Sums of products may change places with what moves them, and then
both are one contraction; of the two factors, only the one that lies along the axis is moved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from glassgrad.ir.facts import rebuilt
from glassgrad.ir.ops import Ops
from glassgrad.ir.shape import Shape
from glassgrad.ir.uop import UOp, toposort

REDUCE, WINDOW_ADJOINT, RESHAPE, PERMUTE, MUL = (
    Ops.REDUCE,
    Ops.WINDOW_ADJOINT,
    Ops.RESHAPE,
    Ops.PERMUTE,
    Ops.MUL,
)
SHRINK = Ops.SHRINK
MOVES = frozenset((WINDOW_ADJOINT, RESHAPE, PERMUTE))


def join_sheared(roots: Sequence[UOp]) -> list[UOp]:
    """The same values with fewer sums."""
    nodes = toposort(roots)
    if not any(node.op in (WINDOW_ADJOINT, SHRINK) for node in nodes):
        return list(roots)
    uses = Counter(source for node in nodes for source in node.src)
    uses.update(roots)
    alone = {node for node in nodes if uses[node] == 1}
    done: dict[UOp, UOp] = {}
    changed: set[UOp] = set()  # what stands for nodes with one reader
    for node in nodes:
        made = rebuilt(node, done)
        if node.op is REDUCE:
            made = _joined(made, changed) or made
        elif node.op is SHRINK and node.src[0] in alone and made.src[0].op is REDUCE:
            made = _cut_first(made)
        if made.origin is None:
            made.origin = node.origin
        done[node] = made
        if node in alone:
            changed.add(made)
    return [done[root] for root in roots]


def _cut_first(shrink: UOp) -> UOp:
    """shrink(sum(x))  ->  sum(shrink(x))"""
    reduce = shrink.src[0]
    x, axes = reduce.src[0], reduce.arg[1]
    box = iter(shrink.arg)
    pairs = tuple([(0, n) if axis in axes else next(box) for axis, n in enumerate(x.shape)])
    cut = UOp(SHRINK, x.dtype, (x, *shrink.src[1:]), pairs)
    return UOp(REDUCE, reduce.dtype, (cut,), reduce.arg)


def _joined(outer: UOp, alone: set[UOp]) -> UOp | None:
    """One sum instead of two, if this one sums a sheared sum of products that nobody else needs."""
    chain: list[UOp] = []
    inner = outer.src[0]
    while inner.op in MOVES and inner in alone:
        chain.insert(0, inner)
        inner = inner.src[0]
    if not any(move.op is WINDOW_ADJOINT for move in chain) or inner not in alone:
        return None
    if not all(_is_sum(node) for node in (outer, inner)) or inner.src[0].op is not MUL:
        return None
    product, axes = inner.src[0], inner.arg[1]
    rest = [axis for axis in range(len(product.shape)) if axis not in axes]
    order = (*axes, *rest)
    factors = [_permuted(_ranked(factor, product.shape), order) for factor in product.src]
    for move in chain:
        moved = _moved(factors, move, len(axes))
        if moved is None:
            return None
        factors = moved
    summed = (*range(len(axes)), *[axis + len(axes) for axis in outer.arg[1]])
    value = UOp(MUL, outer.dtype, tuple(factors))
    return UOp(REDUCE, outer.dtype, (value,), (Ops.ADD, summed))


def _is_sum(node: UOp) -> bool:
    return node.op is REDUCE and node.arg[0] is Ops.ADD and node.dtype.kind == "float"


def _moved(factors: list[UOp], move: UOp, lead: int) -> list[UOp] | None:
    """The factors behind a move of their sum, whose summed axes come first."""
    if move.op is PERMUTE:
        order = (*range(lead), *[axis + lead for axis in move.arg])
        return [_permuted(factor, order) for factor in factors]
    if move.op is RESHAPE:
        kept = _same_but_ones(move.src[0].shape, move.shape)
        return None if kept is None else [_placed(factor, kept, lead) for factor in factors]
    axis, size, stride, dilation = move.arg
    along = [factor for factor in factors if factor.shape[axis + lead] != 1]
    if len(along) != 1 or stride != 1:  # with a stride most products would be with zeros
        return None
    taps = move.src[0].shape[-1]
    sheared = _sheared(along[0], (axis + lead, size, stride, dilation), taps)
    return [sheared if factor is along[0] else factor for factor in factors]


def _ranked(factor: UOp, shape: Shape) -> UOp:
    return _reshaped(factor, (1,) * (len(shape) - len(factor.shape)) + factor.shape)


def _reshaped(x: UOp, shape: Shape) -> UOp:
    return x if x.shape == shape else UOp(RESHAPE, x.dtype, (x,), shape)


def _permuted(x: UOp, order: tuple[int, ...]) -> UOp:
    return x if order == tuple(range(len(order))) else UOp(PERMUTE, x.dtype, (x,), order)


def _sheared(x: UOp, arg: tuple[int, int, int, int], taps: int) -> UOp:
    if x.shape[-1] != taps:
        x = UOp(Ops.EXPAND, x.dtype, (x,), (*x.shape[:-1], taps))
    return UOp(WINDOW_ADJOINT, x.dtype, (x,), arg)


def _same_but_ones(source: Shape, shape: Shape) -> list[int | None] | None:
    """For each axis of the new shape the one it was, None for a new 1; None if more changes."""
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


def _placed(factor: UOp, kept: list[int | None], lead: int) -> UOp:
    sizes = [1 if axis is None else factor.shape[axis + lead] for axis in kept]
    return _reshaped(factor, (*factor.shape[:lead], *sizes))
