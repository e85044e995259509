"""The names that scripts import from here; what they call a Buffer is a Storage."""

from glassgrad.devices.registry import Device
from glassgrad.memory.storage import BufferSpec
from glassgrad.memory.storage import Storage as Buffer

__all__ = ["Buffer", "BufferSpec", "Device"]
