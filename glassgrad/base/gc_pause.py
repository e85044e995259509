"""Pauses Python's cyclic garbage collector while a graph is compiled.

Compilation creates thousands of nodes without cycles; repeated collections over all of them would
make the time grow faster than the graph.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MIN_OBJECTS_TO_FREEZE = 10_000  # objects allocated meanwhile; fewer are not worth it


@contextmanager
def gc_paused() -> Iterator[None]:
    """No collections inside; does nothing if the collector is already off.

    Many new objects are moved to the oldest generation, or the next collection would visit all of
    them.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            # unfreeze() would also thaw what others froze.
            if gc.get_count()[0] > MIN_OBJECTS_TO_FREEZE and not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()  # moves them into the oldest generation
            gc.enable()
