"""Which device a graph runs on, and values that come from another one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from glassgrad.base.errors import DeviceError
from glassgrad.devices.protocol import Device as Machine
from glassgrad.devices.registry import Device
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp, note
from glassgrad.memory.view import View

Realize = Callable[[Sequence[UOp], str | None], tuple[View, ...]]


def device_of(leaves: Sequence[UOp], wanted: str | None) -> Machine:
    """The device of a graph's buffers; without any, the one that is wanted."""
    found = dict.fromkeys(leaf.arg.device for leaf in leaves)
    if len(found) > 1:
        names = " and ".join(found)
        raise DeviceError(f"values on {names} meet", hint="move one of them with .to(device)")
    return Device[next(iter(found), wanted)]


def move_between_devices(copies: Sequence[UOp], realize: Realize) -> None:
    """Compute what each COPY copies, on its own device, and copy it; innermost first."""
    for node in copies:
        if node.realized is None:
            (view,) = realize(node.src, None)
            note(node, UOp(Ops.BUFFER, node.dtype, (), copied(view, node.arg, realize)))


def copied(view: View, device: str, realize: Realize) -> View:
    """The elements in new memory of another device."""
    if not view.is_contiguous:
        node = UOp(Ops.BUFFER, view.dtype, (), view)
        (view,) = realize([UOp(Ops.CONTIGUOUS, view.dtype, (node,))], None)
    made = View.empty(device, view.shape, view.dtype)
    start = view.offset * view.dtype.itemsize
    source = view.storage.as_buffer()[start : start + view.nbytes]
    made.storage.copyin(source.cast("B") if view.nbytes else memoryview(b""))
    return made
