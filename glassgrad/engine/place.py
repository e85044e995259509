"""Which device a graph runs on, and values that come from another one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from glassgrad.base.dtype import dtypes
from glassgrad.base.errors import DeviceError
from glassgrad.devices.protocol import Device as Machine
from glassgrad.devices.registry import Device
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp, toposort
from glassgrad.memory.view import View

Realize = Callable[[Sequence[UOp], str | None], tuple[View, ...]]


def is_computed(node: UOp) -> bool:
    return node.realized is not None


def device_of(values: Sequence[UOp], wanted: str | None) -> Machine:
    """The device of the graph's buffers; without any, the one that is wanted."""
    found: dict[str, None] = {}
    for node in toposort(values, stop=is_computed):
        leaf = node if node.realized is None else node.realized
        if leaf.op is Ops.BUFFER:
            found[leaf.arg.device] = None
    if len(found) > 1:
        names = " and ".join(found)
        raise DeviceError(f"values on {names} meet", hint="move one of them with .to(device)")
    return Device[next(iter(found), wanted)]


def move_between_devices(values: Sequence[UOp], realize: Realize) -> None:
    """Compute what a COPY copies, on its own device, and copy it; innermost first."""
    for node in toposort(values, stop=is_computed):
        if node.op is Ops.COPY and node.realized is None:
            (view,) = realize(node.src, None)
            node.realized = UOp(Ops.BUFFER, node.dtype, (), copied(view, node.arg))


def copied(view: View, device: str) -> View:
    """The elements in new memory of another device."""
    if not view.is_contiguous:
        (view,) = _contiguous(view)
    made = View.empty(device, view.shape, view.dtype)
    start = view.offset * view.dtype.itemsize
    source = view.storage.as_buffer()[start : start + view.nbytes]
    made.storage.copyin(source.cast("B") if view.nbytes else memoryview(b""))
    return made


def _contiguous(view: View) -> tuple[View, ...]:
    from glassgrad.engine.pipeline import realize

    node = UOp(Ops.BUFFER, view.dtype, (), view)
    return realize([UOp(Ops.CONTIGUOUS, view.dtype, (node,))], None)


__all__ = ["copied", "device_of", "dtypes", "move_between_devices"]
