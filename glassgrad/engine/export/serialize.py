"""Captures -> plain data and machine code for a file, and back without a compiler.

Library         the kernels and variables that several captures share
pack            a Capture as plain data, over that library
LinkedLibrary   the library in a process that only links
unpack          a Capture over it
"""

from __future__ import annotations

from typing import Any

from glassgrad.base.dtype import dtypes
from glassgrad.base.errors import CaptureError, DeviceError
from glassgrad.base.fast_dataclasses import field, mutable
from glassgrad.base.origin import Origin
from glassgrad.devices.cpu.device import CpuDevice, NativeCode
from glassgrad.devices.cpu.llvm import Host
from glassgrad.devices.cpu.native import LinkedCode, compile_together, host, link
from glassgrad.devices.cpu.pool import LEVEL, text_for_host
from glassgrad.devices.cpu.pool_code import PYTHON_ENTRY, SYMBOLS
from glassgrad.engine.capture.replay import Capture, Location
from glassgrad.engine.launch.error_cells import ErrorCells
from glassgrad.engine.plan.size_checks import SizeCheck
from glassgrad.ir.ops import Ops
from glassgrad.ir.size import UNBOUND, Size, size_of
from glassgrad.ir.stages import Check, Executable, Launch, Program, Source
from glassgrad.ir.uop import UOp, const, variable
from glassgrad.memory.storage import Storage
from glassgrad.memory.view import View

Row = dict[str, Any]


# ---------------------------------------------------------------------- writing


@mutable
class Library:
    """Kernels and variables, numbered. `name` is the prefix of the kernels' symbols."""

    name: str
    executables: dict[Executable, int] = field(default_factory=dict)
    variables: dict[UOp, int] = field(default_factory=dict)

    def number_of(self, executable: Executable) -> int:
        if executable.source.language != "llvm":
            raise CaptureError(
                f"only kernels of the CPU device can be exported, not {executable.source.language}",
                hint="capture with DEV=CPU",
            )
        return self.executables.setdefault(executable, len(self.executables))

    def code(self, visibility: str = "") -> bytes:
        """All kernels as one object file; hidden ones are visible inside of one library only."""
        texts = []
        for executable, number in self.executables.items():
            source = executable.source
            old = f'define void @"{source.name}"('
            assert source.text.count(old) == 1, source.text
            new = f"define {visibility} void @{self.symbol(number)}("
            texts.append(source.text.replace(old, new))
        return compile_together(texts) if texts else b""

    def symbol(self, number: int) -> str:
        return f"{self.name}_kernel_{number}"

    def row(self) -> Row:
        programs = [executable.source.program for executable in self.executables]
        return {
            "name": self.name,
            "host": host()._asdict(),
            "kernels": [(p.name, p.label, p.cores, p.scratch_bytes) for p in programs],
            "variables": [found.arg for found in self.variables],
        }


def compile_pool(entry: str = PYTHON_ENTRY, visibility: str = "") -> bytes:
    """The thread pool as an object file."""
    text = text_for_host(entry=entry).replace("define ", f"define {visibility} ")
    return compile_together([text], LEVEL)


def pack(capture: Capture, library: Library) -> Row:
    """A capture as plain data; the caller describes its input bases."""
    known = library.variables
    numbers = {id(view.storage): n for n, view in enumerate(view for _, view in capture.cells)}
    return {
        "launches": [
            {
                "kernel": library.number_of(launch.executable),
                "slots": launch.slots,
                "bytes": launch.bytes,
                "operations": launch.operations,
                "variables": [known.setdefault(v, len(known)) for v in launch.variables],
            }
            for launch in capture.launches
        ],
        "locations": capture.locations,
        "allocated": [(storage.dtype.name, storage.size) for storage in capture.allocated],
        "arena_bytes": capture.arena_bytes,
        "cells": [_cells_row(cells) for cells, _ in capture.cells],
        "cells_at": [numbers.get(id(storage)) for storage in capture.inputs],
        "checked_launches": capture.checked_launches,
        "saved": capture.saved,
    }


def _cells_row(cells: ErrorCells) -> Row:
    checks = [
        (check.arg, None if check.origin is None else check.origin.__reduce__()[1])
        for check in cells.checks
    ]
    return {"launch": cells.launch, "checks": checks}


def pack_size(size: int) -> Any:
    """A size of a shape; an expression over variables as nested lists of op and sources."""
    return _pack_index(size.uop) if isinstance(size, Size) else size


