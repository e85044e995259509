"""Launches, addresses -> results, one launch at a time: each is timed, reported and announced."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from time import perf_counter

from glassgrad.base.config import DEBUG
from glassgrad.base.counters import GlobalCounters
from glassgrad.base.events import LISTENERS, KernelLaunched, announce
from glassgrad.devices.protocol import Call, Device
from glassgrad.engine.debug import report_launch
from glassgrad.engine.verify.verify import is_verified, verified
from glassgrad.ir.size import UNBOUND, Bound
from glassgrad.ir.stages import Launch


def calls_of(
    launches: Sequence[Launch], addresses: Sequence[int], values: Bound = UNBOUND
) -> list[Call]:
    return [
        Call(
            launch.executable,
            tuple([addresses[found] for found in launch.slots]),
            tuple([values[variable] for variable in launch.variables]),
        )
        for launch in launches
    ]


def launch_one_by_one(
    launches: Sequence[Launch], addresses: Sequence[int], device: Device, values: Bound = UNBOUND
) -> None:
    for launch, call in zip(launches, calls_of(launches, addresses, values), strict=True):
        batch = device.prepare((call,))
        check = verified(launch, call, device) if is_verified() else nullcontext()
        with check:
            start = perf_counter()
            batch.run()
            device.synchronize()
            seconds = perf_counter() - start
        GlobalCounters.count(1, launch.operations, launch.bytes, seconds)
        if DEBUG >= 2:
            report_launch(launch, device.name, seconds)
        if LISTENERS:
            name = launch.executable.source.name
            announce(
                KernelLaunched(name, device.name, seconds, launch.operations, launch.bytes, launch)
            )
