"""work done -> GlobalCounters: kernels, operations, bytes, seconds and memory in use, summed up."""

from __future__ import annotations

from collections import defaultdict
from threading import RLock


class Counters:
    """What has been done since the start or the last `reset()`. Memory in use is not reset."""

    __slots__ = (
        "_lock", "global_mem", "global_ops", "kernel_count", "mem_peak", "mem_used",
        "mem_used_per_device", "time_sum_s", "uncovered_count",
    )  # fmt: skip

    def __init__(self) -> None:
        self.global_ops = 0  # arithmetic operations
        self.global_mem = 0  # bytes read and written by kernels
        self.time_sum_s = 0.0
        self.kernel_count = 0
        self.uncovered_count = 0  # kernels that were not proved to write all of their results
        self.mem_used = 0  # bytes allocated now
        self.mem_peak = 0  # the most that was allocated at once
        self.mem_used_per_device: defaultdict[str, int] = defaultdict(int)
        # Reentrant, because memory is also freed by the garbage collector, at any moment.
        self._lock = RLock()

    def reset(self) -> None:
        """Count kernels, operations, bytes and seconds from zero again."""
        with self._lock:
            self.global_ops = self.global_mem = self.kernel_count = self.uncovered_count = 0
            self.time_sum_s = 0.0
            self.mem_peak = self.mem_used

    def count(self, kernels: int, operations: int, nbytes: int, seconds: float = 0.0) -> None:
        """Kernels ran. There is no call in here, so the interpreter changes no thread meanwhile."""
        self.kernel_count += kernels
        self.global_ops += operations
        self.global_mem += nbytes
        self.time_sum_s += seconds

    def uncovered(self, kernels: int) -> None:
        """Memory was zeroed before a kernel, or a simpler recipe was taken, for want of a proof."""
        with self._lock:
            self.uncovered_count += kernels

    def allocated(self, device: str, nbytes: int) -> None:
        """Memory was taken; a negative number says that it was given back."""
        with self._lock:
            self.mem_used = used = self.mem_used + nbytes
            if used > self.mem_peak:
                self.mem_peak = used
            self.mem_used_per_device[device] += nbytes


GlobalCounters = Counters()
