"""The device that a graph runs on, and transfers of values from other devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from glassgrad.base.errors import CaptureError, DeviceError
from glassgrad.devices.protocol import Device as Machine
from glassgrad.devices.registry import Device
from glassgrad.engine.capture.recorder import active_recorder
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp, set_realized
from glassgrad.ir.window import window_of
from glassgrad.memory.allocator import is_file, is_host
from glassgrad.memory.storage import BufferSpec, Storage
from glassgrad.memory.view import View

Realize = Callable[[Sequence[UOp], str | None], tuple[View, ...]]


def plan_device(leaves: Sequence[UOp], wanted: str | None) -> Machine:
    """The device of a graph's buffers; without any, `wanted`.

    Files compute nothing: a device that works in host memory maps their pages.
    """
    devices = dict.fromkeys([leaf.arg.storage.device for leaf in leaves])
    if len(devices) == 1 and leaves[0].arg.storage.device in Device.opened:
        return Device.opened[leaves[0].arg.storage.device]
    found = [name for name in devices if not is_file(name)]
    machine = Device[next(iter(found), wanted)]
    if len(found) > 1 or (len(devices) > len(found) and not is_host(machine.name)):
        names = " and ".join(devices)
        raise DeviceError(
            f"an expression has operands on {names}", hint="move one of them with .to(device)"
        )
    return machine


def move_between_devices(copies: Sequence[UOp], realize: Realize) -> None:
    """Compute the operand of each COPY on its own device and transfer it; innermost first."""
    for node in copies:
        if node.realized is None:
            view = window_of(node.src[0]) or realize(node.src, None)[0]
            set_realized(
                node, UOp(Ops.BUFFER, node.dtype, (), copy_to_device(view, node.arg, realize))
            )


def copy_to_device(view: View, device: str, realize: Realize) -> View:
    """The elements in memory of another device; a file's pages are mapped instead of copied."""
    if is_file(view.device) and is_host(device) and not is_file(device):
        return _map_file(view, device)
    if (recorder := active_recorder()) is not None and recorder.is_strict:
        raise CaptureError(
            f"a captured function moves a value from {view.device} to {device}",
            hint="move it before the call, and pass it as an argument",
        )
    if not view.is_contiguous:
        node = UOp(Ops.BUFFER, view.dtype, (), view)
        (view,) = realize([UOp(Ops.CONTIGUOUS, view.dtype, (node,))], None)
    copy = View.empty(device, view.shape, view.dtype)
    start = view.offset * view.dtype.itemsize
    source = view.storage.as_buffer()[start : start + view.nbytes]
    copy.storage.copyin(source.cast("B") if view.nbytes else memoryview(b""))
    return copy


def _map_file(view: View, device: str) -> View:
    """A part of a file in the address space of a device; writing to it makes a copy."""
    file, item = view.storage, view.dtype.itemsize
    spec = BufferSpec(external_ptr=file.address)
    mapped = Storage(device, file.nbytes // item, view.dtype, spec, owner=file, readonly=True)
    return View(mapped, view.dtype, *view.window)
