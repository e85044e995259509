"""REDUCE -> accumulators: one register per instance, filled by one nest of loops for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glassgrad.base.dtype import ConstType, DType, dtypes
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.uop import UOp
from glassgrad.lower.scope import loops_of

if TYPE_CHECKING:
    from glassgrad.lower.emit import Emitter, Instance

ENOUGH_CHAINS = 8  # accumulators that keep the adders busy; more only cost registers


def identity(op: Ops, dtype: DType) -> ConstType:
    """What an accumulator starts from."""
    if op is Ops.MAX:
        return dtypes.min(dtype)
    if op is Ops.MIN:
        return dtypes.max(dtype)
    return 1 if op is Ops.MUL else 0


def reduction(emitter: Emitter, node: UOp, instance: Instance) -> UOp:
    """sum(x over r)  ->  acc = 0; for r: acc = acc + x; acc — for all instances at once"""
    depth = emitter.depth(node)
    memo = emitter.scopes.stack[depth].memo
    lanes = [r for r in emitter.unrolled(node) if r in instance and r.kind is AxisKind.LANE]
    base = {r: instance[r] for r in lanes}
    # The longest axis first: what the shorter ones share stays in few registers (a 6x2 tile of
    # vectors then needs 12 sums, 2 vectors and 1 scalar at a time).
    outer = sorted([r for r in emitter.unrolled(node) if r not in base], key=lambda r: -r.size)
    wanted = emitter.instances(outer, base)
    with emitter.scopes.at(depth):
        results = _reduce_all(emitter, node, wanted, depth)
    for found, result in zip(wanted, results, strict=True):
        memo[node, emitter.key(node, found)] = result
    return memo[node, emitter.key(node, instance)]


def _reduce_all(emitter: Emitter, node: UOp, wanted: list[Instance], depth: int) -> list[UOp]:
    op, ranges = node.arg, node.bound
    steps = emitter.instances(ranges)
    loops = loops_of(ranges)
    if not loops:
        return [_straight(emitter, node, found, steps) for found in wanted]
    chains = len(steps) if len(steps) * len(wanted) <= ENOUGH_CHAINS else 1
    width = _width(emitter, node, wanted[0])
    start = emitter.constant(UOp(Ops.CONST, node.dtype, (), identity(op, node.dtype)))
    start = emitter.spread(start, width)
    registers = [[_register(emitter, start, depth) for _ in range(chains)] for _ in wanted]
    for loop in loops:
        emitter.open(loop)
    now: dict[UOp, UOp] = {}
    for position, step in enumerate(steps):
        for found, chain in zip(wanted, registers, strict=True):
            acc = chain[position % chains]
            now[acc] = _updated(emitter, node, now.get(acc, acc), {**found, **step}, width)
    for acc, value in now.items():
        emitter.scopes.stack[-1].lines.append(UOp(Ops.ASSIGN, acc.dtype, (acc, value)))
    end: UOp | None = None
    for loop in reversed(loops):
        end = emitter.close(loop)
    assert end is not None
    results = []
    for chain in registers:
        values = [emitter.scopes.emit(UOp(Ops.AFTER, a.dtype, (a, end)), depth) for a in chain]
        results.append(_finish(emitter, node, _combine(emitter, op, values)))
    return results


def _width(emitter: Emitter, node: UOp, instance: Instance) -> int:
    """Lanes of the accumulator: those of the reduction itself, or those of its place."""
    own = [r.size for r in node.bound if emitter.is_vector(r)]
    return own[0] if own else emitter.lanes(node, instance)


def _register(emitter: Emitter, start: UOp, depth: int) -> UOp:
    emitter.accumulators += 1
    acc = UOp(Ops.ACC, start.dtype, (start,), emitter.accumulators - 1)
    return emitter.scopes.emit(acc, depth)


def _updated(
    emitter: Emitter, node: UOp, current: UOp, instance: Instance, width: int
) -> UOp:
    """current op x; products are added with one rounding where the machine can."""
    op, body = node.arg, node.src[0]
    factors = body.src if _is_product(node) else (body,)
    values = [emitter.spread(emitter.value(factor, instance), width) for factor in factors]
    if len(values) == 2:
        update = UOp(Ops.MULACC, current.dtype, (*values, current))
    else:
        update = UOp(op, current.dtype, (current, *values))
    emitter.scopes.stack[-1].emitted.add(update)
    emitter.scopes.stack[-1].lines.append(update)
    return update


def _is_product(node: UOp) -> bool:
    body = node.src[0]
    return node.arg is Ops.ADD and body.op is Ops.MUL and body.dtype.kind == "float"


def _straight(emitter: Emitter, node: UOp, found: Instance, steps: list[Instance]) -> UOp:
    """A reduction whose every step is unrolled needs no loop and no register."""
    body = node.src[0]
    width = _width(emitter, node, found)
    values = []
    for step in steps:
        instance = {**found, **step}
        values.append(emitter.spread(emitter.value(body, instance), width))
    return _finish(emitter, node, _combine(emitter, node.arg, values))


def _combine(emitter: Emitter, op: Ops, values: list[UOp]) -> UOp:
    """Pairs first, then pairs of pairs: short chains."""
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=False)
        joined = [emitter.scopes.emit(UOp(op, a.dtype, (a, b))) for a, b in pairs]
        values = joined + (values[-1:] if len(values) % 2 else [])
    return values[0]


def _finish(emitter: Emitter, node: UOp, value: UOp) -> UOp:
    """The lanes of a vector that the reduction itself ran over are combined at the end."""
    if not any(emitter.is_vector(r) for r in node.bound):
        return value
    parts = [
        emitter.scopes.emit(UOp(Ops.GEP, value.dtype.scalar, (value,), lane))
        for lane in range(value.dtype.count)
    ]
    return _combine(emitter, node.arg, parts)
