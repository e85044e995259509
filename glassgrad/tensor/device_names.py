"""A device's name as users write it -> its canonical name in the registry."""

from __future__ import annotations

from glassgrad.base.dtype import DType
from glassgrad.base.errors import DeviceError
from glassgrad.devices.registry import FAMILIES, Device
from glassgrad.memory.allocator import is_file, is_host


def canonical_device(device: object) -> str:
    """The canonical name: None is the default device, "cpu" and "CPU:0" are "CPU". An unknown name
    raises an error.
    """
    if device is None:
        return Device.DEFAULT
    if not isinstance(device, str):
        hint = "cast() changes the dtype" if isinstance(device, DType) else 'such as "CPU"'
        raise DeviceError(f"a device is named by a string, not {device!r}", hint)
    name = Device.canonicalize(device)
    if is_file(name):
        return name
    if name.partition(":")[0] not in FAMILIES:
        Device.get_class(name)  # raises an error that lists the known devices
    return name


def host_device(device: str) -> str:
    """The device itself if it uses host memory, else the CPU."""
    return device if is_host(device) and not is_file(device) else "CPU"
