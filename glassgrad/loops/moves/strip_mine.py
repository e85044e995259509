"""An axis that goes by in blocks: all that is made along it, and scratch that is kept meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from glassgrad.base.dtype import ConstType, DType, dtypes
from glassgrad.ir.divmod import less
from glassgrad.ir.facts import identity
from glassgrad.ir.linear import ZERO, add, scale, sub
from glassgrad.ir.ops import Before, Ops
from glassgrad.ir.reindex import open_gates, rebuild, reindex
from glassgrad.ir.stages import Nest
from glassgrad.ir.uop import UOp, const, make_range
from glassgrad.loops.nest import blocks_of, nodes_of

Places = tuple[UOp, ...]  # one for every loop that a value depends on, inside of the shared ones


class Blocks:
    """Loops along the axis go through one block; scratch has room for one block.

    `stages` are those with a dimension along the axis, and which one; `zeros` those of them that
    must be 0 beyond the axis, where the last block is not whole.
    """

    def __init__(
        self,
        loops: Collection[UOp],
        stages: Mapping[UOp, int],
        zeros: Collection[UOp],
        blocks: UOp,
        amount: int,
    ) -> None:
        self.loops = frozenset(loops)
        self.stages = stages
        self.zeros = zeros
        self.blocks = blocks
        self.amount = amount
        self.short = {r: make_range(r.axis, amount, r.kind) for r in loops}
        self.size = max(r.size for r in loops)
        self.is_even = self.size % amount == 0

    def of(self, nest: Nest) -> dict[UOp, UOp]:
        """Every node, and what becomes of it."""
        done: dict[UOp, UOp] = {r: self.place(r) for r in self.loops}
        for node in nodes_of(nest.body):
            if node in done:
                continue
            src = tuple([done[source] for source in node.src])
            if node in self.stages:
                done[node] = self._stage(node, src)
            elif node.op is Ops.REDUCE and not self.loops.isdisjoint(node.bound):
                done[node] = self._reduce(node, src)
            elif node.op is Ops.STORE and not self.loops.isdisjoint(node.bound):
                done[node] = self._store(node, src)
            elif node.op is Ops.INDEX:
                done[node] = self._index(node, src)
            else:
                done[node] = node if src == node.src else rebuild(node, src)
        return done

    def place(self, r: UOp) -> UOp:
        """Where a loop is on the axis."""
        return add(scale(self.blocks, self.amount), self.short[r])

    def _valid(self, r: UOp) -> UOp:
        """Is there such a place? The last block may reach beyond the axis."""
        return less(self.place(r), const(self.size))

    def _masked(self, value: UOp, r: UOp, nothing: ConstType) -> UOp:
        """The value where there is such a place: told by small numbers, which fit more lanes."""
        rest = sub(const(self.size), scale(self.blocks, self.amount))
        is_there = self.short[r].cast(dtypes.int32) < rest.cast(dtypes.int32)
        return is_there.where(value, value.const_like(nothing))

    def _stage(self, node: UOp, src: tuple[UOp, ...]) -> UOp:
        number = self.stages[node]
        along = node.src[1 + number]
        value = src[0]
        if not self.is_even and node in self.zeros:
            value = self._masked(value, along, 0)
        shape = tuple([self.amount if i == number else n for i, n in enumerate(node.arg)])
        rest = [
            self.short.get(before, after)
            for before, after in zip(node.src[1:], src[1:], strict=True)
        ]
        return UOp(Ops.STAGE, node.dtype, (value, *rest), self.room(shape, node.dtype.itemsize))

    def room(self, shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
        """How much scratch there is for a block."""
        return shape

    def _reduce(self, node: UOp, src: tuple[UOp, ...]) -> UOp:
        bound = [self.short.get(r, r) for r in node.bound]
        value = src[0]
        if not self.is_even and not self._vanishes(node):
            (along,) = self.loops.intersection(node.bound)
            value = self._masked(value, along, identity(node.arg, node.dtype))
        return UOp(Ops.REDUCE, node.dtype, (value, *bound), node.arg)

    def _store(self, node: UOp, src: tuple[UOp, ...]) -> UOp:
        """Blocks are a loop around that of one block."""
        bound = [
            new
            for r in node.bound
            for new in ((self.blocks, self.short[r]) if r in self.short else (r,))
        ]
        return UOp(Ops.STORE, node.dtype, (*src[:2], *bound), node.arg)

    def _vanishes(self, node: UOp) -> bool:
        """Is it a sum of products of zeros beyond the axis? Scratch and memory are 0 there."""
        factors = node.src[0].src if node.src[0].op is Ops.MUL else (node.src[0],)
        loads = [f.src[0] if f.op is Ops.CAST else f for f in factors]
        if node.arg is not Ops.ADD or any(load.op is not Ops.LOAD for load in loads):
            return False
        kept = [load for load in loads if load.buffer in self.zeros]
        others = [load.src[0] for load in loads if load not in kept]
        (along,) = self.loops.intersection(node.bound)
        are_zero = [along in i.ranges and i.src[0] not in self.stages for i in others]
        return bool(kept) and all(are_zero)

    def _index(self, node: UOp, src: tuple[UOp, ...]) -> UOp:
        base, indices = node.src[0], list(src[1 : 1 + len(node.indices)])
        gate = src[-1] if node.gate is not None else None
        if base in self.stages:
            number = self.stages[base]
            indices[number] = self.short[node.indices[number]]
        elif not self.is_even:
            read = {r for place in node.indices for r in place.ranges if r in self.loops}
            for r in sorted(read, key=lambda r: r.axis):
                gate = self._valid(r) if gate is None else gate & self._valid(r)
        return open_gates(src[0].index(*indices, gate=gate))


class Kept:
    """Scratch with loops of its own, which are numbered from `number` on, while blocks go by."""

    def __init__(self, nest: Nest, blocks: UOp, number: int) -> None:
        self.nest = nest
        self.blocks = blocks
        self.number = number

    def keep(self, loops: Places, value_at: Callable[[Places], UOp], *around: UOp) -> UOp:
        """A place for every step of these loops; around them other loops run to fill it."""
        own = tuple([make_range(self.number + i, r.src[0], r.kind) for i, r in enumerate(loops)])
        self.number += len(own)
        value = value_at(own)
        shape = tuple([r.size for r in loops]) or (1,)
        return UOp(Ops.STAGE, value.dtype, (value, *(own or (ZERO,)), *around, *own), shape)

    def scan(self, op: Ops | Before, *sources: UOp) -> UOp:
        return UOp(Ops.SCAN, sources[0].dtype, (*sources, self.blocks), op)

    def summed(self, op: Ops, *terms: UOp) -> UOp:
        """What is combined from block to block, as it is when all have gone by."""
        loops = self._loops_of(terms[0])
        kept = self.keep(
            loops,
            lambda at: self.scan(
                op, *[reindex(t, dict(zip(loops, at, strict=True))) for t in terms]
            ),
            self.blocks,
        )
        return read(kept, loops)

    def _loops_of(self, node: UOp) -> Places:
        """What a sum depends on, in the order of the loops that it is computed in."""
        wanted = node.ranges - set(self.nest.outer) - {self.blocks}
        for block in blocks_of(self.nest.body):
            if wanted and block is not node and wanted <= set(block.bound):
                return tuple([r for r in block.bound if r in wanted])
        return tuple(sorted(wanted, key=lambda r: r.axis))


def read(stage: UOp, at: Places) -> UOp:
    return stage.index(*(at or (ZERO,))).load()


def wide(dtype: DType) -> DType:
    """What sums of many blocks are kept in."""
    return max(dtypes.float32, dtype, key=lambda found: found.bits)


def widened(reduce: UOp) -> UOp:
    """The same, in a dtype for sums of many blocks."""
    dtype = wide(reduce.dtype)
    return UOp(Ops.REDUCE, dtype, (reduce.src[0].cast(dtype), *reduce.bound), reduce.arg)
