"""The graph lock: one thread at a time changes what tensors hold; recording needs no lock.

Computing a value changes tensors of all threads: they hold buffers afterwards, and readers of
overwritten contents are computed first. So any function that looks at all live tensors, or replaces
the node of one, holds the lock. Recording an operation only reads nodes and makes a new one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
GRAPHS = RLock()
if hasattr(os, "register_at_fork"):  # a forked child must not inherit a held lock
    os.register_at_fork(
        before=GRAPHS.acquire, after_in_parent=GRAPHS.release, after_in_child=GRAPHS.release
    )


def exclusive(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: hold the graph lock, so that no other thread changes what tensors hold."""

    @wraps(function)
    def alone(*args: P.args, **kwargs: P.kwargs) -> R:
        with GRAPHS:
            return function(*args, **kwargs)

    return alone
