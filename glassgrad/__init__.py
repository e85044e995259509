"""glassgrad: a deep-learning tensor compiler that you can see through."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from glassgrad.base.gc_pause import collector_paused

with collector_paused():  # what is made here stays
    from glassgrad.base.config import VIZ, Context, getenv
    from glassgrad.base.counters import GlobalCounters
    from glassgrad.base.dtype import DType, dtypes
    from glassgrad.devices.registry import Device
    from glassgrad.ir.symbolic import Variable
    from glassgrad.ir.uop import UOp
    from glassgrad.memory.memory_view import MemoryView
    from glassgrad.tensor.tensor import Tensor

__all__ = [
    "Buffer",
    "Context",
    "DType",
    "Device",
    "GlobalCounters",
    "MemoryView",
    "Tensor",
    "TinyJit",
    "UOp",
    "Variable",
    "custom_gradient",
    "dtypes",
    "export",
    "fetch",
    "getenv",
    "jit",
    "load",
    "memory",
    "nn",
    "recompute",
]

# What takes long to import and few scripts need is imported when it is first asked for.
LATER = {
    "Buffer": ("glassgrad.buffer", "Buffer"),
    "TinyJit": ("glassgrad.tensor.jit.function", "TinyJit"),
    "custom_gradient": ("glassgrad.tensor.autograd.custom", "custom_gradient"),
    "export": ("glassgrad.tensor.jit.export", "export"),
    "fetch": ("glassgrad.base.files", "fetch"),
    "jit": ("glassgrad.tensor.jit.function", "TinyJit"),
    "load": ("glassgrad.tensor.jit.load", "load"),
    "nn": ("glassgrad.nn", ""),
    "recompute": ("glassgrad.tensor.autograd.custom", "recompute"),
}


def __getattr__(name: str) -> Any:
    if name not in LATER:
        raise AttributeError(f"module 'glassgrad' has no attribute {name!r}")
    module, attribute = LATER[name]
    found = import_module(module)
    return getattr(found, attribute) if attribute else found


if VIZ:
    import_module("glassgrad.viz.ending").watch()
