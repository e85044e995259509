"""Plan <-> disk: a graph that was planned once is not scheduled again by the next process.

A plan is written down as the names of its sources, which are on disk themselves, and the places
that each launch works on. Its own name tells of the graph's structure, of the machine, of who chose
the moves, and of the state of this package's code.
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
from glassgrad.engine.cache.sources import is_kept, own_code, recall, written_target
from glassgrad.engine.compile.background import compiler
from glassgrad.engine.compile.optimizer_policy import chooser
from glassgrad.engine.launch.error_flags import Cells
from glassgrad.engine.plan.plan import Made, Plan, Result
from glassgrad.engine.verify.verify import is_verified
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Check, Launch
from glassgrad.ir.uop import UOp, toposort


def plan_name(graph: Signature, device: Device) -> str | None:
    """The name of a plan on disk; None if it is not kept there."""
    if CACHELEVEL < 2 or graph.values or is_verified() or not is_kept(device.target):
        return None
    structure = repr(graph.key)
    if " at 0x" in structure:  # something that only this process knows
        return None
    machine = written_target(device.target)
    return object_key("plan", structure, device.name, machine, chooser().key, own_code())


def remember_plan(name: str | None, plan: Plan, sources: Sequence[str | None]) -> None:
    """Keep a plan whose launches are of these sources, if all of those are kept, too."""
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
        "made": [(made.shape, made.dtype.name, made.is_zeroed) for made in plan.made],
        "offsets": plan.offsets,
        "arena_bytes": plan.arena_bytes,
        "results": [(end.place, end.shape, end.is_renewed) for end in plan.results],
        "cells": [
            (c.place, c.launch, [check.arg for check in c.checks], c.is_known) for c in plan.cells
        ],
        "writes": plan.writes,
    }
    write_object(name, json.dumps(row).encode())


def recall_plan(name: str | None, values: Sequence[UOp], device: Device) -> Plan | None:
    """The plan of that name, with its code loaded, for the graph of these values."""
    stored = None if name is None else read_object(name)
    if stored is None:
        return None
    try:
        return _read(json.loads(stored), values, device)
    except (ValueError, KeyError, TypeError, IndexError, CompileError):  # as if it were not there
        return None


def _read(row: dict[str, Any], values: Sequence[UOp], device: Device) -> Plan | None:
    sources = [recall(name) for name in row["sources"]]
    found = [source for source in sources if source is not None]
    if len(found) < len(sources):
        return None
    with compiler(device, len(found)) as compile_later:
        waiting = [compile_later(source) for source in found]
        code = [executable() for executable in waiting]
    origins = _Origins(values)
    return Plan(
        [
            Launch(code[source], tuple(slots), moved, operations)
            for source, slots, moved, operations in row["launches"]
        ],
        row["inputs"],
        [Made(tuple(shape), dtypes.named(name), zeroed) for shape, name, zeroed in row["made"]],
        row["offsets"],
        row["arena_bytes"],
        [Result(place, tuple(shape), renewed) for place, shape, renewed in row["results"]],
        [
            Cells(place, launch, tuple([origins.of(tuple(arg)) for arg in checks]), known)
            for place, launch, checks, known in row["cells"]
        ],
        [tuple(places) for places in row["writes"]],
    )


class _Origins:
    """Where the user wrote the CHECKs of a graph; equal ones are told apart by their order."""

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
