"""Strip-mine an axis through a whole nest, and keep scratch that is carried between its blocks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from glassgrad.base.dtype import ConstType, DType, dtypes
from glassgrad.ir.divmod import less
from glassgrad.ir.facts import identity
from glassgrad.ir.linear import ZERO, add, scale, sub
from glassgrad.ir.ops import Exclusive, Ops
from glassgrad.ir.reindex import drop_open_gate, rebuild, reindex
from glassgrad.ir.stages import Nest
from glassgrad.ir.uop import UOp, const, make_range
from glassgrad.loops.nest import binders_of, nodes_of

Indices = tuple[UOp, ...]  # one per loop that a value depends on, without shared loops


class StripMine:
    """Rewrites loops along an axis to run over one block; scratch along it holds one block.

    `stages` maps each STAGE along the axis to its dimension; `zero_filled` are those that must hold
    0 beyond the end of the axis, where the last block is partial.
    """

    def __init__(
        self,
        loops: Collection[UOp],
        stages: Mapping[UOp, int],
        zero_filled: Collection[UOp],
        block_range: UOp,
        amount: int,
    ) -> None:
        self.loops = frozenset(loops)
        self.stages = stages
        self.zero_filled = zero_filled
        self.block_range = block_range
        self.amount = amount
        self.inner = {r: make_range(r.axis, amount, r.kind) for r in loops}
        self.size = max(r.size for r in loops)
        self.is_even = self.size % amount == 0

    def apply(self, nest: Nest) -> dict[UOp, UOp]:
        """Every node -> its replacement."""
        done: dict[UOp, UOp] = {r: self.position(r) for r in self.loops}
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

    def position(self, r: UOp) -> UOp:
        """The index on the whole axis of a loop within a block."""
        return add(scale(self.block_range, self.amount), self.inner[r])

    def _in_bounds(self, r: UOp) -> UOp:
        """The condition that the index is on the axis; the last block may reach beyond."""
        return less(self.position(r), const(self.size))

    def _masked(self, value: UOp, r: UOp, neutral: ConstType) -> UOp:
        """The value in bounds, else `neutral`. Compares in int32, which has more lanes than
        int64.
        """
        rest = sub(const(self.size), scale(self.block_range, self.amount))
        in_bounds = self.inner[r].cast(dtypes.int32) < rest.cast(dtypes.int32)
        return in_bounds.where(value, value.const_like(neutral))

    def _stage(self, node: UOp, src: tuple[UOp, ...]) -> UOp:
        number = self.stages[node]
        along = node.src[1 + number]
        value = src[0]
        if not self.is_even and node in self.zero_filled:
            value = self._masked(value, along, 0)
        shape = tuple([self.amount if i == number else n for i, n in enumerate(node.arg)])
        rest = [
            self.inner.get(before, after)
            for before, after in zip(node.src[1:], src[1:], strict=True)
        ]
        return UOp(
            Ops.STAGE, node.dtype, (value, *rest), self.scratch_shape(shape, node.dtype.itemsize)
        )

    def scratch_shape(self, shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
        """The shape of scratch for one block."""
        return shape

    def _reduce(self, node: UOp, src: tuple[UOp, ...]) -> UOp:
        bound = [self.inner.get(r, r) for r in node.bound]
        value = src[0]
        if not self.is_even and not self._adds_zeros_beyond(node):
            (along,) = self.loops.intersection(node.bound)
            value = self._masked(value, along, identity(node.arg, node.dtype))
        return UOp(Ops.REDUCE, node.dtype, (value, *bound), node.arg)

    def _store(self, node: UOp, src: tuple[UOp, ...]) -> UOp:
        """A STORE gets the loop over blocks around its loop within a block."""
        bound = [
            new
            for r in node.bound
            for new in ((self.block_range, self.inner[r]) if r in self.inner else (r,))
        ]
        return UOp(Ops.STORE, node.dtype, (*src[:2], *bound), node.arg)

    def _adds_zeros_beyond(self, node: UOp) -> bool:
        """True if a sum of products needs no mask: its factors are 0 beyond the axis."""
        factors = node.src[0].src if node.src[0].op is Ops.MUL else (node.src[0],)
        loads = [f.src[0] if f.op is Ops.CAST else f for f in factors]
        if node.arg is not Ops.ADD or any(load.op is not Ops.LOAD for load in loads):
            return False
        kept = [load for load in loads if load.buffer in self.zero_filled]
        others = [load.src[0] for load in loads if load not in kept]
        (along,) = self.loops.intersection(node.bound)
        are_zero = [along in i.ranges and i.src[0] not in self.stages for i in others]
        return bool(kept) and all(are_zero)

    def _index(self, node: UOp, src: tuple[UOp, ...]) -> UOp:
        base, indices = node.src[0], list(src[1 : 1 + len(node.indices)])
        gate = src[-1] if node.gate is not None else None
        if base in self.stages:
            number = self.stages[base]
            indices[number] = self.inner[node.indices[number]]
        elif not self.is_even:
            loops = {r for index in node.indices for r in index.ranges if r in self.loops}
            for r in sorted(loops, key=lambda r: r.axis):
                gate = self._in_bounds(r) if gate is None else gate & self._in_bounds(r)
        return drop_open_gate(src[0].index(*indices, gate=gate))


class CarriedScratch:
    """Scratch carried from block to block; its loops are numbered from `number` on."""

    def __init__(self, nest: Nest, block_range: UOp, number: int) -> None:
        self.nest = nest
        self.block_range = block_range
        self.number = number

    def stage(self, loops: Indices, value_at: Callable[[Indices], UOp], *around: UOp) -> UOp:
        """A STAGE with an element per step of these loops; `around` are the outer loops that fill
        it.
        """
        own = tuple([make_range(self.number + i, r.src[0], r.kind) for i, r in enumerate(loops)])
        self.number += len(own)
        value = value_at(own)
        shape = tuple([r.size for r in loops]) or (1,)
        return UOp(Ops.STAGE, value.dtype, (value, *(own or (ZERO,)), *around, *own), shape)

    def scan(self, op: Ops | Exclusive, *sources: UOp) -> UOp:
        """A SCAN over the blocks."""
        return UOp(Ops.SCAN, sources[0].dtype, (*sources, self.block_range), op)

    def accumulate(self, op: Ops, *terms: UOp) -> UOp:
        """Combine `terms` from block to block; the value after the last block."""
        loops = self._loops_of(terms[0])
        stage = self.stage(
            loops,
            lambda at: self.scan(
                op, *[reindex(t, dict(zip(loops, at, strict=True))) for t in terms]
            ),
            self.block_range,
        )
        return load_at(stage, loops)

    def _loops_of(self, node: UOp) -> Indices:
        """The ranges a sum depends on, in the order of the loops that compute it."""
        wanted = node.ranges - set(self.nest.outer) - {self.block_range}
        for binder in binders_of(self.nest.body):
            if wanted and binder is not node and wanted <= set(binder.bound):
                return tuple([r for r in binder.bound if r in wanted])
        return tuple(sorted(wanted, key=lambda r: r.axis))


def load_at(stage: UOp, at: Indices) -> UOp:
    """The element of a STAGE at these indices; of its single element if there are none."""
    return stage.index(*(at or (ZERO,))).load()


def accumulator_dtype(dtype: DType) -> DType:
    """The dtype that sums over many blocks are kept in: at least float32."""
    return max(dtypes.float32, dtype, key=lambda found: found.bits)


def with_wide_accumulator(reduce: UOp) -> UOp:
    """The reduction in `accumulator_dtype`."""
    dtype = accumulator_dtype(reduce.dtype)
    return UOp(Ops.REDUCE, dtype, (reduce.src[0].cast(dtype), *reduce.bound), reduce.arg)
