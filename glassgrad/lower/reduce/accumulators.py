"""REDUCE -> accumulators: one register per unroll copy, in one loop nest for all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from glassgrad.base.dtype import DType
from glassgrad.base.fast_dataclasses import field, mutable
from glassgrad.ir.dots import DotReduction
from glassgrad.ir.facts import identity
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.lower.prefetch.epilogue import emit_prefetch_share
from glassgrad.lower.prefetch.operands import prefetch_operands
from glassgrad.lower.reduce.blocked_sums import (
    chain_count,
    needs_blocks,
    split_loops_at_blocks,
    total_dtype,
)
from glassgrad.lower.reduce.horizontal import combine_lanes, combine_pairwise
from glassgrad.lower.reduce.int8_dot import emit_dot, find_dots
from glassgrad.lower.scope import loops_of

if TYPE_CHECKING:
    from glassgrad.lower.emit import Emitter, UnrollCopy

# independent sums that hide the latency of additions: then each adds its unrolled products one by
# one, as fused multiply-adds, which rounds less than a tree of additions
MIN_CHAINED_RESULTS = 4


@mutable
class Reduction:
    """A REDUCE being emitted: the unroll copies that are wanted, and the accumulators of each.

    With few results, `chains` accumulators per result alternate, so that additions overlap. In a
    blocked sum they hold one block and are added to `totals` at its end.
    """

    node: UOp
    copies: list[UnrollCopy]
    steps: list[UnrollCopy]
    chains: int
    width: int
    dots: DotReduction | None  # one instruction takes several steps
    registers: list[list[UOp]] = field(default_factory=list)
    totals: list[list[UOp]] = field(default_factory=list)
    current_values: dict[UOp, UOp] = field(default_factory=dict)


def emit_reduction(emitter: Emitter, node: UOp, copy: UnrollCopy) -> UOp:
    """sum(x over r)  ->  acc = 0; for r: acc = acc + x; acc

    Emits all unroll copies at once, together with other reductions over the same loops.
    """
    depth = emitter.depth(node)
    memo = emitter.scopes.stack[depth].memo
    base = {r: v for r, v in copy.items() if emitter.is_vector(r) and r in node.ranges}
    reductions = [node]
    if loops_of(node.bound) and not base:
        reductions += [
            other
            for other in emitter.fusable_reductions.get(node, ())
            if not _is_emitted(emitter, other)
        ]
    with emitter.scopes.at_depth(depth):
        for found in _reduce_together(emitter, reductions, base, depth):
            memo.update(found)
    return memo[node, emitter.key(node, copy)]


def find_fusable_reductions(body: UOp, emitter: Emitter) -> dict[UOp, list[UOp]]:
    """REDUCE -> the independent reductions over the same loops, which can share a loop nest."""
    reduces = [node for node in body.toposort() if node.op is Ops.REDUCE]
    below = {node: set(node.toposort()) for node in reduces}
    fusable: dict[UOp, list[UOp]] = {}
    for one in reduces:
        for two in reduces:
            is_independent = one not in below[two] and two not in below[one]
            if is_independent and one.bound == two.bound:
                if set(emitter.loops(one)) == set(emitter.loops(two)):
                    fusable.setdefault(one, []).append(two)
    return fusable


def _is_emitted(emitter: Emitter, node: UOp) -> bool:
    memo = emitter.scopes.stack[emitter.depth(node)].memo
    first = emitter.copies(emitter.unrolled(node))[0]
    return (node, emitter.key(node, first)) in memo


def _reduce_together(
    emitter: Emitter, nodes: list[UOp], base: UnrollCopy, depth: int
) -> Iterator[dict[Any, UOp]]:
    loops = loops_of(nodes[0].bound)
    blocks, block = split_loops_at_blocks(nodes[0])
    sums = [_start_reduction(emitter, node, base, bool(loops)) for node in nodes]
    if loops:
        _create_accumulators(emitter, sums, depth, bool(blocks))
    _open(emitter, blocks)
    _create_block_accumulators(emitter, sums)
    _open(emitter, block)
    for found in sums:
        if loops:
            prefetch_operands(emitter, found.node, len(found.copies) * len(found.steps))
        _accumulate(emitter, found)
    if loops:
        for found in sums:
            for acc, value in found.current_values.items():
                _assign(emitter, acc, value)
    end = _close(emitter, block)
    if blocks:
        _add_block_to_totals(emitter, sums, end)
        end = _close(emitter, blocks)
    for found in sums:
        yield _results(emitter, found, end)


def _open(emitter: Emitter, loops: Sequence[UOp]) -> None:
    for loop in loops:
        emitter.open(loop)
        emit_prefetch_share(emitter, loop)


def _close(emitter: Emitter, loops: Sequence[UOp]) -> UOp | None:
    """Leave loops, innermost first; returns the END of the outermost."""
    end: UOp | None = None
    for loop in reversed(loops):
        end = emitter.close(loop)
    return end


def _assign(emitter: Emitter, acc: UOp, value: UOp) -> None:
    emitter.scopes.stack[-1].lines.append(UOp(Ops.ASSIGN, acc.dtype, (acc, value)))


def _start_reduction(emitter: Emitter, node: UOp, base: UnrollCopy, has_loops: bool) -> Reduction:
    # The longest axis first: what the shorter ones share stays in few registers (a 6x2 tile of
    # vectors then needs 12 accumulators, 2 vectors and 1 scalar at a time).
    outer = sorted([r for r in emitter.unrolled(node) if r not in base], key=lambda r: -r.size)
    copies = emitter.copies(outer, base)
    dots = find_dots(emitter, node) if has_loops else None
    taken = None if dots is None else dots.steps
    steps = emitter.copies([r for r in node.bound if r is not taken])
    chains = chain_count(len(copies), len(steps)) if has_loops else len(steps)
    return Reduction(node, copies, steps, chains, _width(emitter, node, copies[0]), dots)


def _accumulators(emitter: Emitter, sums: Reduction, dtype: DType, depth: int) -> list[list[UOp]]:
    """An accumulator for each chain of each result, initialized with the identity."""
    start = UOp(Ops.CONST, dtype, (), identity(sums.node.arg, dtype))
    wide = emitter.splat(emitter.constant(start), sums.width)
    chains = range(sums.chains)
    return [[new_accumulator(emitter, wide, depth) for _ in chains] for _ in sums.copies]


def _create_accumulators(
    emitter: Emitter, sums: list[Reduction], depth: int, has_blocks: bool
) -> None:
    for found in sums:
        dtype = found.node.dtype
        if has_blocks and needs_blocks(found.node):
            found.totals = _accumulators(emitter, found, total_dtype(dtype, emitter.target), depth)
        else:
            found.registers = _accumulators(emitter, found, dtype, depth)


def _create_block_accumulators(emitter: Emitter, sums: list[Reduction]) -> None:
    here = len(emitter.scopes.stack) - 1
    for found in sums:
        if found.totals:
            found.registers = _accumulators(emitter, found, found.node.dtype, here)


def _add_block_to_totals(emitter: Emitter, sums: list[Reduction], end: UOp | None) -> None:
    """total = total + acc; later instructions use the totals"""
    for found in sums:
        for chain, totals in zip(found.registers, found.totals, strict=False):
            for acc, total in zip(chain, totals, strict=True):
                value = _cast(emitter, _value_after(emitter, acc, end), total.dtype)
                more = UOp(Ops.ADD, total.dtype, (total, value))
                _assign(emitter, total, emitter.scopes.emit_here(more))
        found.registers = found.totals or found.registers


def _value_after(emitter: Emitter, acc: UOp, end: UOp | None) -> UOp:
    """The value of an accumulator after its loop."""
    assert end is not None, f"a register without a loop: {acc}"
    return emitter.scopes.emit_here(UOp(Ops.AFTER, acc.dtype, (acc, end)))


def _cast(emitter: Emitter, value: UOp, dtype: DType) -> UOp:
    if value.dtype is dtype:
        return value
    return emitter.scopes.emit_here(UOp(Ops.CAST, dtype, (value,)))


def _accumulate(emitter: Emitter, sums: Reduction) -> None:
    """The loop body: update the accumulators, chain after chain."""
    if not sums.registers:  # fully unrolled: no loop, no accumulator
        for found in sums.copies:
            sums.registers.append(_unrolled_terms(emitter, sums, found))
        return
    for position, step in enumerate(sums.steps):
        for found, chain in zip(sums.copies, sums.registers, strict=True):
            acc = chain[position % sums.chains]
            current = sums.current_values.get(acc, acc)
            sums.current_values[acc] = _update(emitter, sums, current, {**found, **step})


def _unrolled_terms(emitter: Emitter, sums: Reduction, found: UnrollCopy) -> list[UOp]:
    """The terms of one sum; products are added one by one if enough other sums hide the latency."""
    if len(sums.copies) < MIN_CHAINED_RESULTS or not _is_product(sums.node):
        return [_term(emitter, sums, {**found, **step}) for step in sums.steps]
    total = _term(emitter, sums, {**found, **sums.steps[0]})
    for step in sums.steps[1:]:
        total = _update(emitter, sums, total, {**found, **step})
    return [total]


def _results(emitter: Emitter, sums: Reduction, end: UOp | None) -> dict[Any, UOp]:
    node = sums.node
    totals: list[UOp] = []
    for values in sums.registers:
        if end is not None:
            dtype = node.dtype.vec(sums.width)
            values = [_cast(emitter, _value_after(emitter, acc, end), dtype) for acc in values]
        totals.append(combine_pairwise(emitter.scopes, node.arg, values))
    results = zip(sums.copies, _combine_vector_lanes(emitter, node, totals), strict=True)
    return {(node, emitter.key(node, copy)): result for copy, result in results}


def _width(emitter: Emitter, node: UOp, copy: UnrollCopy) -> int:
    """The lanes of the accumulator: of the reduction itself, or of its result."""
    own = [r.size for r in node.bound if emitter.is_vector(r)]
    return own[0] if own else emitter.lanes(node, copy)


def new_accumulator(emitter: Emitter, start: UOp, depth: int) -> UOp:
    emitter.accumulators += 1
    acc = UOp(Ops.ACC, start.dtype, (start,), emitter.accumulators - 1)
    return emitter.scopes.emit(acc, depth)


def _update(emitter: Emitter, sums: Reduction, current: UOp, copy: UnrollCopy) -> UOp:
    """current op x; products use a fused multiply-add where the machine has one."""
    if sums.dots is not None:
        return emit_dot(emitter, sums.dots, current, copy)
    if _is_product(sums.node):
        factors = sums.node.src[0].src
        values: list[UOp] = []
        for factor in factors:
            value = emitter.value(factor, copy)
            if value.is_const and value.arg == 0 and not factor.is_const:
                return current  # a copy that reads nothing but padding
            values.append(emitter.splat(value, sums.width))
        update = UOp(Ops.MULACC, current.dtype, (*values, current))
    else:
        update = UOp(sums.node.arg, current.dtype, (current, _term(emitter, sums, copy)))
    return emitter.scopes.emit_here(update)


def _term(emitter: Emitter, sums: Reduction, copy: UnrollCopy) -> UOp:
    return emitter.splat(emitter.value(sums.node.src[0], copy), sums.width)


def _is_product(node: UOp) -> bool:
    body = node.src[0]
    return node.arg is Ops.ADD and body.op is Ops.MUL and body.dtype.kind == "float"


def _combine_vector_lanes(emitter: Emitter, node: UOp, values: list[UOp]) -> list[UOp]:
    """Combine the lanes of vectors if the reduction itself runs over lanes."""
    if not any(emitter.is_vector(r) for r in node.bound):
        return values
    return combine_lanes(emitter.scopes, node.arg, values)
