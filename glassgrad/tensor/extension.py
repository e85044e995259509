"""Functions for code that extends Tensor (layers, optimisers, file formats), beside its methods.

`glassgrad.nn` imports these and `Tensor`, and nothing else of this package.
"""

from __future__ import annotations

from glassgrad.tensor.device_names import canonical
from glassgrad.tensor.lazy.deferred import later
from glassgrad.tensor.lazy.exclusive import exclusive
from glassgrad.tensor.lazy.in_place_writes import write
from glassgrad.tensor.lazy.realize import look
from glassgrad.tensor.lazy.unrealized import lazy_holders
from glassgrad.tensor.ops.indexing import check_index, checked, taken
from glassgrad.tensor.ops.random import GENERATOR
from glassgrad.tensor.record import axis_of, dtype_of

__all__ = [
    "GENERATOR",
    "axis_of",
    "canonical",
    "check_index",
    "checked",
    "dtype_of",
    "exclusive",
    "later",
    "lazy_holders",
    "look",
    "taken",
    "write",
]
