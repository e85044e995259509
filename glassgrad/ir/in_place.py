"""STOREs -> whether what they overwrite is read only at the place that is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp


def is_in_place(stores: Sequence[UOp], stop: Callable[[UOp], bool] | None = None) -> bool:
    """Does every way from memory to a STORE read what is overwritten only there?

    What lies behind nodes that `stop` was read before anything is written.
    """
    written = {store.buffer: store.src[0] for store in stores}
    for store in stores:
        for node in store.src[1].toposort(stop):
            if node.op is Ops.LOAD:
                index = node.src[0]
                if written.get(index.src[0], index) is not index:
                    return False
    return True
