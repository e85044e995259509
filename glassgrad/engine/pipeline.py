"""Graph values -> memory: the whole road on one screen. The first file to read.

Tensor ──▶ graph ──▶ Kernel ──▶ Nest ──▶ Program ──▶ Source ──▶ Executable ──▶ Launch ──▶ View
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import NamedTuple

from glassgrad.base.config import Context
from glassgrad.base.events import LISTENERS, GraphPlanned, StageEntered, announce
from glassgrad.base.gc_pause import collector_paused
from glassgrad.devices.protocol import Device
from glassgrad.engine.cache.graph_keys import KERNELS, PLANS, signature
from glassgrad.engine.cache.plans import plan_name, recall_plan, remember_plan
from glassgrad.engine.cache.sources import forget, key_of, recall, remember
from glassgrad.engine.capture.recorder import recorder
from glassgrad.engine.compile.arguments import with_all_arguments
from glassgrad.engine.compile.background import CompileLater, compiler
from glassgrad.engine.compile.estimate import estimate
from glassgrad.engine.compile.fallback import Attempt, Shape, compile_simpler
from glassgrad.engine.compile.optimizer_policy import chooser
from glassgrad.engine.debug import (
    passes_shown,
    report_nest,
    report_program,
    report_source,
    report_uncovered,
)
from glassgrad.engine.device_choice import device_of, move_between_devices
from glassgrad.engine.launch.error_flags import BadIndex
from glassgrad.engine.launch.run import run
from glassgrad.engine.plan.lifting import lifted
from glassgrad.engine.plan.plan import Plan
from glassgrad.engine.verify.verify import needs_references, with_references
from glassgrad.ir.ops import Ops
from glassgrad.ir.size import Bound
from glassgrad.ir.spec import check
from glassgrad.ir.stages import Check, Executable, Kernel, Launch, Source, Target
from glassgrad.ir.uop import UOp
from glassgrad.memory.view import View


class Ready(NamedTuple):
    """A plan, and what it is run on: buffers, a device, values of variables."""

    plan: Plan
    leaves: Sequence[UOp]
    device: Device
    values: Bound


def realize(values: Sequence[UOp], device: str | None = None) -> tuple[View, ...]:
    """Compute these values; each comes back as memory that holds it."""
    return launch(ready(values, device), lambda: values)


def ready(values: Sequence[UOp], device: str | None = None) -> Ready:
    """The plan for these values: an equal graph's, or a new one."""
    found = signature(values)
    if found.copies:
        move_between_devices(found.copies, realize)
        found = signature(values)
    machine = device_of(found.leaves, device)
    key = (machine.name, found.key)
    plan = PLANS.get(key)
    if plan is None and recorder() is None and (general := lifted(values, machine.name)):
        values, found = general, signature(general)
        key = (machine.name, found.key)
        plan = PLANS.get(key)
    if plan is None:
        with collector_paused():
            name = plan_name(found, machine)
            plan = recall_plan(name, values, machine) or plan_for(
                values, found.leaves, machine, name
            )
            PLANS[key] = plan
    if (watching := recorder()) is not None:
        watching.values = values
    return Ready(plan, found.leaves, machine, found.values)


def launch(made: Ready, values: Callable[[], Sequence[UOp]]) -> tuple[View, ...]:
    """Run a plan; `values` gives the graph that it is for, if something goes wrong."""
    try:
        return run(*made)
    except BadIndex as bad:  # lines belong to this graph, and the plan may be an equal one's
        raise bad.explained(_checks_here(bad, made, values())) from None


def _checks_here(bad: BadIndex, made: Ready, values: Sequence[UOp]) -> tuple[Check, ...]:
    """Those of this graph that are the bad launch's. The plan's own where a plan of this graph
    would have others: an equal graph, made in another order, may be divided differently.
    """
    from glassgrad.schedule import schedule

    kernels = [checks for checks in schedule(values, made.device.target).checks if checks]
    cells = made.plan.cells
    sizes = [[check.arg for check in checks] for checks in kernels]
    if sizes == [[check.arg for check in found.checks] for found in cells]:
        return kernels[[found.launch for found in cells].index(bad.launch)]
    return bad.checks


