"""Sources -> seconds, measured in a separate process: a kernel that crashes or hangs is only slow.

The process runs `engine/tune/benchmark_worker.py`; requests and answers are lines of JSON. A worker
that does not answer in time is killed, and the next request starts another.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from math import inf
from queue import Empty, SimpleQueue
from threading import Thread
from types import TracebackType
from typing import IO, Any, Self

from glassgrad.base.origin import PACKAGE
from glassgrad.engine.cache.sources import encode_source
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Source, Target
from glassgrad.ir.uop import UOp

TIMEOUT_SECONDS = 20.0  # for starting the worker, compiling and measuring
WORKER_MODULE = "glassgrad.engine.tune.benchmark_worker"


class BenchmarkClient:
    """Measures kernels that take the same arguments."""

    def __init__(
        self, target: Target, timeout: float = TIMEOUT_SECONDS, worker_module: str = WORKER_MODULE
    ) -> None:
        self.target = target
        self.timeout = timeout
        self.worker_module = worker_module
        self.process: subprocess.Popen[str] | None = None
        self.answers: SimpleQueue[str] = SimpleQueue()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def measure(
        self, sources: Sequence[Source], limit: float = inf, rounds: int = 1
    ) -> list[float]:
        """The best time of each source in seconds; several rounds alternate between the sources.

        Infinity for all if one of them fails. A source that takes much longer than `limit` runs
        only once.
        """
        request = {
            "device": self.target.name,
            "sources": [encode_source(source) for source in sources],
            "buffers": buffers_of(sources[0].program.uops),
            "values": largest_values(sources[0].program.uops),
            "limit": None if limit == inf else limit,
            "rounds": rounds,
        }
        try:
            answer = json.loads(self._ask(json.dumps(request)))
        except (OSError, Empty, ValueError):
            self.stop()
            return [inf] * len(sources)
        return [inf if seconds is None else float(seconds) for seconds in answer]

    def _ask(self, line: str) -> str:
        process = self.process or self._start()
        assert process.stdin is not None
        process.stdin.write(f"{line}\n")
        process.stdin.flush()
        return self.answers.get(timeout=self.timeout)

    def _start(self) -> subprocess.Popen[str]:
        """The worker has a session of its own, so that Ctrl-C does not reach it."""
        process = self.process = subprocess.Popen(
            [sys.executable, "-m", self.worker_module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=self._environment(),
            start_new_session=True,
        )
        assert process.stdout is not None
        self.answers = SimpleQueue()
        Thread(target=_listen, args=(process.stdout, self.answers), daemon=True).start()
        return process

    def _environment(self) -> dict[str, str]:
        """Our number of threads and this package; no output, search or disk cache."""
        paths = [
            os.path.dirname(PACKAGE.rstrip(os.sep)),
            *filter(None, [os.environ.get("PYTHONPATH")]),
        ]
        quiet = {"BEAM": "0", "DEBUG": "0", "CACHELEVEL": "0", "SPEC": "0"}
        threads = {"THREADS": str(self.target.cores), "PYTHONPATH": os.pathsep.join(paths)}
        return os.environ | quiet | threads

    def stop(self) -> None:
        if self.process is not None:
            process, self.process = self.process, None
            process.kill()
            process.wait()
            with suppress(OSError):  # unsent data is not needed
                process.stdin.close()  # type: ignore[union-attr]


def _listen(pipe: IO[str], answers: SimpleQueue[str]) -> None:
    """Put every line into the queue, and an empty one at the end of the process."""
    with pipe:
        for line in pipe:
            answers.put(line)
    answers.put("")


def buffers_of(uops: Sequence[UOp]) -> list[tuple[int, bool]]:
    """(bytes, True for floats) of every argument."""
    params = {uop.arg.slot: uop for uop in uops if uop.op is Ops.PARAM}
    found = [(0, False)] * (max(params, default=-1) + 1)
    for slot, param in params.items():
        found[slot] = (param.arg.numel * param.dtype.itemsize, param.dtype.kind == "float")
    return found


def largest_values(uops: Sequence[UOp]) -> list[int]:
    """The largest values of variables, in the order of the kernel's arguments."""
    variables = sorted((uop for uop in uops if uop.op is Ops.VARIABLE), key=_arg)
    return [int(variable.arg[2]) for variable in variables]


def _arg(variable: UOp) -> Any:
    return variable.arg
