"""a device's name as people write it -> the name that the registry knows."""

from __future__ import annotations

from glassgrad.base.errors import DeviceError


def canonical(device: object) -> str:
    """None is the default device; "cpu" and "CPU:0" are "CPU". An unknown name is an error."""
    from glassgrad.devices.registry import Device

    if device is None:
        return Device.DEFAULT
    if not isinstance(device, str):
        raise DeviceError(f"a device is named by a string, not {device!r}", hint='such as "CPU"')
    return Device.canonicalize(device)
