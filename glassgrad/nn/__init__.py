"""Neural-network layers: callable objects that hold parameters.

There is no base class: any object whose attributes hold tensors is a module, and `nn.state` finds
its tensors by attribute path.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from glassgrad.nn.attention import MultiHeadAttention
from glassgrad.nn.convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from glassgrad.nn.linear import Dropout, Embedding, Linear
from glassgrad.nn.normalization import (
    BatchNorm,
    GroupNorm,
    InstanceNorm,
    LayerNorm,
    LayerNorm2d,
    RMSNorm,
)
from glassgrad.nn.recurrent import GRUCell, LSTMCell

if TYPE_CHECKING:
    from glassgrad.nn import checkpoint as checkpoint
    from glassgrad.nn import datasets as datasets
    from glassgrad.nn import loader as loader
    from glassgrad.nn import optim as optim
    from glassgrad.nn import state as state
    from glassgrad.nn import tokens as tokens

__all__ = [
    "BatchNorm",
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "Dropout",
    "Embedding",
    "GRUCell",
    "GroupNorm",
    "InstanceNorm",
    "LSTMCell",
    "LayerNorm",
    "LayerNorm2d",
    "Linear",
    "MultiHeadAttention",
    "RMSNorm",
]

BatchNorm1d = BatchNorm2d = BatchNorm3d = BatchNorm  # any number of spatial axes

# Submodules that are imported on first use: `nn.optim` works without an import of its own.
LAZY_IMPORTS = ("checkpoint", "datasets", "loader", "optim", "state", "tokens")


def __getattr__(name: str) -> ModuleType:
    if name not in LAZY_IMPORTS:
        raise AttributeError(f"module 'glassgrad.nn' has no attribute {name!r}")
    return import_module(f"glassgrad.nn.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *LAZY_IMPORTS})
