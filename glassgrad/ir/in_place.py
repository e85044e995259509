"""STOREs -> True if overwritten elements are read only at the index that is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp


def is_in_place(stores: Sequence[UOp], stop: Callable[[UOp], bool] | None = None) -> bool:
    """True if all loads of overwritten buffers use the index that is written.

    Loads behind nodes for which `stop` is true happen before anything is written.
    """
    store_index = {store.buffer: store.src[0] for store in stores}
    for store in stores:
        for node in store.src[1].toposort(stop):
            if node.op is Ops.LOAD:
                index = node.src[0]
                if store_index.get(index.src[0], index) is not index:
                    return False
    return True
