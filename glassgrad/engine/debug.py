"""What DEBUG prints: one line per launch, and the artefact of every stage that is entered."""

from __future__ import annotations

from glassgrad.base.counters import GlobalCounters
from glassgrad.base.terminal import ansipad
from glassgrad.ir.stages import Launch


def report_launch(launch: Launch, device: str, seconds: float) -> None:
    """*** CPU  3  E_4_4   arg 3   mem 0.00 GB   tm 25.88us/ 0.03ms ( 0.00 GFLOPS  0.0 GB/s)"""
    program = launch.executable.source.program
    total = GlobalCounters.time_sum_s * 1e3
    rate = launch.operations / seconds / 1e9
    moved = launch.bytes / seconds / 1e9
    print(
        f"*** {device:<8}{GlobalCounters.kernel_count:>5} {ansipad(program.label, 36)} "
        f"arg {len(launch.slots):>2} mem {GlobalCounters.mem_used / 1e9:6.2f} GB "
        f"tm {seconds * 1e6:9.2f}us/{total:9.2f}ms ({rate:8.2f} GFLOPS {moved:6.1f} GB/s)"
    )
