"""a device's name as people write it -> the name that the registry knows."""

from __future__ import annotations

from glassgrad.base.errors import DeviceError
from glassgrad.devices.registry import FAMILIES, Device

# Devices that work in the memory of this process: what is there needs no copy.
HOST = frozenset(("CPU", "CLANG", "PYTHON"))


def canonical(device: object) -> str:
    """None is the default device; "cpu" and "CPU:0" are "CPU". An unknown name is an error."""
    if device is None:
        return Device.DEFAULT
    if not isinstance(device, str):
        raise DeviceError(f"a device is named by a string, not {device!r}", hint='such as "CPU"')
    name = Device.canonicalize(device)
    if name.partition(":")[0] not in FAMILIES:
        Device.get_class(name)  # says what there is
    return name


def is_host(device: str) -> bool:
    return device.partition(":")[0] in HOST
