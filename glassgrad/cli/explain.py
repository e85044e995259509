"""`glassgrad explain`: prints what every stage makes of an expression."""

from __future__ import annotations

from argparse import Namespace

from glassgrad.base.errors import FormatError, GlassgradError
from glassgrad.base.terminal import painted
from glassgrad.devices.registry import Device
from glassgrad.tensor.tensor import Tensor
from glassgrad.viz.artefacts import artefacts


def run(options: Namespace) -> int:
    value = evaluate(options.expression)
    if options.device:
        value = value.to(options.device)
    machine = Device[options.device]

    def show(stage: str, title: str, text: str) -> None:
        if stage in options.only:
            print(painted(f"── {title} ".ljust(78, "─"), "cyan"))
            print(text.rstrip("\n"), end="\n\n")

    show("graph", f"graph: {value.shape} of {value.dtype.name}", str(value.uop))
    kernels = value.schedule().kernels
    for number, kernel in enumerate(kernels, 1):
        for stage, title, text in artefacts(kernel, machine):
            show(stage, f"{title} ({number} of {len(kernels)})", text)
    if not kernels:
        print("no kernel is needed: the value is a constant or already in memory")
    return 0


def evaluate(expression: str) -> Tensor:
    """The tensor of an expression on the command line."""
    import numpy as np

    from glassgrad import dtypes

    try:
        found = eval(expression, {"Tensor": Tensor, "dtypes": dtypes, "np": np})
    except (SyntaxError, NameError, AttributeError) as error:
        raise FormatError(f"cannot read the expression: {error}") from None
    except GlassgradError:
        raise
    except Exception as error:  # noqa: BLE001 - any error of the expression
        what = f"{type(error).__name__}: {error}"
        raise FormatError(f"cannot compute the expression: {what}") from None
    if not isinstance(found, Tensor):
        raise FormatError(f"the expression is a {type(found).__name__}, not a Tensor")
    return found
