"""Graph values -> memory: the whole road on one screen. The first file to read.

Tensor ──▶ graph ──▶ Kernel ──▶ Nest ──▶ Program ──▶ Source ──▶ Executable ──▶ Launch ──▶ View
"""

from __future__ import annotations

from collections.abc import Sequence

from glassgrad.base.events import LISTENERS, StageEntered, announce
from glassgrad.devices.protocol import Device
from glassgrad.engine.bad_index import BadIndex
from glassgrad.engine.cache import KERNELS, PLANS, signature
from glassgrad.engine.choose import chooser
from glassgrad.engine.collector import collector_paused
from glassgrad.engine.debug import (
    passes_shown,
    report_executable,
    report_nest,
    report_program,
    report_source,
)
from glassgrad.engine.estimate import estimate
from glassgrad.engine.place import device_of, move_between_devices
from glassgrad.engine.plan import Plan, make_plan
from glassgrad.engine.recording import recorder
from glassgrad.engine.run import run
from glassgrad.ir.ops import Ops
from glassgrad.ir.spec import check
from glassgrad.ir.stages import Executable, Kernel, Launch
from glassgrad.ir.uop import UOp
from glassgrad.loops import optimize
from glassgrad.lower import lower
from glassgrad.memory.view import View
from glassgrad.render import render
from glassgrad.schedule import schedule


def realize(values: Sequence[UOp], device: str | None = None) -> tuple[View, ...]:
    """Compute these values; each comes back as memory that holds it."""
    found = signature(values)
    if found.copies:
        move_between_devices(found.copies, realize)
        found = signature(values)
    machine = device_of(found.leaves, device)
    key = (machine.name, found.key)
    plan = PLANS.get(key)
    if plan is None:
        with collector_paused():
            plan = PLANS[key] = plan_for(values, found.leaves, machine)
    if (watching := recorder()) is not None:
        watching.notice(values)
    try:
        return run(plan, found.leaves, machine, found.values)
    except BadIndex as bad:  # lines belong to this graph, and the plan may be an equal one's
        raise bad.explained(schedule(values, machine.target).checks[bad.launch]) from None


def plan_for(values: Sequence[UOp], leaves: Sequence[UOp], device: Device) -> Plan:
    """Everything that can be decided before the data is there."""
    enter("schedule", values)
    made = schedule(values, device.target)
    launches = [build(kernel, device) for kernel in made.kernels]
    return make_plan(made, launches, values, leaves)


def build(kernel: Kernel, device: Device) -> Launch:
    """One kernel on its way to machine code; equal kernels go it once."""
    key = (kernel, device.name, device.target, chooser().key)
    found = KERNELS.get(key)
    if found is None:
        with passes_shown(kernel):
            executable = compile_kernel(kernel, device)
        variables = sorted(
            (uop for uop in kernel.body.toposort() if uop.op is Ops.VARIABLE), key=lambda u: u.arg
        )
        found = KERNELS[key] = Launch(executable, (), *estimate(kernel), tuple(variables))
    return found


def compile_kernel(kernel: Kernel, device: Device) -> Executable:
    """Kernel ──▶ Nest ──▶ Program ──▶ Source ──▶ Executable"""
    target = device.target
    check(kernel.body, "kernel")
    enter("loops", kernel)
    nest = optimize(kernel, target, chooser())
    check(nest.body, "kernel")
    report_nest(nest)
    enter("lower", nest)
    program = lower(nest, target)
    check(program.uops, "program")
    report_program(program)
    enter("render", program)
    source = render(program, target)
    report_source(source)
    enter("devices", source)
    executable = device.compile(source)
    report_executable(executable)
    return executable


def enter(stage: str, value: object) -> None:
    if LISTENERS:
        announce(StageEntered(stage, value))
