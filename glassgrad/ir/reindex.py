"""Substitution that keeps index arithmetic in canonical form."""

from __future__ import annotations

from collections.abc import Callable

from glassgrad.base.dtype import dtypes
from glassgrad.ir.divmod import conjunction, floordiv, less, mod
from glassgrad.ir.facts import substitute
from glassgrad.ir.linear import add, minimum, mul, scale, sub
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp, const

INDEX_DTYPE = dtypes.index
INDEX = Ops.INDEX


def _divide(value: UOp, divisor: UOp) -> UOp:
    if divisor.is_const:
        return floordiv(value, divisor.arg)
    return UOp(Ops.FLOORDIV, INDEX_DTYPE, (value, divisor))


def _remainder(value: UOp, divisor: UOp) -> UOp:
    if divisor.is_const:
        return mod(value, divisor.arg)
    return UOp(Ops.FLOORMOD, INDEX_DTYPE, (value, divisor))


ARITHMETIC: dict[Ops, Callable[..., UOp]] = {
    Ops.ADD: add,
    Ops.SUB: sub,
    Ops.MUL: mul,
    Ops.NEG: lambda value: scale(value, -1),
    Ops.FLOORDIV: _divide,
    Ops.FLOORMOD: _remainder,
    Ops.MIN: minimum,
}


def rebuild(node: UOp, src: tuple[UOp, ...]) -> UOp:
    """The node with other sources, simplified if it is index arithmetic."""
    if node.dtype is INDEX_DTYPE and node.op in ARITHMETIC:
        return ARITHMETIC[node.op](*src)
    if node.dtype.kind == "bool" and node.op is not Ops.LOAD:
        return _condition(node, src)
    return UOp(node.op, node.dtype, src, node.arg)


def _condition(node: UOp, src: tuple[UOp, ...]) -> UOp:
    if node.op is Ops.CMPLT and src[0].dtype is INDEX_DTYPE:
        return less(*src)
    if node.op is Ops.CMPEQ and src[0].dtype is INDEX_DTYPE and src[1].is_const:
        low, high = src[0].bounds
        if low == high:
            return const(low == src[1].arg, dtypes.bool)
    if node.op is Ops.AND and any(source.is_const for source in src):
        if any(source.is_const and not source.arg for source in src):
            return const(False, dtypes.bool)
        return conjunction(tuple([source for source in src if not source.is_const])) or src[0]
    return UOp(node.op, node.dtype, src, node.arg)


def reindex(root: UOp, changes: dict[UOp, UOp]) -> UOp:
    """The expression with ranges replaced by index expressions; gates that are always true are
    dropped.
    """
    return substitute(root, changes, rebuild_index)


def rebuild_index(node: UOp, src: tuple[UOp, ...]) -> UOp:
    """`rebuild`, without gates that are always true."""
    return drop_open_gate(rebuild(node, src))


def drop_open_gate(node: UOp) -> UOp:
    """The INDEX without its gate if that is always true."""
    if node.op is INDEX and (gate := node.gate) is not None and gate.is_const and gate.arg:
        return node.src[0].index(*node.indices)
    return node
