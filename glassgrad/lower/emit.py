"""Nest -> instructions: one walk that computes each node once per register, in the outermost loop.

An unrolled axis (UPCAST, UNROLL) has no loop: the code is repeated for each of its values, and each
repetition is an *unroll copy*. The LANE axis is a vector: a node that depends on it has a vector
dtype. On a machine without vector arithmetic lanes are unroll copies too, and only loads and stores
are vectors.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from itertools import product
from typing import Any

from glassgrad.base.dtype import DType, dtypes
from glassgrad.ir.linear import Linear, flat, linear, order, without_remainders
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.staged import carried_loops
from glassgrad.ir.stages import Target
from glassgrad.ir.strides import strides_of
from glassgrad.ir.uop import UOp, const
from glassgrad.lower.constant_conditions import (
    fold_constants,
    fold_logic,
    uniform_scalar,
    uniform_truth,
)
from glassgrad.lower.math.division import hardware_division
from glassgrad.lower.memory.access import emit_stage
from glassgrad.lower.memory.bounds_check import emit_check
from glassgrad.lower.memory.loads import emit_load
from glassgrad.lower.prefetch.epilogue import PrefetchShare
from glassgrad.lower.reduce.accumulators import emit_reduction, find_fusable_reductions
from glassgrad.lower.reduce.carried_scan import emit_carried_scan, find_carried_stages
from glassgrad.lower.reduce.scan import emit_scan
from glassgrad.lower.scope import GRID, Scope, Scopes, loops_of

LANE, CONST, RANGE, LOAD, REDUCE = AxisKind.LANE, Ops.CONST, Ops.RANGE, Ops.LOAD, Ops.REDUCE
STACK, CAST, VARIABLE, CHECK = Ops.STACK, Ops.CAST, Ops.VARIABLE, Ops.CHECK
WHERE = Ops.WHERE
FLOORDIV, FLOORMOD = Ops.FLOORDIV, Ops.FLOORMOD
ADD, SUB, MUL = Ops.ADD, Ops.SUB, Ops.MUL
FOLDED: dict[Ops, Callable[[int, int], int]] = {
    ADD: operator.add,
    SUB: operator.sub,
    MUL: operator.mul,
    Ops.MIN: min,
}

UnrollCopy = Mapping[UOp, int]  # unrolled range -> its value in this copy of the code
OPS_WITH_OWN_EMITTER = frozenset((Ops.LOAD, Ops.REDUCE, Ops.SCAN, Ops.STAGE, Ops.INDEX))


class Emitter:
    """The state of the walk: open loops, emitted values, and counters for names."""

    def __init__(
        self,
        target: Target,
        body: UOp,
        may_alias: bool = False,
        max_instructions: int | None = None,
    ) -> None:
        self.target = target
        self.body = body
        self.may_alias = may_alias
        self.scopes = Scopes(max_instructions)
        self.index_dtype = target.index_dtype
        self.accumulators = 0
        self.loop_count = 0
        self.scratches = 0
        self.grid: dict[UOp, UOp] = {}  # GLOBAL, LOCAL, GROUP range -> SPECIAL
        self.cores = 1  # iterations that the launcher divides among cores
        # STORE -> (AFTER of its buffer, the scope that the AFTER belongs to)
        self.buffers: dict[UOp, tuple[UOp, Scope]] = {}
        # loop -> prefetches per iteration
        self.prefetch_shares: dict[UOp, list[PrefetchShare]] = {}
        self._loops: dict[UOp, tuple[UOp, ...]] = {}
        self._unrolled: dict[UOp, tuple[UOp, ...]] = {}
        self._facts: dict[UOp, tuple[tuple[UOp, ...], tuple[UOp, ...]]] = {}
        self._below: dict[UOp, list[UOp]] = {}
        self._flat: dict[UOp, Linear] = {}
        self._numbers: dict[int, UOp] = {}
        # (base, terms) -> pointer, see lower/memory/pointers.py
        self.pointers: dict[tuple[Any, ...], UOp] = {}
        self.carried_stages = find_carried_stages(body)
        # Where a buffer is both read and written, a reduction must not run before its first use.
        self.fusable_reductions = {} if may_alias else find_fusable_reductions(body, self)

    # ------------------------------------------------------------------ facts about nodes

    def loops(self, node: UOp) -> tuple[UOp, ...]:
        found = self._loops.get(node)
        if found is None:
            found = self._loops[node] = loops_of(node.ranges)
        return found

    def unrolled(self, node: UOp) -> tuple[UOp, ...]:
        found = self._unrolled.get(node)
        if found is None:
            ranges = [r for r in node.ranges if r.kind.is_unrolled]
            found = self._unrolled[node] = tuple(sorted(ranges, key=order))
        return found

    def flat(self, index: UOp) -> Linear:
        """The element offset of an INDEX as a linear sum."""
        found = self._flat.get(index)
        if found is None:
            found = without_remainders(flat(index.indices, strides_of(index.src[0])))
            self._flat[index] = found
        return found

    def depth(self, node: UOp) -> int:
        return self.scopes.depth_of(self.loops(node))

    def key(self, node: UOp, copy: UnrollCopy) -> tuple[int | None, ...]:
        return tuple([copy.get(r) for r in self.unrolled(node)])

    def lanes(self, node: UOp, copy: UnrollCopy) -> int:
        """The number of lanes of a node in this unroll copy; 1 for a scalar."""
        for r in self.unrolled(node):
            if r.kind is LANE and r not in copy:
                return r.size
        return 1

    def copies(self, ranges: Iterable[UOp], base: UnrollCopy | None = None) -> list[UnrollCopy]:
        """All unroll copies over these ranges, on top of `base`; vector lanes stay together."""
        split = [r for r in ranges if r.kind.is_unrolled and not self.is_vector(r)]
        combinations = product(*(range(r.size) for r in split))
        return [
            {**(base or {}), **dict(zip(split, values, strict=True))} for values in combinations
        ]

    def is_vector(self, axis: UOp) -> bool:
        return axis.kind is LANE and self.target.has_vector_alu

    # ------------------------------------------------------------------ loops

    def open(self, axis: UOp) -> None:
        """Enter the loop of a range; grid axes and unrolled axes have none."""
        if axis.kind in GRID:
            self._emit_grid_coordinate(axis)
        elif not axis.kind.is_unrolled:
            size = self.value(axis.src[0], {})
            line = UOp(RANGE, self.index_dtype, (size,), (self.loop_count, axis.kind))
            self.loop_count += 1
            if axis.kind is AxisKind.CORE:
                self.cores *= axis.size
            self.scopes.open(axis, line)

    def close(self, axis: UOp) -> UOp | None:
        """Leave the loop of a range; returns its END, or None if it has no loop."""
        if axis.kind in GRID or axis.kind.is_unrolled:
            return None
        inner = self.scopes.stack[-1]
        end = UOp(Ops.END, dtypes.void, (inner.lines[0],))
        self.scopes.close(axis, end)
        for store, (after, scope) in self.buffers.items():
            if scope is inner:  # written in this loop, and read behind it
                after = UOp(Ops.AFTER, after.dtype, (store.buffer, end))
                self.buffers[store] = after, self.scopes.stack[-1]
        return end

    def _emit_grid_coordinate(self, axis: UOp) -> None:
        if axis in self.grid:
            return
        stem = "gidx" if axis.kind is AxisKind.GLOBAL else "lidx"
        number = sum(special.arg[0].startswith(stem) for special in self.grid.values())
        special = UOp(Ops.SPECIAL, self.index_dtype, (), (f"{stem}{number}", axis.size))
        self.grid[axis] = self.scopes.emit(special)

    # ------------------------------------------------------------------ values

    def value(self, root: UOp, copy: UnrollCopy) -> UOp:
        """The instruction that computes an expression in this unroll copy; emitted once."""
        if root.op is CONST:
            return self.constant(root)
        memo, key = self._memo_slot(root, copy)
        found = memo.get(key)
        if found is None:
            below = self._below.get(root)
            if below is None:
                below = self._below[root] = _postorder(root)[:-1]
            for node in below:
                self._emit_node(node, copy)
            found = memo[key] = self._emit_uncached(root, copy)
        return found

    def _emit_node(self, node: UOp, copy: UnrollCopy) -> UOp:
        if node.op is CONST:
            return self.constant(node)
        memo, key = self._memo_slot(node, copy)
        found = memo.get(key)
        if found is None:
            found = memo[key] = self._emit_uncached(node, copy)
        return found

    def _memo_slot(self, node: UOp, copy: UnrollCopy) -> tuple[dict[Any, UOp], Any]:
        """The memo of the loop that a value belongs to, and the value's key in it."""
        facts = self._facts.get(node)
        if facts is None:
            facts = self._facts[node] = (self.loops(node), self.unrolled(node))
        loops, unrolled = facts
        depth, open_loops = 0, self.scopes.depth
        for loop in loops:
            if open_loops[loop] > depth:
                depth = open_loops[loop]
        key = (node, tuple(map(copy.get, unrolled)) if unrolled else ())
        return self.scopes.stack[depth].memo, key

    def _emit_uncached(self, node: UOp, copy: UnrollCopy) -> UOp:
        op = node.op
        if op is RANGE:
            return self._range(node, copy)
        if op is LOAD:
            return emit_load(self, node, copy)
        if op is REDUCE:
            return emit_reduction(self, node, copy)
        if op is Ops.SCAN:
            return emit_scan(self, node, copy)
        if op is Ops.STAGE:
            return (emit_carried_scan if carried_loops(node) else emit_stage)(self, node, copy)
        if op is CHECK:
            return emit_check(self, node, copy)
        if op is FLOORDIV or op is FLOORMOD:
            return self.value(hardware_division(node), copy)
        if op is VARIABLE:
            return self.scopes.emit(node.replace(dtype=self.index_dtype))
        return self._elementwise(node, copy)

    def _elementwise(self, node: UOp, copy: UnrollCopy) -> UOp:
        op, lanes = node.op, self.lanes(node, copy)
        if op is WHERE and (chosen := self._taken_branch(node, copy)) is not None:
            return self.splat(self._emit_node(chosen, copy), lanes)
        if op is CAST and lanes > 1 and (numbers := self._index_vector(node, copy)) is not None:
            return numbers
        src = tuple([self.splat(self._emit_node(source, copy), lanes) for source in node.src])
        if lanes == 1 and node.dtype.kind == "index":
            return self._index_arithmetic(op, src)
        if op is CAST and src[0].dtype is self.machine_dtype(node.dtype).vec(lanes):
            return src[0]
        return self._result(
            op, self.machine_dtype(node.dtype).vec(lanes), src, node.dtype.kind == "index"
        )

    def _result(self, op: Ops, dtype: DType, src: tuple[UOp, ...], is_index: bool) -> UOp:
        """The instruction, folded if possible; a condition that is equal in all lanes is a
        scalar.
        """
        scalars = tuple([s for source in src if (s := uniform_scalar(source)) is not None])
        if dtype.count > 1 and dtype.kind == "bool" and len(scalars) == len(src):
            return self.splat(self._result(op, dtype.scalar, scalars, is_index), dtype.count)
        if (operand := fold_logic(op, src)) is not None:
            return operand
        result = fold_constants(op, dtype, src, is_index) or UOp(op, dtype, src)
        for source in result.src:
            if source.is_const:
                self.scopes.emit(source)
        return self.scopes.emit(result)

    def _taken_branch(self, node: UOp, copy: UnrollCopy) -> UOp | None:
        """The branch of a WHERE whose condition is constant in this unroll copy."""
        holds = uniform_truth(self._emit_node(node.src[0], copy))
        return None if holds is None else node.src[1 if holds else 2]

    def _index_vector(self, node: UOp, copy: UnrollCopy) -> UOp | None:
        """CAST of a vector of indices to an int dtype: first lane plus constant lane offsets."""
        index, dtype = node.src[0], node.dtype
        if index.dtype.kind != "index" or not dtypes.is_int(dtype):
            return None
        (lane,) = [r for r in self.unrolled(index) if r.kind is LANE and r not in copy]
        terms, _ = linear(index)
        if any(atom is not lane and lane in atom.ranges for atom in terms):
            return None
        first = self.value(node, {**copy, lane: 0})
        steps = [self.scopes.emit(const(terms[lane] * i, dtype)) for i in range(lane.size)]
        offsets = self.scopes.emit(UOp(STACK, dtype.vec(lane.size), tuple(steps)))
        return self.scopes.emit(UOp(ADD, offsets.dtype, (self.splat(first, lane.size), offsets)))

    def _index_arithmetic(self, op: Ops, src: tuple[UOp, ...]) -> UOp:
        """Scalar index arithmetic; unroll copies make constants, which are folded."""
        if op is CAST and src[0].dtype is self.index_dtype:
            return src[0]
        if op is Ops.NEG and src[0].is_const:
            return self.index_constant(-src[0].arg)
        if len(src) == 2 and src[1].is_const:
            left, right = src[0], src[1].arg
            if left.is_const and op in FOLDED:
                return self.index_constant(FOLDED[op](left.arg, right))
            if op in (ADD, SUB) and right == 0:
                return left
            if op is MUL:
                return self.times(left, right)
        if op is ADD and src[0].is_const and src[0].arg == 0:
            return src[1]
        return self.scopes.emit(UOp(op, self.index_dtype, src))

    def times(self, value: UOp, factor: int) -> UOp:
        """index · constant; by a power of two it is a shift."""
        if factor == 1:
            return value
        if factor > 0 and factor & (factor - 1) == 0:
            amount = self.index_constant(factor.bit_length() - 1)
            return self.scopes.emit(UOp(Ops.SHL, value.dtype, (value, amount)))
        return self.scopes.emit(UOp(MUL, value.dtype, (value, self.index_constant(factor))))

    def machine_dtype(self, dtype: DType) -> DType:
        """Index values have the target's index dtype."""
        return self.index_dtype if dtype.kind == "index" else dtype

    def constant(self, node: UOp) -> UOp:
        return (
            self.index_constant(node.arg) if node.dtype.kind == "index" else self.scopes.emit(node)
        )

    def index_constant(self, value: int) -> UOp:
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = self.scopes.emit(UOp(CONST, self.index_dtype, (), value))
        return found

    def _range(self, node: UOp, copy: UnrollCopy) -> UOp:
        if node in copy:
            return self.index_constant(copy[node])
        if node.kind is LANE:
            numbers = tuple([self.index_constant(i) for i in range(node.size)])
            return self.scopes.emit(UOp(STACK, self.index_dtype.vec(node.size), numbers))
        if node.kind in GRID:
            return self.grid[node]
        return self.scopes.stack[self.scopes.depth[node]].lines[0]

    def splat(self, value: UOp, lanes: int) -> UOp:
        """A scalar repeated in every lane."""
        if lanes == 1 or value.dtype.count == lanes:
            return value
        return self.scopes.emit(UOp(STACK, value.dtype.vec(lanes), (value,) * lanes))


def _postorder(root: UOp) -> list[UOp]:
    """The nodes of an expression, sources first, left to right: an order that depends on structure
    alone, so equal kernels become equal programs in every process.
    """
    found: dict[UOp, None] = {}
    stack = [root]
    while stack:
        node = stack[-1]
        below = () if _has_own_emitter(node) else node.src
        missing = [source for source in below if source not in found]
        if missing:
            stack.extend(reversed(missing))
        else:
            found[stack.pop()] = None
    return list(found)


def _has_own_emitter(node: UOp) -> bool:
    return node.op in OPS_WITH_OWN_EMITTER
