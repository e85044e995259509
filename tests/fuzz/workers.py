"""Processes that run seeds, and report."""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any

from fuzz.cases import Choice, run_case
from fuzz.tally import Tally

BATCH = 200  # seeds that one process runs; then a fresh one takes over


def work(pipe: Connection, start: int, options: Namespace) -> None:
    """Run seeds, and say before each that it begins: the parent sees which one ended us."""
    warnings.simplefilter("ignore")
    choice = Choice(frozenset(filter(None, options.without.split(","))))
    for seed in range(start, start + BATCH * options.jobs, options.jobs):
        pipe.send(("begin", seed))
        report = run_case(seed, choice, options.shrink)
        pipe.send(("end", report))
        if report.failure and report.failure.kind != "wrong":
            break  # the next seeds begin in a process where nothing has failed
    pipe.send(("done", None))


def messages(options: Namespace, tally: Tally) -> Iterator[Any]:
    """Reports of all processes, as they come; a dead process is a report, too."""
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
            if tally.is_over():
                pipes.pop(pipe)
                process.terminate()
            elif kind in ("done", "died"):
                pipes.pop(pipe)
                process.join()
                start(job)
