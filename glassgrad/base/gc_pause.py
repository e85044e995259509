"""Python's cyclic garbage collector, out of the way while a graph becomes code.

Thousands of nodes are made and none of them is part of a cycle; walking over all of them again and
again would make the time grow faster than the graph.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MUCH = 10_000  # objects


@contextmanager
def collector_paused() -> Iterator[None]:
    """No collections meanwhile; nothing changes if the collector is off already.

    If much was made meanwhile it counts as old, or the next collection would walk over all of it.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if gc.get_count()[0] > MUCH and not gc.get_freeze_count():  # what others froze stays so
                gc.freeze()
                gc.unfreeze()  # into the oldest generation
            gc.enable()
