"""A graph -> views: the whole pipeline, which is imported when the first value is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

from glassgrad.base.errors import OutOfMemoryError
from glassgrad.base.gc_pause import gc_paused
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.memory.view import View
from glassgrad.tensor.core import live_tensors
from glassgrad.tensor.device_names import canonical_device

if TYPE_CHECKING:
    from glassgrad.engine.pipeline import BoundPlan

BUFFER = Ops.BUFFER
MAX_NAMED_TENSORS = 8  # tensors listed in an out-of-memory error


def plan_and_run(values: Sequence[UOp]) -> tuple[tuple[View, ...], BoundPlan | None]:
    """Plan and run a graph. Returns the views, and the plan."""
    try:
        made: BoundPlan = pipeline().bind_plan(values)
    except OutOfMemoryError as error:  # while copying from another device
        raise _with_largest_tensors(error) from None
    return run_plan(made, lambda: values), made


def run_plan(made: BoundPlan, values: Callable[[], Sequence[UOp]]) -> tuple[View, ...]:
    """Run a plan; `values` gives its graph, for errors that name source lines."""
    try:
        views: tuple[View, ...] = pipeline().launch_plan(made, values)
    except OutOfMemoryError as error:
        raise _with_largest_tensors(error) from None
    return views


@cache
def pipeline() -> ModuleType:
    """engine/pipeline.py, imported with all stages when the first value is computed."""
    from glassgrad.devices.cpu import warm_up as ahead

    with gc_paused():
        is_new = canonical_device(None) == "CPU" and ahead.start_loading()
        from glassgrad.engine import pipeline

        if is_new:
            pipeline.preload_compiler()
    return pipeline


def _with_largest_tensors(error: OutOfMemoryError) -> OutOfMemoryError:
    """The out-of-memory error with a list of the largest tensors and the lines that made them."""
    held = {t.uop.arg.storage: t for t in live_tensors() if t.uop.op is BUFFER}
    largest = sorted(held.items(), key=lambda pair: -pair[0].nbytes)[:MAX_NAMED_TENSORS]
    rows = [
        f"  {storage.nbytes:>15,} bytes  {tensor.shape} {tensor.dtype.name}"
        f"{'' if tensor.uop.origin is None else f'   {tensor.uop.origin}'}"
        for storage, tensor in largest
    ]
    message = "\n".join([error.message, *(["the largest tensors:"] if rows else []), *rows])
    return OutOfMemoryError(message, error.hint, error.origin)
