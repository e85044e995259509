"""Schedule -> NumPy arrays: kernels executed by their plain meaning, all ranges at once.

Every range of a kernel is an axis of a grid; an expression is an array over the axes it uses.
A load out of its buffer is an error unless its gate says that it is not made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from glassgrad.ir.facts import identity
from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.stages import Kernel, Schedule
from glassgrad.ir.uop import UOp
from support.references.graph import RULES, Array, numpy_dtype, recurrence

REDUCERS = {Ops.ADD: np.add, Ops.MUL: np.multiply, Ops.MAX: np.maximum, Ops.MIN: np.minimum}


def storage_of(node: UOp) -> UOp:
    while node.op is Ops.ASSIGN:
        node = node.src[0]
    return node


def run_schedule(made: Schedule) -> list[Array]:
    """The values of the schedule's outputs, computed kernel by kernel."""
    memory: dict[UOp, Array] = {}
    for kernel, slots in zip(made.kernels, made.buffers, strict=True):
        arrays = [_memory(memory, node) for node in slots]
        with np.errstate(all="ignore"):
            run_kernel(kernel, arrays)
    return [_memory(memory, output).reshape(output.shape) for output in made.outputs]


def _memory(memory: dict[UOp, Array], node: UOp) -> Array:
    base = storage_of(node)
    if base not in memory:
        if base.op is Ops.BUFFER:
            memory[base] = np.array(base.arg.numpy())
        else:
            memory[base] = np.zeros(base.shape, numpy_dtype(base.dtype))
    return memory[base]


def run_kernel(kernel: Any, arrays: Sequence[Array]) -> None:
    """Execute a Kernel's or a Nest's stores, in order, on these arrays."""
    grid = _Grid(kernel.body, arrays)
    for store in kernel.body.src:
        grid.value(store)


