"""Plan <-> disk: a graph that was planned once is not scheduled again by the next process.

A stored plan refers to its sources by their keys, which are on disk themselves, and lists the
buffers of each launch. Its own key covers the graph's structure, the machine, the policy that chose
the recipes, and the version of this package's code.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from glassgrad.base.config import CACHELEVEL
from glassgrad.base.dtype import dtypes
from glassgrad.base.errors import CompileError
from glassgrad.devices.cpu.object_cache import has_object, object_key, read_object, write_object
from glassgrad.devices.protocol import Device
from glassgrad.engine.cache.graph_keys import Signature
from glassgrad.engine.cache.sources import code_version, is_cached_on_disk, load_source, target_key
from glassgrad.engine.compile.background import background_compiler
from glassgrad.engine.compile.optimizer_policy import current_policy
from glassgrad.engine.launch.error_cells import ErrorCells
from glassgrad.engine.plan.plan import Allocation, Plan, Result
from glassgrad.engine.verify.verify import is_verified
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Check, Launch
from glassgrad.ir.uop import UOp, toposort


def plan_key(graph: Signature, device: Device) -> str | None:
    """The key of a plan on disk; None if it is not stored there."""
    if CACHELEVEL < 2 or graph.values or is_verified() or not is_cached_on_disk(device.target):
        return None
    structure = repr(graph.key)
    if " at 0x" in structure:  # the repr of an object of this process
        return None
    machine = target_key(device.target)
    return object_key("plan", structure, device.name, machine, current_policy().key, code_version())


def store_plan(name: str | None, plan: Plan, sources: Sequence[str | None]) -> None:
    """Store a plan whose launches are of these sources, if all of those are stored as well."""
    if name is None or not all(source and has_object(source) for source in sources):
        return
    names = list(dict.fromkeys(sources))
    row = {
        "sources": names,
        "launches": [
            (names.index(source), launch.slots, launch.bytes, launch.operations)
            for source, launch in zip(sources, plan.launches, strict=True)
        ],
        "inputs": plan.inputs,
        "made": [
            (allocation.shape, allocation.dtype.name, allocation.is_zeroed)
            for allocation in plan.allocations
        ],
        "offsets": plan.offsets,
        "arena_bytes": plan.arena_bytes,
        "results": [(end.buffer, end.shape, end.is_new_version) for end in plan.results],
        "cells": [
            (c.buffer, c.launch, [check.arg for check in c.checks], c.is_known) for c in plan.cells
        ],
        "writes": plan.writes,
    }
    write_object(name, json.dumps(row).encode())


def load_plan(name: str | None, values: Sequence[UOp], device: Device) -> Plan | None:
    """The stored plan for the graph of these values, with its code loaded."""
    stored = None if name is None else read_object(name)
    if stored is None:
        return None
    try:
        return _read(json.loads(stored), values, device)
    except (ValueError, KeyError, TypeError, IndexError, CompileError):  # damaged or outdated
        return None


def _read(row: dict[str, Any], values: Sequence[UOp], device: Device) -> Plan | None:
    sources = [load_source(name) for name in row["sources"]]
    found = [source for source in sources if source is not None]
    if len(found) < len(sources):
        return None
    with background_compiler(device, len(found)) as compile_later:
        results = [compile_later(source) for source in found]
        code = [executable() for executable in results]
    origins = _Origins(values)
    return Plan(
        [
            Launch(code[source], tuple(slots), moved, operations)
            for source, slots, moved, operations in row["launches"]
        ],
        row["inputs"],
        [
            Allocation(tuple(shape), dtypes.named(name), zeroed)
            for shape, name, zeroed in row["made"]
        ],
        row["offsets"],
        row["arena_bytes"],
        [Result(buffer, tuple(shape), renewed) for buffer, shape, renewed in row["results"]],
        [
            ErrorCells(buffer, launch, tuple([origins.of(tuple(arg)) for arg in checks]), known)
            for buffer, launch, checks, known in row["cells"]
        ],
        [tuple(buffers) for buffers in row["writes"]],
    )


class _Origins:
    """The user's lines of the CHECKs of a graph; equal CHECKs are distinguished by their order."""

    def __init__(self, values: Sequence[UOp]) -> None:
        self.values = values
        self.found: dict[Any, list[Any]] | None = None

    def of(self, arg: Any) -> Check:
        if self.found is None:
            self.found = {}
            for node in toposort(self.values):
                if node.op is Ops.CHECK:
                    self.found.setdefault(node.arg, []).append(node.origin)
        lines = self.found.get(arg, [])
        return Check(arg, lines.pop(0) if len(lines) > 1 else lines[0] if lines else None)
