"""The names that scripts import from here: Device."""

from glassgrad.devices.registry import Device
from glassgrad.memory.storage import BufferSpec

__all__ = ["BufferSpec", "Device"]
