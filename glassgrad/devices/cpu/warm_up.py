"""a machine where nothing was compiled yet -> LLVM, loaded in a thread while Python goes on.

Loading LLVM and compiling the thread pool's code hold no lock of the interpreter, so on two cores
they take no time of their own.
"""

from __future__ import annotations

import os
from contextlib import suppress
from threading import Thread

from glassgrad.base.errors import DeviceError
from glassgrad.devices.cpu.llvm import llvm
from glassgrad.devices.cpu.native import host, is_host_known
from glassgrad.devices.cpu.pool import load_code

WORKING: list[Thread] = []


def begin() -> bool:
    """Start, if this machine will need LLVM at once; whether it does."""
    if is_host_known():
        return False
    thread = Thread(target=_load, name="glassgrad-loader")
    WORKING.append(thread)
    thread.start()
    return True


def _load() -> None:
    with suppress(DeviceError):  # whoever needs it will be told
        llvm()
        host()
        load_code(None)


def _finish() -> None:
    """A child of a fork would wait for ever for a module that no thread imports any more."""
    while WORKING:
        WORKING.pop().join()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_finish)
