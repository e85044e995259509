"""CARRY: a maximum and sums relative to it, while blocks of what they are made of go by.

Rows of scores are exponentials relative to their maximum before they are summed, and a long row
does not fit a cache. Its blocks do: each brings a maximum, and sums relative to the maximum so far;
where that grows, what was summed before gets as much smaller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from glassgrad.base.dtype import ConstType, DType, dtypes
from glassgrad.base.records import replace
from glassgrad.base.rounding import largest
from glassgrad.ir.divmod import less
from glassgrad.ir.facts import identity
from glassgrad.ir.linear import ZERO, add, scale, sub
from glassgrad.ir.ops import Before, Ops
from glassgrad.ir.reindex import open_gates, rebuild, reindex
from glassgrad.ir.stages import Nest, Target
from glassgrad.ir.uop import UOp, const, make_range
from glassgrad.loops.hidden import limits_in_blocks
from glassgrad.loops.nest import blocks_of, next_number, nodes_of
from glassgrad.loops.opts import IllegalMove
from glassgrad.loops.relative import Family, Relation, relative_sums


def carry(nest: Nest, axis: UOp, amount: Any, target: Target) -> Nest:
    """m = max of s[k]; y = sum of exp(s[k] - m)·x[k]
    ->  for 256 k at a time: b = m; m = max of b and their s; y = y·exp(b - m) + their sum
    """
    if not 0 < amount < axis.size or target.has_threads:
        raise IllegalMove(f"there are no blocks of {amount} in {axis.size}")
    family = relative_sums(nest, axis)
    blocks = make_range(next_number(nest), -(-axis.size // amount))
    done = _Blocks(family, blocks, amount).of(nest)
    maximum = done[family.maximum]
    made = _Carried(replace(nest, body=done[nest.body]), blocks, maximum, family.rows)
    inside = {maximum: _read(made.now, family.rows).cast(maximum.dtype)}
    behind = {maximum: _read(made.last, family.rows).cast(maximum.dtype)}
    for node, relation in family.sums.items():
        behind[done[node]] = made.sum(done[node].substitute(inside), relation)
    body = done[nest.body].substitute(behind)
    limits = limits_in_blocks(nest.limits, family.loops, blocks, amount)
    return replace(nest, body=body, limits=limits)


# ---------------------------------------------------------------------- blocks of the axis


class _Blocks:
    """Loops along the axis go through one block; scratch has room for one block."""

    def __init__(self, family: Family, blocks: UOp, amount: int) -> None:
        self.family = family
        self.blocks = blocks
        self.amount = amount
        self.short = {r: make_range(r.axis, amount, r.kind) for r in family.loops}
        self.size = family.maximum.bound[0].size
        self.is_even = self.size % amount == 0

    def of(self, nest: Nest) -> dict[UOp, UOp]:
        """Every node, and what becomes of it."""
        done: dict[UOp, UOp] = {r: self._place(r) for r in self.family.loops}
        for node in nodes_of(nest.body):
            if node in done:
                continue
            src = tuple([done[source] for source in node.src])
            if node in self.family.stages:
                done[node] = self._stage(node, src)
            elif node is self.family.maximum or node in self.family.sums:
                done[node] = self._reduce(node, src)
            elif node.op is Ops.INDEX:
                done[node] = self._index(node, src)
            else:
                done[node] = node if src == node.src else rebuild(node, src)
        return done

    def _place(self, r: UOp) -> UOp:
        """Where a loop is on the axis."""
        return add(scale(self.blocks, self.amount), self.short[r])

    def _valid(self, r: UOp) -> UOp:
        """Is there such a place? The last block may reach beyond the axis."""
        return less(self._place(r), const(self.size))

    def _masked(self, value: UOp, r: UOp, nothing: ConstType) -> UOp:
        """The value where there is such a place: told by small numbers, which fit more lanes."""
        rest = sub(const(self.size), scale(self.blocks, self.amount))
        is_there = self.short[r].cast(dtypes.int32) < rest.cast(dtypes.int32)
        return is_there.where(value, value.const_like(nothing))

    def _stage(self, node: UOp, src: tuple[UOp, ...]) -> UOp:
        number = self.family.stages[node]
        along = node.src[1 + number]
        value = src[0]
        if not self.is_even and node in self.family.powers:
            value = self._masked(value, along, 0)
        shape = tuple([self.amount if i == number else n for i, n in enumerate(node.arg)])
        rest = [
            self.short.get(before, after)
            for before, after in zip(node.src[1:], src[1:], strict=True)
        ]
        return UOp(Ops.STAGE, node.dtype, (value, *rest), shape)

    def _reduce(self, node: UOp, src: tuple[UOp, ...]) -> UOp:
        bound = [self.short.get(r, r) for r in node.bound]
        value = src[0]
        if not self.is_even and not self._vanishes(node):
            (along,) = self.family.loops.intersection(node.bound)
            value = self._masked(value, along, identity(node.arg, node.dtype))
        return UOp(Ops.REDUCE, node.dtype, (value, *bound), node.arg)

    def _vanishes(self, node: UOp) -> bool:
        """Is it a sum of products of zeros beyond the axis? Scratch and memory are 0 there."""
        factors = node.src[0].src if node.src[0].op is Ops.MUL else (node.src[0],)
        loads = [f.src[0] if f.op is Ops.CAST else f for f in factors]
        if node.arg is not Ops.ADD or any(load.op is not Ops.LOAD for load in loads):
            return False
        kept = [load for load in loads if load.buffer in self.family.powers]
        others = [load.src[0] for load in loads if load not in kept]
        (along,) = self.family.loops.intersection(node.bound)
        are_zero = [along in i.ranges and i.src[0] not in self.family.stages for i in others]
        return bool(kept) and all(are_zero)

    def _index(self, node: UOp, src: tuple[UOp, ...]) -> UOp:
        base, indices = node.src[0], list(src[1 : 1 + len(node.indices)])
        gate = src[-1] if node.gate is not None else None
        if base in self.family.stages:
            number = self.family.stages[base]
            indices[number] = self.short[node.indices[number]]
        elif not self.is_even:
            read = {r for place in node.indices for r in place.ranges if r in self.family.loops}
            for r in sorted(read, key=lambda r: r.axis):
                gate = self._valid(r) if gate is None else gate & self._valid(r)
        return open_gates(src[0].index(*indices, gate=gate))


# ---------------------------------------------------------------------- what is carried along

Places = tuple[UOp, ...]  # one for every loop that a value depends on, inside of the shared ones


class _Carried:
    """Scratch with a place for every row: maxima before a block, with it, and in the end."""

    def __init__(self, nest: Nest, blocks: UOp, maximum: UOp, rows: Places) -> None:
        self.nest = nest
        self.blocks = blocks
        self.rows = rows
        self.number = next_number(nest)
        self.dtype = _wide(maximum.dtype)
        self.lowest = const(-largest(maximum.dtype), self.dtype)
        self.new = self._of_rows(lambda at: self._at(maximum, at).cast(self.dtype))
        self.before = self._of_rows(lambda at: self._scan(Before(Ops.MAX), _read(self.new, at)))
        self.now = self._of_rows(lambda at: self._old(at).maximum(_read(self.new, at)))
        self.last = self._of_rows(lambda at: self._scan(Ops.MAX, _read(self.new, at)), blocks)
        self.factors: dict[float, UOp] = {}

    def sum(self, node: UOp, relation: Relation) -> UOp:
        """sum of a block  ->  s = s·factor + sum of a block; what s is in the end"""
        dtype = _wide(node.dtype)
        wide = UOp(Ops.REDUCE, dtype, (node.src[0].cast(dtype), *node.bound), node.arg)
        factor = _read(self._factor(relation.rate), relation.rows).cast(dtype)
        loops = self._loops_of(node)
        kept = self._keep(
            loops,
            lambda at: self._scan(
                Ops.MULACC, *[reindex(n, dict(zip(loops, at, strict=True))) for n in (wide, factor)]
            ),
            self.blocks,
        )
        # A maximum that is no number makes every distance from it none.
        last = _read(self.last, relation.rows)
        return (_read(kept, loops) + (last - last).cast(dtype)).cast(node.dtype)

    def _factor(self, rate: float) -> UOp:
        """How much smaller everything gets that was relative to the maximum before."""
        if rate not in self.factors:
            self.factors[rate] = self._of_rows(
                lambda at: ((self._old(at) - _read(self.now, at)) * rate).alu(Ops.EXP2)
            )
        return self.factors[rate]

    def _old(self, at: Places) -> UOp:
        """The maximum before; of nothing it is the lowest number, which has distances to others."""
        return _read(self.before, at).maximum(self.lowest)

    def _at(self, maximum: UOp, at: Places) -> UOp:
        return reindex(maximum, dict(zip(self.rows, at, strict=True)))

    def _scan(self, op: Ops | Before, *sources: UOp) -> UOp:
        return UOp(Ops.SCAN, sources[0].dtype, (*sources, self.blocks), op)

    def _of_rows(self, value_at: Callable[[Places], UOp], *around: UOp) -> UOp:
        return self._keep(self.rows, value_at, *around)

    def _keep(self, loops: Places, value_at: Callable[[Places], UOp], *around: UOp) -> UOp:
        own = tuple([make_range(self.number + i, r.src[0], r.kind) for i, r in enumerate(loops)])
        self.number += len(own)
        value = value_at(own)
        shape = tuple([r.size for r in loops]) or (1,)
        return UOp(Ops.STAGE, value.dtype, (value, *(own or (ZERO,)), *around, *own), shape)

    def _loops_of(self, node: UOp) -> Places:
        """What a sum depends on, in the order of the loops that it is computed in."""
        wanted = node.ranges - set(self.nest.outer) - {self.blocks}
        for block in blocks_of(self.nest.body):
            if wanted and block is not node and wanted <= set(block.bound):
                return tuple([r for r in block.bound if r in wanted])
        return tuple(sorted(wanted, key=lambda r: r.axis))


def _read(stage: UOp, at: Places) -> UOp:
    return stage.index(*(at or (ZERO,))).load()


def _wide(dtype: DType) -> DType:
    return max(dtypes.float32, dtype, key=lambda found: found.bits)
