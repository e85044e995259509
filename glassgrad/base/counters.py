"""work done -> GlobalCounters: kernels, operations, bytes, seconds and memory in use, summed up."""

from __future__ import annotations

from collections import defaultdict
from threading import RLock
from typing import ClassVar


class GlobalCounters:
    """What has been done since the start or the last `reset()`. Memory in use is not reset."""

    global_ops: ClassVar[int] = 0  # arithmetic operations
    global_mem: ClassVar[int] = 0  # bytes read and written by kernels
    time_sum_s: ClassVar[float] = 0.0
    kernel_count: ClassVar[int] = 0
    mem_used: ClassVar[int] = 0  # bytes allocated now
    mem_peak: ClassVar[int] = 0  # the most that was allocated at once
    mem_used_per_device: ClassVar[defaultdict[str, int]] = defaultdict(int)

    # Reentrant, because memory is also freed by the garbage collector, at any moment.
    _lock: ClassVar[RLock] = RLock()

    @staticmethod
    def reset() -> None:
        """Count kernels, operations, bytes and seconds from zero again."""
        with GlobalCounters._lock:
            GlobalCounters.global_ops = GlobalCounters.global_mem = 0
            GlobalCounters.time_sum_s = 0.0
            GlobalCounters.kernel_count = 0
            GlobalCounters.mem_peak = GlobalCounters.mem_used

    @staticmethod
    def count(kernels: int, operations: int, nbytes: int, seconds: float = 0.0) -> None:
        """Kernels ran."""
        with GlobalCounters._lock:
            GlobalCounters.kernel_count += kernels
            GlobalCounters.global_ops += operations
            GlobalCounters.global_mem += nbytes
            GlobalCounters.time_sum_s += seconds

    @staticmethod
    def allocated(device: str, nbytes: int) -> None:
        """Memory was taken; a negative number says that it was given back."""
        with GlobalCounters._lock:
            GlobalCounters.mem_used += nbytes
            GlobalCounters.mem_peak = max(GlobalCounters.mem_peak, GlobalCounters.mem_used)
            GlobalCounters.mem_used_per_device[device] += nbytes
