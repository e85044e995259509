"""Functions for code that extends Tensor (layers, optimisers, file formats), beside its methods.

`glassgrad.nn` imports these and `Tensor`, and nothing else of this package.
"""

from __future__ import annotations

from glassgrad.tensor.device_names import canonical_device
from glassgrad.tensor.lazy.deferred import defer
from glassgrad.tensor.lazy.exclusive import exclusive
from glassgrad.tensor.lazy.in_place_writes import write
from glassgrad.tensor.lazy.realize import realized_view
from glassgrad.tensor.lazy.unrealized import unrealized_holders
from glassgrad.tensor.ops.indexing import check_index, checked_index, take_rows
from glassgrad.tensor.ops.random import GENERATOR
from glassgrad.tensor.record import axis_of, dtype_of

__all__ = [
    "GENERATOR",
    "axis_of",
    "canonical_device",
    "check_index",
    "checked_index",
    "defer",
    "dtype_of",
    "exclusive",
    "realized_view",
    "take_rows",
    "unrealized_holders",
    "write",
]
