"""Memory: the hub that shares it (hub), blocks that own it (Storage), windows on it (View)."""

from glassgrad.memory.errors import FormatError
from glassgrad.memory.flags import Flags
from glassgrad.memory.format import item_size_from_format, parse_format
from glassgrad.memory.hub import (
    available,
    byte_array,
    export_count,
    get,
    register,
    unregister,
)
from glassgrad.memory.item import Component, extract_item
from glassgrad.memory.layout import contiguous_strides
from glassgrad.memory.memory_view import MemoryView

__all__ = [
    "Component",
    "Flags",
    "FormatError",
    "MemoryView",
    "available",
    "byte_array",
    "contiguous_strides",
    "export_count",
    "extract_item",
    "from_dlpack",
    "get",
    "item_size_from_format",
    "parse_format",
    "register",
    "unregister",
]


def from_dlpack(x: object) -> MemoryView:
    """The memory of an object with __dlpack__, or of a DLPack capsule."""
    from glassgrad.memory.bridge_dlpack import from_dlpack

    return from_dlpack(x)
