"""Sources -> seconds, measured in a process of their own: one that crashes or hangs is only slow.

The worker process runs `engine/tune/benchmark_worker.py`; a line of JSON is sent for each
measurement, and one comes back. A worker that does not answer in time is killed, and the next
measurement starts another.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from types import TracebackType
from typing import IO, Any, Self

from glassgrad.engine.cache.sources import written_source
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Source, Target
from glassgrad.ir.uop import UOp

PATIENCE = 20.0  # seconds for starting, compiling and measuring
CHILD = "glassgrad.engine.tune.benchmark_worker"


class Stopwatch:
    """Measures kernels that take the same arguments."""

    def __init__(self, target: Target, patience: float = PATIENCE, child: str = CHILD) -> None:
        self.target = target
        self.patience = patience
        self.child = child
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
        """Seconds that each takes, the best of some runs; in turns, if there are several rounds.

        Infinity for all if one of them does not work. What takes much longer than `limit` is run
        only once.
        """
        request = {
            "device": self.target.name,
            "sources": [written_source(source) for source in sources],
            "buffers": buffers_of(sources[0].program.uops),
            "values": values_of(sources[0].program.uops),
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
        return self.answers.get(timeout=self.patience)

    def _start(self) -> subprocess.Popen[str]:
        """A session of its own, so that Ctrl-C reaches us alone."""
        process = self.process = subprocess.Popen(
            [sys.executable, "-m", self.child],
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
        """Our own threads and package, and nothing that would be printed, searched or kept."""
        package = str(Path(__file__).parent.parent.parent)
        paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
        quiet = {"BEAM": "0", "DEBUG": "0", "CACHELEVEL": "0", "SPEC": "0"}
        threads = {"THREADS": str(self.target.cores), "PYTHONPATH": os.pathsep.join(paths)}
        return os.environ | quiet | threads

    def stop(self) -> None:
        if self.process is not None:
            process, self.process = self.process, None
            process.kill()
            process.wait()
            with suppress(OSError):  # a line that was not sent is not missed
                process.stdin.close()  # type: ignore[union-attr]


def _listen(pipe: IO[str], answers: SimpleQueue[str]) -> None:
    """Every line goes to the queue; at the end of the process an empty one does."""
    with pipe:
        for line in pipe:
            answers.put(line)
    answers.put("")


def buffers_of(uops: Sequence[UOp]) -> list[tuple[int, bool]]:
    """Bytes of every argument, and whether it is of floats."""
    params = {uop.arg.slot: uop for uop in uops if uop.op is Ops.PARAM}
    found = [(0, False)] * (max(params, default=-1) + 1)
    for slot, param in params.items():
        found[slot] = (param.arg.numel * param.dtype.itemsize, param.dtype.kind == "float")
    return found


def values_of(uops: Sequence[UOp]) -> list[int]:
    """The largest values of variables, in the order in which a kernel takes them."""
    variables = sorted((uop for uop in uops if uop.op is Ops.VARIABLE), key=_arg)
    return [int(variable.arg[2]) for variable in variables]


def _arg(variable: UOp) -> Any:
    return variable.arg
