"""glassgrad: a deep-learning tensor compiler that you can see through."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from glassgrad.base.gc_pause import gc_paused

with gc_paused():  # nothing that these imports allocate becomes garbage
    from glassgrad.base.config import VIZ, Context, getenv
    from glassgrad.base.counters import GlobalCounters
    from glassgrad.base.dtype import DType, dtypes
    from glassgrad.base.version import __version__
    from glassgrad.devices.registry import Device
    from glassgrad.ir.symbolic import Variable
    from glassgrad.ir.uop import UOp
    from glassgrad.memory.memory_view import MemoryView
    from glassgrad.tensor.tensor import Tensor

if TYPE_CHECKING:
    from glassgrad import nn
    from glassgrad.base.files import fetch
    from glassgrad.buffer import Buffer
    from glassgrad.tensor.autograd.custom import custom_gradient, recompute
    from glassgrad.tensor.jit.export import export
    from glassgrad.tensor.jit.function import TinyJit
    from glassgrad.tensor.jit.function import TinyJit as jit  # noqa: N813
    from glassgrad.tensor.jit.load import load

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
    "__version__",
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

# Imported on first use: slow to import, and not needed by every script. An empty attribute stands
# for the module itself. Type checkers read the imports above.
LAZY_IMPORTS = {
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
    if name not in LAZY_IMPORTS:
        raise AttributeError(f"module 'glassgrad' has no attribute {name!r}")
    module, attribute = LAZY_IMPORTS[name]
    found = import_module(module)
    return getattr(found, attribute) if attribute else found


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


if VIZ:
    import_module("glassgrad.viz.ending").watch()
