"""Graph values -> memory: the whole pipeline on one screen. The first file to read.

Tensor ──▶ graph ──▶ Kernel ──▶ Nest ──▶ Program ──▶ Source ──▶ Executable ──▶ Launch ──▶ View
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import NamedTuple

from glassgrad.base.config import Context
from glassgrad.base.events import LISTENERS, GraphPlanned, StageEntered, announce
from glassgrad.base.gc_pause import gc_paused
from glassgrad.devices.protocol import Device
from glassgrad.engine.cache.graph_keys import KERNELS, PLANS, signature
from glassgrad.engine.cache.plans import load_plan, plan_key, store_plan
from glassgrad.engine.cache.sources import discard_source, load_source, source_key, store_source
from glassgrad.engine.capture.recorder import active_recorder
from glassgrad.engine.compile.arguments import with_all_arguments
from glassgrad.engine.compile.background import CompileLater, background_compiler
from glassgrad.engine.compile.estimate import estimate
from glassgrad.engine.compile.fallback import Optimize, RecipeAttempt, compile_with_simpler_recipe
from glassgrad.engine.compile.optimizer_policy import current_policy
from glassgrad.engine.debug import (
    passes_shown,
    report_nest,
    report_program,
    report_source,
    report_unproven_kernels,
)
from glassgrad.engine.device_choice import move_between_devices, plan_device
from glassgrad.engine.launch.error_cells import BadIndex
from glassgrad.engine.launch.run import run
from glassgrad.engine.plan.lifting import lift_changing_numbers
from glassgrad.engine.plan.plan import Plan
from glassgrad.engine.verify.verify import needs_references, with_references
from glassgrad.ir.ops import Ops
from glassgrad.ir.size import Bound
from glassgrad.ir.stages import Check, Executable, Kernel, Launch, Source, Target
from glassgrad.ir.uop import UOp
from glassgrad.memory.view import View


class BoundPlan(NamedTuple):
    """A plan and its arguments: input buffers, a device, values of variables."""

    plan: Plan
    leaves: Sequence[UOp]
    device: Device
    values: Bound


def realize(values: Sequence[UOp], device: str | None = None) -> tuple[View, ...]:
    """Compute these values and return the memory that holds each."""
    return launch_plan(bind_plan(values, device), lambda: values)


def bind_plan(values: Sequence[UOp], device: str | None = None) -> BoundPlan:
    """The plan for these values, cached or new, with its arguments."""
    found = signature(values)
    if found.copies:
        move_between_devices(found.copies, realize)
        found = signature(values)
    machine = plan_device(found.leaves, device)
    key = (machine.name, found.key)
    plan = PLANS.get(key)
    if (
        plan is None
        and active_recorder() is None
        and (general := lift_changing_numbers(values, machine.name))
    ):
        values, found = general, signature(general)
        key = (machine.name, found.key)
        plan = PLANS.get(key)
    if plan is None:
        with gc_paused():
            name = plan_key(found, machine)
            plan = load_plan(name, values, machine) or plan_graph(
                values, found.leaves, machine, name
            )
            PLANS[key] = plan
    if (recorder := active_recorder()) is not None:
        recorder.values = values
    return BoundPlan(plan, found.leaves, machine, found.values)


def launch_plan(bound: BoundPlan, values: Callable[[], Sequence[UOp]]) -> tuple[View, ...]:
    """Run a plan; `values` returns its graph, for error messages."""
    try:
        return run(*bound)
    except BadIndex as bad:  # the plan may come from an equal graph, with other lines
        raise bad.to_user_error(_checks_of_launch(bad, bound, values())) from None


def _checks_of_launch(bad: BadIndex, bound: BoundPlan, values: Sequence[UOp]) -> tuple[Check, ...]:
    """The CHECKs of this graph in the failed launch. Falls back to those of the plan if this graph,
    recorded in another order, is divided into kernels differently.
    """
    from glassgrad.schedule import schedule

    kernels = [checks for checks in schedule(values, bound.device.target).checks if checks]
    cells = bound.plan.cells
    sizes = [[check.arg for check in checks] for checks in kernels]
    if sizes == [[check.arg for check in found.checks] for found in cells]:
        return kernels[[found.launch for found in cells].index(bad.launch)]
    return bad.checks


def plan_graph(
    values: Sequence[UOp], leaves: Sequence[UOp], device: Device, name: str | None = None
) -> Plan:
    """Everything that can be decided without the data; stored on disk under the key `name`."""
    # Imported here: a process that finds its plans on disk starts faster without these.
    from glassgrad.engine.plan.memory import make_plan
    from glassgrad.schedule import schedule

    start = perf_counter()
    announce_stage("schedule", values)
    with passes_shown():
        scheduled = schedule(values, device.target)
    launches = build_launches(scheduled.kernels, device)
    report_unproven_kernels()
    if LISTENERS:
        announce(GraphPlanned(scheduled, launches, device.name, perf_counter() - start))
    plan = make_plan(scheduled, launches, values, leaves)
    if name is not None:
        sources = [
            source_key(kernel, device.target, current_policy().key) for kernel in scheduled.kernels
        ]
        store_plan(name, plan, sources)
    return plan


def build_launches(kernels: Sequence[Kernel], device: Device) -> list[Launch]:
    """A launch for each kernel; equal kernels are compiled once.

    The source of one kernel is written while the one before compiles.
    """
    settings = (device.name, device.target, current_policy().key)
    found: dict[Kernel, Launch | None] = {
        kernel: KERNELS.get((kernel, *settings)) for kernel in dict.fromkeys(kernels)
    }
    new = [kernel for kernel, launch in found.items() if launch is None]
    with background_compiler(device, len(new)) as compile_later:
        executables = [start_compiling(kernel, device, compile_later) for kernel in new]
        for kernel, executable in zip(new, executables, strict=True):
            found[kernel] = KERNELS[kernel, *settings] = make_launch(kernel, executable())
    launches = [launch for kernel in kernels if (launch := found[kernel]) is not None]
    if needs_references(device):
        with Context(NOOPT=1):
            launches = with_references(launches, build_launches(kernels, device), kernels)
    return launches


def start_compiling(
    kernel: Kernel, device: Device, compile_later: CompileLater
) -> Callable[[], Executable]:
    """Write a kernel's source, or read it from disk, and start to compile it.

    Returns a function that waits for the code. Sources that do not compile are not stored.
    """
    name = source_key(kernel, device.target, current_policy().key)
    attempt = RecipeAttempt(current_policy())

    def write(optimize: Optimize, target: Target) -> Source:
        with passes_shown(kernel):
            return write_source(kernel, target, optimize)

    def fall_back(error: Exception) -> Executable:
        discard_source(name)
        return compile_with_simpler_recipe(error, attempt, write, device)

    try:
        stored = load_source(name)
        source = stored or write(attempt, device.target)
        result = compile_later(source)
    except Exception as error:  # noqa: BLE001 - any pass may refuse it
        return partial(fall_back, error)

    def finish() -> Executable:
        try:
            executable = result()
        except Exception as error:  # noqa: BLE001
            return fall_back(error)
        if stored is None:
            store_source(name, source)
        return executable

    return finish


def make_launch(kernel: Kernel, executable: Executable) -> Launch:
    variables = [uop for uop in kernel.body.toposort() if uop.op is Ops.VARIABLE]
    ordered = tuple(sorted(variables, key=lambda u: u.arg))
    return Launch(executable, (), *estimate(kernel), ordered)


def write_source(kernel: Kernel, target: Target, optimize: Optimize | None = None) -> Source:
    """Kernel ──▶ Nest ──▶ Program ──▶ Source; `optimize` chooses and makes the loop moves."""
    # Imported here: a process that finds its sources on disk starts faster without these.
    from glassgrad.engine.compile.code_length import lower_within_limit
    from glassgrad.ir.spec import check
    from glassgrad.render import render

    check(kernel.body, "kernel")
    announce_stage("loops", kernel)
    nest = (optimize or RecipeAttempt(current_policy()))(kernel, target)
    check(nest.body, "kernel")
    nest, program = lower_within_limit(kernel, nest, target, partial(announce_stage, "lower"))
    program = with_all_arguments(program, kernel)
    report_nest(kernel, nest)
    check(program.uops, "program")
    report_program(program)
    announce_stage("render", program)
    source = render(program, target)
    report_source(source)
    return source


def preload_compiler() -> None:
    """Import the modules that plan and write sources before they are needed."""
    import glassgrad.engine.plan.memory
    import glassgrad.loops
    import glassgrad.lower
    import glassgrad.render  # noqa: F401


def announce_stage(stage: str, value: object) -> None:
    if LISTENERS:
        announce(StageEntered(stage, value))
