"""Worker processes that run seeds and send reports."""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any

from fuzz.cases import Exclusions, run_case
from fuzz.tally import Tally

SEEDS_PER_PROCESS = 200  # then a new process takes over


def work(pipe: Connection, start: int, options: Namespace) -> None:
    """Run seeds, and announce each, so that the parent knows which one killed the process."""
    warnings.simplefilter("ignore")
    exclusions = Exclusions(frozenset(filter(None, options.without.split(","))))
    for seed in range(start, start + SEEDS_PER_PROCESS * options.jobs, options.jobs):
        pipe.send(("begin", seed))
        report = run_case(seed, exclusions, options.shrink)
        pipe.send(("end", report))
        if report.failure and report.failure.kind != "wrong":
            break  # continue in a process without earlier failures
    pipe.send(("done", None))


def messages(options: Namespace, tally: Tally) -> Iterator[Any]:
    """Reports of all processes as they arrive; for a process that died, its seed."""
    context = get_context("spawn")
    seeds = [options.seed + i for i in range(options.jobs)]  # the next one of each process
    pipes: dict[Any, tuple[int, Any, list[int]]] = {}

    def start(job: int) -> None:
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=work, args=(theirs, seeds[job], options), daemon=True)
        process.start()
        theirs.close()
        pipes[ours] = (job, process, [seeds[job]])

    for job in range(options.jobs):
        start(job)
    while pipes:
        for pipe in wait(list(pipes)):
            job, process, current = pipes[pipe]
            try:
                kind, found = pipe.recv()
            except EOFError:
                kind, found = "died", current[0]
            if kind == "begin":
                current[0] = found
                continue
            seeds[job] = current[0] + options.jobs
            if kind in ("end", "died"):
                yield found
            if tally.is_finished():
                pipes.pop(pipe)
                process.terminate()
            elif kind in ("done", "died"):
                pipes.pop(pipe)
                process.join()
                start(job)
