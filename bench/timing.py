"""Best-of-n times, contenders taking turns, and launches that can be run again."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter, sleep

from glassgrad import Tensor
from glassgrad.devices.protocol import Batch
from glassgrad.devices.registry import Device
from glassgrad.engine.cache.graph_keys import PLANS, signature

Work = Callable[[], object]


REST = 0.25  # seconds between turns: idle threads of one library spin, and hold the others up
RUNS = 8  # in a turn


def best_of(contenders: dict[str, Work], rounds: int = 4) -> dict[str, float]:
    """The best time of each, in seconds; they take turns, so that noise meets all of them."""
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, work in contenders.items():
            sleep(REST)
            work()
            for _ in range(RUNS):
                start = perf_counter()
                work()
                best[name] = min(best[name], perf_counter() - start)
    return best


def launches(value: Tensor) -> Work:
    """What a tensor's value takes to compute once it is compiled, as a function to run again."""
    key = (Device.DEFAULT, signature([value.uop]).key)
    value.realize()
    plan = PLANS.get(key)
    assert plan is not None, "the plan was forgotten"
    batch: Batch = plan.batches[-1]

    def run(keep: Tensor = value) -> None:  # the batch writes into this tensor's memory
        batch.run()

    return run


def row(name: str, times: dict[str, float], unit: float = 1e3, wanted: str = "glassgrad") -> str:
    """One line: every time, and ours over the best of the others."""
    peers = [seconds for contender, seconds in times.items() if contender != wanted]
    cells = "".join(
        f"{contender:>11} {seconds * unit:8.2f}" for contender, seconds in times.items()
    )
    ratio = f"   ours/best {times[wanted] / min(peers):5.2f}" if peers else ""
    return f"{name:18}{cells}{ratio}"
