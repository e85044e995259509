"""Schedule -> plain data: nodes with the user's lines, and which kernel computes which."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import prod
from typing import Any

from glassgrad.base.fast_dataclasses import field, mutable
from glassgrad.base.origin import Origin
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import ERROR_CELLS, Kernel, Schedule
from glassgrad.ir.uop import UOp, toposort
from glassgrad.schedule import base_buffer
from glassgrad.viz.formula import TOTALS

MAX_ARG = 80  # characters of an op's printed arg


@mutable
class Lines:
    """The user's lines, numbered."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    numbers: dict[Origin, int] = field(default_factory=dict)

    def number(self, origin: Origin | None) -> int:
        if origin is None:
            return -1
        if origin not in self.numbers:
            self.numbers[origin] = len(self.rows)
            row = {"file": origin.file, "line": origin.line, "text": origin.text}
            self.rows.append(row)
        return self.numbers[origin]


def graph_of(
    schedule: Schedule, codes: Sequence[int], lines: Lines, seconds: float
) -> dict[str, Any]:
    """A graph for the page: {nodes, kernels, line, seconds}."""
    nodes = toposort([*schedule.outputs, *chain.from_iterable(schedule.stored)])
    numbers = {node: number for number, node in enumerate(nodes)}
    makers: dict[UOp, int] = {}
    kernels: list[dict[str, Any]] = []
    for number, (kernel, slots) in enumerate(zip(schedule.kernels, schedule.buffers, strict=True)):
        stored, written = schedule.stored[number], _written(kernel)
        computed = _computed(stored, makers)
        kernels.append({
            "code": codes[number],
            "slots": [_slot(node, i in written, makers) for i, node in enumerate(slots)],
            "nodes": [numbers[node] for node in computed],
            "ends": [numbers[node] for node in stored],
            "lines": _lines_of(stored, computed, lines),
        })  # fmt: skip
        for node in stored:
            makers[node] = makers[base_buffer(node)] = number
    _propagate_lines(kernels)
    return {
        "nodes": [_node(node, numbers, lines) for node in nodes],
        "kernels": kernels,
        "line": lines.number(schedule.outputs[0].origin),
        "seconds": seconds,
    }


def _propagate_lines(kernels: list[dict[str, Any]]) -> None:
    """A kernel without lines takes those of the kernel that reads its result."""
    for kernel in reversed(kernels):
        for slot in kernel["slots"]:
            if slot["maker"] >= 0 and not kernels[slot["maker"]]["lines"]:
                kernels[slot["maker"]]["lines"] = kernel["lines"]


def _written(kernel: Kernel) -> set[int]:
    """The slots that a kernel stores to."""
    stores = [node for node in kernel.body.toposort() if node.op is Ops.STORE]
    return {_param(store.src[0]).arg.slot for store in stores}


def _param(node: UOp) -> UOp:
    while node.op is not Ops.PARAM:
        node = node.src[0]
    return node


def _computed(stored: Sequence[UOp], makers: dict[UOp, int]) -> list[UOp]:
    """The nodes that a kernel computes: from what it stores down to what is in memory."""
    return toposort(stored, lambda node: node in makers and node not in stored)


def _slot(node: UOp, is_written: bool, makers: dict[UOp, int]) -> dict[str, Any]:
    if node is ERROR_CELLS:
        return {"role": "cells", "shape": [], "dtype": "int64", "bytes": 0, "maker": -1}
    shape = [int(n) for n in node.shape]
    return {
        "role": "output" if is_written else "memory" if node.op is Ops.BUFFER else "input",
        "shape": shape,
        "dtype": node.dtype.name,
        "bytes": prod(shape) * node.dtype.itemsize,
        "maker": makers.get(node, -1),
    }


def _node(node: UOp, numbers: dict[UOp, int], lines: Lines) -> list[Any]:
    """[op, dtype, shape, arg, sources, line]: a list, as there are thousands."""
    sources = [numbers[source] for source in node.src]
    shape = [int(n) for n in node.shape]
    return [node.op.name, node.dtype.name, shape, _arg(node), sources, lines.number(node.origin)]


def _arg(node: UOp) -> str:
    if node.op is Ops.BUFFER:
        return "" if node.arg.is_contiguous else f"strides {tuple(node.arg.strides)}"
    if node.arg is None or node.op in (Ops.CUSTOM, Ops.CHECK):
        return ""
    if node.op is Ops.REDUCE:
        return f"{TOTALS[node.arg[0]]} over {', '.join(map(str, node.arg[1]))}"
    text = f"{node.arg:.7g}" if isinstance(node.arg, float) else str(node.arg)
    return text if len(text) <= MAX_ARG else f"{text[:MAX_ARG]}…"


def _lines_of(stored: Sequence[UOp], computed: Sequence[UOp], lines: Lines) -> list[int]:
    """The lines of what a kernel stores; for nodes that the compiler made, those of their
    operands.
    """
    found = [lines.number(node.origin) for node in stored if node.origin is not None]
    found += [lines.number(node.origin) for node in reversed(computed) if node.origin is not None]
    return list(dict.fromkeys(found))[: max(1, sum(n.origin is not None for n in stored))]