def plan_for(
    values: Sequence[UOp], leaves: Sequence[UOp], device: Device, name: str | None = None
) -> Plan:
    """Everything that can be decided before the data is there; on disk it is kept as `name`."""
    # A process that finds its plans on disk starts sooner without these.
    from glassgrad.engine.plan.memory import make_plan
    from glassgrad.schedule import schedule

    start = perf_counter()
    enter("schedule", values)
    made = schedule(values, device.target)
    launches = build(made.kernels, device)
    report_uncovered()
    if LISTENERS:
        announce(GraphPlanned(made, launches, device.name, perf_counter() - start))
    plan = make_plan(made, launches, values, leaves)
    if name is not None:
        sources = [key_of(kernel, device.target, chooser().key) for kernel in made.kernels]
        remember_plan(name, plan, sources)
    return plan


def build(kernels: Sequence[Kernel], device: Device) -> list[Launch]:
    """Kernels on their way to machine code; equal ones go it once.

    While the compiler works on one, the next is being written.
    """
    who = (device.name, device.target, chooser().key)
    found: dict[Kernel, Launch | None] = {
        kernel: KERNELS.get((kernel, *who)) for kernel in dict.fromkeys(kernels)
    }
    new = [kernel for kernel, launch in found.items() if launch is None]
    with compiler(device, len(new)) as compile_later:
        waiting = [begin(kernel, device, compile_later) for kernel in new]
        for kernel, executable in zip(new, waiting, strict=True):
            found[kernel] = KERNELS[kernel, *who] = launch_of(kernel, executable())
    launches = [launch for kernel in kernels if (launch := found[kernel]) is not None]
    if needs_references(device):
        with Context(NOOPT=1):
            launches = with_references(launches, build(kernels, device), kernels)
    return launches


def begin(kernel: Kernel, device: Device, compile_later: CompileLater) -> Callable[[], Executable]:
    """Write a kernel's source, or find it on disk, and start to compile it.

    What is returned waits for the code. Sources that do not compile are not kept.
    """
    name = key_of(kernel, device.target, chooser().key)
    attempt = Attempt(chooser())

    def write(shape: Shape, target: Target) -> Source:
        with passes_shown(kernel):
            return write_source(kernel, target, shape)

    def instead(error: Exception) -> Executable:
        forget(name)
        return compile_simpler(error, attempt, write, device)

    try:
        known = recall(name)
        source = known or write(attempt, device.target)
        waiting = compile_later(source)
    except Exception as error:  # noqa: BLE001 - whatever refused it
        return partial(instead, error)

    def finish() -> Executable:
        try:
            executable = waiting()
        except Exception as error:  # noqa: BLE001
            return instead(error)
        if known is None:
            remember(name, source)
        return executable

    return finish


def launch_of(kernel: Kernel, executable: Executable) -> Launch:
    variables = [uop for uop in kernel.body.toposort() if uop.op is Ops.VARIABLE]
    ordered = tuple(sorted(variables, key=lambda u: u.arg))
    return Launch(executable, (), *estimate(kernel), ordered)


def write_source(kernel: Kernel, target: Target, shape: Shape | None = None) -> Source:
    """Kernel ──▶ Nest ──▶ Program ──▶ Source; `shape` gives the loops their shape."""
    # A process that finds all its sources on disk starts sooner without these.
    from glassgrad.engine.compile.code_length import lowered
    from glassgrad.render import render

    check(kernel.body, "kernel")
    enter("loops", kernel)
    nest = (shape or Attempt(chooser()))(kernel, target)
    check(nest.body, "kernel")
    nest, program = lowered(kernel, nest, target, partial(enter, "lower"))
    program = with_all_arguments(program, kernel)
    report_nest(kernel, nest)
    check(program.uops, "program")
    report_program(program)
    enter("render", program)
    source = render(program, target)
    report_source(source)
    return source


def import_compiler() -> None:
    """What plans and writes sources, imported before it is needed."""
    import glassgrad.engine.plan.memory
    import glassgrad.loops
    import glassgrad.lower
    import glassgrad.render  # noqa: F401


def enter(stage: str, value: object) -> None:
    if LISTENERS:
        announce(StageEntered(stage, value))