class _Grid:
    def __init__(self, body: UOp, arrays: Sequence[Array]) -> None:
        ranges = [node for node in body.toposort() if node.op is Ops.RANGE]
        self.axis = {found: number for number, found in enumerate(ranges)}
        self.arrays = arrays
        self.done: dict[UOp, Array] = {}

    def value(self, root: UOp) -> Array:
        for node in root.toposort(stop=self.done.__contains__):
            if node not in self.done:
                self.done[node] = self._value(node)
        return self.done[root]

    def _value(self, node: UOp) -> Any:
        op, done = node.op, self.done
        if op is Ops.RANGE:
            shape = [1] * len(self.axis)
            shape[self.axis[node]] = node.size
            return np.arange(node.size).reshape(shape)
        if op is Ops.CONST:
            kind = np.int64 if node.dtype.kind == "index" else numpy_dtype(node.dtype)
            return np.full([1] * len(self.axis), node.arg, kind)
        if op is Ops.PARAM:
            return self.arrays[node.arg.slot]
        if op is Ops.INDEX or op is Ops.SINK:
            return None
        if op is Ops.LOAD:
            return self._load(node.src[0])
        if op is Ops.REDUCE:
            return self._reduce(node)
        if op is Ops.SCAN:
            return self._scan(node)
        if op is Ops.STAGE:
            return done[node.src[0]]
        if op is Ops.STORE:
            return self._store(node)
        if op is Ops.CAST and node.dtype.kind == "index":
            return done[node.src[0]].astype(np.int64)
        if op is Ops.CAST and node.src[0].dtype.kind == "index":
            return done[node.src[0]].astype(numpy_dtype(node.dtype))
        assert op in OpGroup.ELEMENTWISE, op
        return RULES[op](node, *[done[source] for source in node.src])

    def _reduce(self, node: UOp) -> Array:
        value = self.done[node.src[0]]
        shape = list(value.shape)
        for found in node.bound:
            shape[self.axis[found]] = found.size
        axes = tuple(self.axis[found] for found in node.bound)
        wide = np.broadcast_to(value, shape)
        if (runs := self._runs(node.bound)) is not None:
            wide = np.where(runs, wide, np.asarray(identity(node.arg, node.dtype), value.dtype))
        return REDUCERS[node.arg].reduce(wide, axis=axes, keepdims=True, dtype=value.dtype)

    def _runs(self, ranges: Iterable[UOp]) -> Array | None:
        """Where loops that end early have not ended; None if there are none."""
        early = [found for found in ranges if not found.src[0].is_const]
        held = [self.done[found] < self.done[found.src[0]] for found in early]
        return np.logical_and.reduce(np.broadcast_arrays(*held)) if held else None

    def _scan(self, node: UOp) -> Array:
        """Along all of its ranges as if they were one axis, outermost first."""
        values = [self.done[source] for source in node.src[: len(node.src) - len(node.bound)]]
        shape = list(np.broadcast_shapes(*[value.shape for value in values]))
        for found in node.bound:
            shape[self.axis[found]] = found.size
        axes = [self.axis[found] for found in node.bound]
        wide = [np.moveaxis(np.broadcast_to(v, shape), axes, range(len(axes))) for v in values]
        flat = [value.reshape(-1, *value.shape[len(axes) :]) for value in wide]
        if node.arg is Ops.MULACC:
            done = recurrence(flat[0], flat[1], 0)
        else:
            done = REDUCERS[node.arg].accumulate(flat[0], axis=0, dtype=flat[0].dtype)
        return np.moveaxis(done.reshape(wide[0].shape), range(len(axes)), axes)

    def _indices_and_gate(self, index: UOp, shape: tuple[int, ...]) -> tuple[list[Array], Array]:
        """Index arrays, 0 where the gate is false, and the gate."""
        given = [self.done[i] for i in index.indices]
        gate = np.array(True) if index.gate is None else self.done[index.gate]
        everything = np.broadcast_arrays(*given, gate, np.zeros([1] * len(self.axis)))
        indices, where = everything[:-2], everything[-2]
        if (runs := self._runs(index.ranges)) is not None:
            *indices, where, runs = np.broadcast_arrays(*indices, where, runs)
            where = where & runs
        for index_array, n in zip(indices, shape, strict=True):
            inside = (index_array >= 0) & (index_array < n)
            assert (inside | ~where).all(), f"an index leaves its buffer: {index}"
        return [np.where(where, index_array, 0) for index_array in indices], where

    def _load(self, index: UOp) -> Array:
        source = index.src[0]
        if source.op is Ops.STAGE:
            return self._load_stage(source, index)
        array = self.done[source] if source.op is not Ops.STORE else self.done[source.src[0].src[0]]
        indices, where = self._indices_and_gate(index, array.shape)
        return np.where(where, array[tuple(indices)], np.zeros((), array.dtype))

    def _load_stage(self, stage: UOp, index: UOp) -> Array:
        """Fill scratch for all values of the outer ranges at once; each has its own."""
        count = len(stage.arg)
        outer = [1] * len(self.axis)
        for found in stage.ranges:
            outer[self.axis[found]] = found.size
        scratch = np.zeros((*outer, *stage.arg), self.done[stage.src[0]].dtype)
        own = [
            np.arange(n).reshape([n if a == axis else 1 for a in range(len(outer))])
            for axis, n in enumerate(outer)
        ]
        indices = np.broadcast_arrays(
            *own, *[self.done[i] for i in stage.src[1 : 1 + count]], self.done[stage.src[0]]
        )
        scratch[tuple(indices[:-1])] = indices[-1]
        at, where = self._indices_and_gate(index, stage.arg)
        everything = np.broadcast_arrays(*own, *at)
        return np.where(where, scratch[tuple(everything)], np.zeros((), scratch.dtype))

    def _store(self, node: UOp) -> None:
        index, value = node.src[0], self.done[node.src[1]]
        array = self.arrays[index.src[0].arg.slot]
        indices, where = self._indices_and_gate(index, array.shape)
        *indices, where, value = np.broadcast_arrays(*indices, where, value)
        if not indices:
            array[()] = value.reshape(())
            return
        at = tuple([index_array[where] for index_array in indices])
        if node.arg in (None, Ops.ASSIGN):  # NumPy takes the last of equal indices
            array[at] = value[where]
        else:
            REDUCERS[node.arg].at(array, at, value[where])


def check_kernel_shape(kernel: Kernel) -> None:
    """Every store runs under all outer ranges."""
    for store in kernel.body.src:
        if store.op is Ops.STAGE:  # read under them, before something is overwritten
            continue
        assert store.src[2 : 2 + len(kernel.outer)] == kernel.outer
