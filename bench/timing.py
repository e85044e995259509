"""Best-of-n timing of interleaved contenders, and repeatable launches."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter, sleep

from glassgrad import Tensor
from glassgrad.devices.protocol import Batch
from glassgrad.devices.registry import Device
from glassgrad.engine.cache.graph_keys import PLANS, signature

Work = Callable[[], object]

PAUSE = 0.25  # seconds between turns: idle threads of one library spin and slow down the next
RUNS_PER_TURN = 8


def best_of(contenders: dict[str, Work], rounds: int = 4) -> dict[str, float]:
    """The best time of each in seconds; they take turns, so that noise affects all of them."""
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, work in contenders.items():
            sleep(PAUSE)
            work()
            for _ in range(RUNS_PER_TURN):
                start = perf_counter()
                work()
                best[name] = min(best[name], perf_counter() - start)
    return best


def launches(value: Tensor) -> Work:
    """A function that repeats the launches that compute a tensor, without compiling."""
    key = (Device.DEFAULT, signature([value.uop]).key)
    value.realize()
    plan = PLANS.get(key)
    assert plan is not None, "the plan is not in the cache"
    batch: Batch = plan.batches[-1]

    def run(keep: Tensor = value) -> None:  # the batch writes into this tensor's memory
        batch.run()

    return run


def row(name: str, times: dict[str, float], unit: float = 1e3, ours: str = "glassgrad") -> str:
    """A line of the table: all times, and the ratio of ours to the best of the others."""
    peers = [seconds for contender, seconds in times.items() if contender != ours]
    cells = "".join(
        f"{contender:>11} {seconds * unit:8.2f}" for contender, seconds in times.items()
    )
    ratio = f"   ours/best {times[ours] / min(peers):5.2f}" if peers else ""
    return f"{name:18}{cells}{ratio}"
