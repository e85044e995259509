"""Sources -> Executables: compiled in background threads, with a progress bar if it takes long."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING

from glassgrad.base.config import DEBUG
from glassgrad.base.events import LISTENERS, StageEntered, announce
from glassgrad.devices.cpu.machine import usable_cores
from glassgrad.devices.protocol import Device
from glassgrad.engine.debug import report_executable
from glassgrad.ir.stages import Executable, Source

if TYPE_CHECKING:
    from glassgrad.base.progress import tqdm

PROGRESS_BAR_DELAY = 1.0  # seconds of compiling before a progress bar is shown

CompileLater = Callable[[Source], Callable[[], Executable]]


@contextmanager
def background_compiler(device: Device, count: int) -> Iterator[CompileLater]:
    """A function that starts to compile a source and returns a function that waits for the code.

    A single source, and everything while DEBUG or a listener is active, is compiled at once.
    """
    if count < 2 or LISTENERS or DEBUG >= 3:
        yield partial(_compile_now, device=device)
        return
    from concurrent.futures import ThreadPoolExecutor  # not needed for a single kernel

    bar = _ProgressBar(count)
    with ThreadPoolExecutor(min(count, usable_cores()), "glassgrad-compiler") as threads:

        def later(source: Source) -> Callable[[], Executable]:
            result = threads.submit(device.compile, source)
            result.add_done_callback(lambda _: bar.step())
            return result.result

        try:
            yield later
        finally:
            threads.shutdown(cancel_futures=True)
            bar.close()


def _compile_now(source: Source, device: Device) -> Callable[[], Executable]:
    if LISTENERS:
        announce(StageEntered("devices", source))
    executable = device.compile(source)
    report_executable(executable)
    return lambda: executable


class _ProgressBar:
    """Counts compiled kernels; shown only on a terminal, and after a delay."""

    def __init__(self, count: int) -> None:
        self.start, self.count, self.done = perf_counter(), count, 0
        self.shown: tqdm[None] | None = None
        self.stepping = Lock()

    def step(self) -> None:
        with self.stepping:
            self.done += 1
            if self.shown is not None:
                self.shown.update(1)
            elif perf_counter() - self.start > PROGRESS_BAR_DELAY and sys.stderr.isatty():
                from glassgrad.base.progress import tqdm

                self.shown = tqdm(desc="compiling", total=self.count, unit="kernel")
                self.shown.start = self.start
                self.shown.update(self.done)

    def close(self) -> None:
        if self.shown is not None:
            self.shown.update(close=True)
