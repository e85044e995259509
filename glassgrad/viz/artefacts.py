"""Kernel -> the result of each stage, as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from glassgrad.base.events import Event, PassDone, listen
from glassgrad.devices.protocol import Device
from glassgrad.engine.compile.optimizer_policy import current_policy
from glassgrad.engine.debug import buffers, pass_result, program_listing
from glassgrad.ir.stages import Kernel, Nest
from glassgrad.ir.uop import UOp
from glassgrad.loops import optimize
from glassgrad.lower import lower
from glassgrad.render import render
from glassgrad.viz.formula import formulas

MAX_SHOWN_NODES = 2000  # larger results of passes are not printed


class Artefact(NamedTuple):
    """The result of a stage: its name, a title, and the text."""

    stage: str
    title: str
    text: str


def artefacts(kernel: Kernel, machine: Device) -> Iterator[Artefact]:
    """Kernel ──▶ Nest ──▶ Program ──▶ Source ──▶ machine code"""
    yield Artefact("kernel", "kernel", f"{formulas(kernel.body)}\n\n{kernel.body}")
    nest = optimize(kernel, machine.target, current_policy())
    yield Artefact(
        "nest", f"nest: {nest.name}", f"{moves(nest)}\n\n{formulas(nest.body)}\n\n{nest.body}"
    )
    program = lower(nest, machine.target)
    yield Artefact("program", "program", "\n".join(program_listing(program.uops)))
    source = render(program, machine.target)
    yield Artefact("source", f"source: {machine.target.language}", source.text)
    assembly = getattr(machine.compile(source), "assembly", None)
    if assembly is not None:
        yield Artefact("machine", "machine code", assembly())


def moves(nest: Nest) -> str:
    """The recipe, one loop move per line, and the buffers of a nest."""
    rows = [f"move    {opt!s:<32}  {opt.op.value}" for opt in nest.recipe] or ["no moves"]
    rows += [f"buffer  data{p.arg.slot} {p.dtype.name} {p.arg.shape}" for p in buffers(nest.body)]
    return "\n".join(rows)


class Pass(NamedTuple):
    """A pass that changed a kernel, its time, and its result."""

    name: str
    seconds: float
    text: str


def nest_and_passes(kernel: Kernel, machine: Device) -> tuple[Nest, list[Pass]]:
    """The nest of a kernel, and all passes from the kernel to its program."""
    seen: list[PassDone] = []

    def notice(event: Event) -> None:
        if isinstance(event, PassDone) and event.before != event.after:
            seen.append(event)

    with listen(notice):
        nest = optimize(kernel, machine.target, current_policy())
        lower(nest, machine.target)
    return nest, [Pass(event.name, event.seconds, _after(event.after)) for event in seen]


def _after(value: object) -> str:
    if not isinstance(value, UOp):
        return pass_result(value)
    count = len(value.toposort())
    return formulas(value) if count <= MAX_SHOWN_NODES else f"{count:,} nodes"
