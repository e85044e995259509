"""First use on a machine -> LLVM, loaded by a background thread.

Loading LLVM and compiling the thread pool's code do not hold the GIL, so with two cores they cost
no extra time.
"""

from __future__ import annotations

import os
from contextlib import suppress
from threading import Thread

from glassgrad.base.errors import DeviceError
from glassgrad.devices.cpu.llvm import llvm
from glassgrad.devices.cpu.native import host, is_host_cached
from glassgrad.devices.cpu.pool import load_code

THREADS: list[Thread] = []


def start_loading() -> bool:
    """Load LLVM in the background if this machine will need it at once; True if it does."""
    if is_host_cached():
        return False
    thread = Thread(target=_load, name="glassgrad-loader")
    THREADS.append(thread)
    thread.start()
    return True


def _load() -> None:
    with suppress(DeviceError):  # the error is raised again where LLVM is needed
        llvm()
        host()
        load_code(None)


def _finish() -> None:
    """A forked child would wait forever for an import that no thread of its own completes."""
    while THREADS:
        THREADS.pop().join()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_finish)
