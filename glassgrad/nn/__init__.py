"""Layers: objects that hold parameters and are called with a tensor.

There is no base class: any object whose attributes hold tensors is a module, and `nn.state` finds
them by name.
"""

from __future__ import annotations

from glassgrad.nn.attention import MultiHeadAttention
from glassgrad.nn.convolution import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d
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

__all__ = [
    "BatchNorm",
    "BatchNorm2d",
    "BatchNorm3d",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
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

BatchNorm2d = BatchNorm3d = BatchNorm  # it works for any number of places
