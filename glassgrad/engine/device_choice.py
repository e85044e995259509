"""Which device a graph runs on, and values that come from another one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from glassgrad.base.errors import CaptureError, DeviceError
from glassgrad.devices.protocol import Device as Machine
from glassgrad.devices.registry import Device
from glassgrad.engine.capture.recorder import recorder
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp, note
from glassgrad.ir.window import window_of
from glassgrad.memory.allocator import is_file, is_host
from glassgrad.memory.storage import BufferSpec, Storage
from glassgrad.memory.view import View

Realize = Callable[[Sequence[UOp], str | None], tuple[View, ...]]


def device_of(leaves: Sequence[UOp], wanted: str | None) -> Machine:
    """The device of a graph's buffers; without any, the one that is wanted.

    Files compute nothing: whoever works in the memory of this process reads and writes their pages.
    """
    devices = dict.fromkeys([leaf.arg.storage.device for leaf in leaves])
    if len(devices) == 1 and leaves[0].arg.storage.device in Device.opened:
        return Device.opened[leaves[0].arg.storage.device]
    found = [name for name in devices if not is_file(name)]
    machine = Device[next(iter(found), wanted)]
    if len(found) > 1 or (len(devices) > len(found) and not is_host(machine.name)):
        names = " and ".join(devices)
        raise DeviceError(f"values on {names} meet", hint="move one of them with .to(device)")
    return machine


def move_between_devices(copies: Sequence[UOp], realize: Realize) -> None:
    """Compute what each COPY copies, on its own device, and copy it; innermost first."""
    for node in copies:
        if node.realized is None:
            view = window_of(node.src[0]) or realize(node.src, None)[0]
            note(node, UOp(Ops.BUFFER, node.dtype, (), copied(view, node.arg, realize)))


def copied(view: View, device: str, realize: Realize) -> View:
    """The elements in memory of another device: new memory, but the pages of a file serve too."""
    if is_file(view.device) and is_host(device) and not is_file(device):
        return _pages(view, device)
    if (watching := recorder()) is not None and watching.is_strict:
        raise CaptureError(
            f"a value moves from {view.device} to {device} inside of a captured function",
            hint="move it outside, and pass it as an argument",
        )
    if not view.is_contiguous:
        node = UOp(Ops.BUFFER, view.dtype, (), view)
        (view,) = realize([UOp(Ops.CONTIGUOUS, view.dtype, (node,))], None)
    made = View.empty(device, view.shape, view.dtype)
    start = view.offset * view.dtype.itemsize
    source = view.storage.as_buffer()[start : start + view.nbytes]
    made.storage.copyin(source.cast("B") if view.nbytes else memoryview(b""))
    return made


def _pages(view: View, device: str) -> View:
    """A part of a file where a device reads it. Who writes to it gets memory of his own."""
    file, item = view.storage, view.dtype.itemsize
    spec = BufferSpec(external_ptr=file.address)
    seen = Storage(device, file.nbytes // item, view.dtype, spec, owner=file, readonly=True)
    return View(seen, view.dtype, *view.window)
