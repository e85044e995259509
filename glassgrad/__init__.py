"""glassgrad: a deep-learning tensor compiler that you can see through."""

from __future__ import annotations

from glassgrad.base.config import Context, getenv
from glassgrad.base.counters import GlobalCounters
from glassgrad.base.dtype import dtypes
from glassgrad.devices.registry import Device
from glassgrad.ir.uop import UOp
from glassgrad.tensor.tensor import Tensor

__all__ = ["Context", "Device", "GlobalCounters", "Tensor", "UOp", "dtypes", "getenv"]
