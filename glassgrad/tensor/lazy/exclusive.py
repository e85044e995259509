"""One thread at a time changes what tensors hold; recording and kernels need no lock.

Computing a value changes tensors of all threads: they hold buffers afterwards, and those that read
what is overwritten are computed first. So whatever looks at all living tensors, or replaces the
node of one, is exclusive. An operation only reads the nodes of its operands and makes a new one.
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
if hasattr(os, "register_at_fork"):  # a child must not inherit a lock that nobody releases
    os.register_at_fork(
        before=GRAPHS.acquire, after_in_parent=GRAPHS.release, after_in_child=GRAPHS.release
    )


def exclusive(function: Callable[P, R]) -> Callable[P, R]:
    """Let no other thread change what tensors hold while this runs."""

    @wraps(function)
    def alone(*args: P.args, **kwargs: P.kwargs) -> R:
        with GRAPHS:
            return function(*args, **kwargs)

    return alone
