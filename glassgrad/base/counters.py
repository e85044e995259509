"""Totals of kernels, operations, bytes and seconds, and the memory in use."""

from __future__ import annotations

from collections import defaultdict
from threading import RLock


class Counters:
    """Totals since the start or the last `reset()`. Memory in use is not reset."""

    __slots__ = (
        "_lock", "global_mem", "global_ops", "kernel_count", "mem_peak", "mem_used",
        "mem_used_per_device", "time_sum_s", "uncovered_count",
    )  # fmt: skip

    def __init__(self) -> None:
        self.global_ops = 0  # arithmetic operations
        self.global_mem = 0  # bytes read and written by kernels
        self.time_sum_s = 0.0
        self.kernel_count = 0
        self.uncovered_count = 0  # kernels without a proof that they write all of their results
        self.mem_used = 0  # bytes allocated now
        self.mem_peak = 0  # maximum of mem_used
        self.mem_used_per_device: defaultdict[str, int] = defaultdict(int)
        # Reentrant, because the garbage collector may free memory at any moment.
        self._lock = RLock()

    def reset(self) -> None:
        """Reset kernels, operations, bytes and seconds to zero, and the peak to the current use."""
        with self._lock:
            self.global_ops = self.global_mem = self.kernel_count = self.uncovered_count = 0
            self.time_sum_s = 0.0
            self.mem_peak = self.mem_used

    def count(self, kernels: int, operations: int, nbytes: int, seconds: float = 0.0) -> None:
        """Count launches. Calls nothing, so the interpreter does not switch threads inside."""
        self.kernel_count += kernels
        self.global_ops += operations
        self.global_mem += nbytes
        self.time_sum_s += seconds

    def uncovered(self, kernels: int) -> None:
        """Count kernels without a coverage proof: results were zeroed first, or a simpler recipe
        used.
        """
        with self._lock:
            self.uncovered_count += kernels

    def allocated(self, device: str, nbytes: int) -> None:
        """Count allocated memory; negative for freed memory."""
        with self._lock:
            self.mem_used = used = self.mem_used + nbytes
            if used > self.mem_peak:
                self.mem_peak = used
            self.mem_used_per_device[device] += nbytes


GlobalCounters = Counters()
