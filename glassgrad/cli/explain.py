"""`glassgrad explain`: one expression -> what every stage makes of it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable

from glassgrad.base.errors import FormatError
from glassgrad.base.terminal import colored
from glassgrad.devices.registry import Device
from glassgrad.engine.choose import chooser
from glassgrad.engine.debug import buffers, listing
from glassgrad.ir.stages import Kernel, Nest
from glassgrad.loops import optimize
from glassgrad.lower import lower
from glassgrad.render import render
from glassgrad.tensor.tensor import Tensor

Show = Callable[[str, str, str], None]


def run(options: Namespace) -> int:
    value = evaluated(options.expression)
    if options.device:
        value = value.to(options.device)
    machine = Device[options.device]

    def show(stage: str, title: str, text: str) -> None:
        if stage in options.only:
            print(colored(f"── {title} ".ljust(78, "─"), "cyan"))
            print(text.rstrip("\n"), end="\n\n")

    show("graph", f"graph: {value.shape} of {value.dtype.name}", str(value.uop))
    kernels = value.schedule().kernels
    for number, kernel in enumerate(kernels, 1):
        explain_kernel(kernel, machine.name, f" {number} of {len(kernels)}", show)
    if not kernels:
        print("no kernel is needed: the value is in memory, or a constant")
    return 0


def evaluated(expression: str) -> Tensor:
    """The tensor that Python's words on the command line stand for."""
    import numpy as np

    from glassgrad import dtypes

    try:
        found = eval(expression, {"Tensor": Tensor, "dtypes": dtypes, "np": np})
    except (SyntaxError, NameError, AttributeError) as error:
        raise FormatError(f"cannot read the expression: {error}") from None
    if not isinstance(found, Tensor):
        raise FormatError(f"the expression is a {type(found).__name__}, not a Tensor")
    return found


def explain_kernel(kernel: Kernel, device: str, which: str, show: Show) -> None:
    """Kernel ──▶ Nest ──▶ Program ──▶ Source ──▶ machine code"""
    machine = Device[device]
    show("kernel", f"kernel{which}", str(kernel.body))
    nest = optimize(kernel, machine.target, chooser())
    show("nest", f"nest{which}: {nest.name}", _shaped(nest))
    program = lower(nest, machine.target)
    show("program", f"program{which}", "\n".join(listing(program)))
    source = render(program, machine.target)
    show("source", f"source{which}: {machine.target.language}", source.text)
    assembly = getattr(machine.compile(source), "assembly", None)
    if assembly is not None:
        show("machine", f"machine code{which}", assembly())


def _shaped(nest: Nest) -> str:
    moves = [f"move    {opt}" for opt in nest.recipe] or ["no moves"]
    rows = [f"buffer  data{p.arg.slot} {p.dtype.name} {p.arg.shape}" for p in buffers(nest.body)]
    return "\n".join([*moves, *rows, str(nest.body)])