def pack_size_check(check: SizeCheck, library: Library) -> Row:
    """A check as numbers and nested lists; adds its variables to the library."""
    for found in check.variables:
        library.variables.setdefault(found, len(library.variables))
    return {
        "ends": [_pack_index(end) for end in (check.start, check.stop, check.size)],
        "axis": check.axis,
        "is_index": check.is_index,
        "origin": None if check.origin is None else check.origin.__reduce__()[1],
    }


def _pack_index(uop: UOp) -> Any:
    if uop.op is Ops.CONST:
        return uop.arg
    return [uop.op.name, *(uop.arg if uop.op is Ops.VARIABLE else map(_pack_index, uop.src))]


# ---------------------------------------------------------------------- reading


class LinkedLibrary:
    """A library in this process: machine code that is linked, not compiled."""

    def __init__(self, row: Row, kernels: bytes, pool: bytes, device: CpuDevice) -> None:
        require_same_machine(Host(**row["host"]))
        self.device = device
        self.variables = [variable(*found) for found in row["variables"]]
        names = tuple([f"{row['name']}_kernel_{n}" for n in range(len(row["kernels"]))])
        if device.pool.code is None:
            device.pool.code = LinkedCode(link(pool, SYMBOLS), SYMBOLS, pool, was_cached=True)
        code = LinkedCode(link(kernels, names), names, kernels, True) if names else None
        self.executables: list[NativeCode] = []
        for symbol, (name, label, cores, scratch) in zip(names, row["kernels"], strict=True):
            assert code is not None
            program = Program(name, (), cores, scratch_bytes=scratch, label=label)
            source = Source(name, "", "llvm", program)
            self.executables.append(NativeCode(source, code.address(symbol), code, device.pool))


def require_same_machine(made_for: Host) -> None:
    """Machine code runs on processors of its kind that have at least its features."""
    here = host()
    if made_for.triple != here.triple:
        raise DeviceError(
            f"the function was exported for {made_for.triple}, and this is {here.triple}",
            hint="export it on a machine like this one",
        )
    wanted = {name for name in made_for.features.split(",") if name.startswith("+")}
    missing = sorted(name[1:] for name in wanted - set(here.features.split(",")))
    if missing:
        raise DeviceError(
            f"the function was exported for a {made_for.cpu}; this {here.cpu} lacks "
            f"{', '.join(missing)}",
            hint="export it on a machine like this one",
        )


def unpack(row: Row, inputs: list[Storage], linked: LinkedLibrary) -> Capture:
    """The capture over these input storages."""
    launches = [
        Launch(
            linked.executables[found["kernel"]],
            tuple(found["slots"]),
            found["bytes"],
            found["operations"],
            tuple([linked.variables[number] for number in found["variables"]]),
        )
        for found in row["launches"]
    ]
    name = linked.device.name
    allocated = [Storage(name, size, dtypes.named(dtype)) for dtype, size in row["allocated"]]
    cells = []
    for base, number in enumerate(row["cells_at"]):
        if number is not None:
            found, storage = row["cells"][number], inputs[base]
            checks = tuple(
                Check(tuple(arg), None if origin is None else Origin(*origin))
                for arg, origin in found["checks"]
            )
            view = View(storage, storage.dtype, (storage.size,), (1,))
            cells.append((ErrorCells(base, found["launch"], checks), view))
    locations = [Location(*location) for location in row["locations"]]
    rollback = row["checked_launches"], tuple(row["saved"])
    return Capture(
        launches, locations, inputs, allocated, row["arena_bytes"], linked.device, cells, *rollback
    )


def unpack_size(packed: Any) -> int:
    return packed if isinstance(packed, int) else size_of(_unpack_index(packed), UNBOUND)


def unpack_size_check(row: Row) -> SizeCheck:
    start, stop, size = map(_unpack_index, row["ends"])
    origin = None if row["origin"] is None else Origin(*row["origin"])
    return SizeCheck(start, stop, size, row["axis"], row["is_index"], origin)


def _unpack_index(packed: Any) -> UOp:
    if isinstance(packed, int):
        return const(packed)
    name, *rest = packed
    if name == Ops.VARIABLE.name:
        return variable(*rest)
    return UOp(Ops[name], dtypes.index, tuple(map(_unpack_index, rest)))
