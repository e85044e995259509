"""Memory sharing: the cost of a view and of an eager operation, and a check that nothing is copied.

python -m bench.hub
"""

from __future__ import annotations

import resource
from collections.abc import Callable
from time import perf_counter

import numpy as np

from glassgrad import Buffer, Tensor
from glassgrad.memory import get

GIGABYTE = 1 << 30


def microseconds(work: Callable[[], object], count: int = 300, rounds: int = 15) -> float:
    """Microseconds per call: the mean of the fastest round."""
    work()
    best = float("inf")
    for _ in range(rounds):
        start = perf_counter()
        for _ in range(count):
            work()
        best = min(best, (perf_counter() - start) / count)
    return best * 1e6


def views() -> None:
    small, view = np.zeros((256, 256), np.float32), get(np.zeros((256, 256), np.float32))
    print("one view, us")
    print(f"get + release, NumPy      {microseconds(lambda: get(small).release()):8.1f}   (20)")
    print(f"get + release, bytes      {microseconds(lambda: get(b'abc').release()):8.1f}")
    print(f".memoryview()             {microseconds(view.memoryview):8.1f}")
    print(f"np.from_dlpack(view)      {microseconds(lambda: np.from_dlpack(view)):8.1f}")
    print(f"Tensor.from_memory        {microseconds(lambda: Tensor.from_memory(small)):8.1f}")


def operations() -> None:
    left, right = np.ones((256, 256), np.float32), np.ones((256, 256), np.float32)
    one, two = Buffer.from_memory(left), Buffer.from_memory(right)
    print("one eager operation, us                NumPy")
    rows: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "256x256 add               ": (lambda: one + two, lambda: left + right),
        "256x256 add, transposed   ": (lambda: one + two.permute((1, 0)), lambda: left + right.T),
        "256x256 times a number    ": (lambda: one * 2.5, lambda: left * 2.5),
        "256x256 sum of rows       ": (lambda: one.sum(axes=1), lambda: left.sum(axis=1)),
        "16 elements add           ": (lambda: one[0, :16] + two[0, :16], lambda: left[0, :16] + 1),
    }
    for name, (ours, theirs) in rows.items():
        target = "   (60)" if name.startswith("256x256 add  ") else ""
        print(f"{name}{microseconds(ours):8.1f} {microseconds(theirs):8.1f}{target}")


def share_a_gigabyte() -> None:
    """A copy would increase the time and the peak of memory."""
    for kind in (Tensor, Buffer):  # warm up
        np.asarray(kind.from_memory(bytearray(4)))
    big = np.zeros(GIGABYTE // 4, np.float32)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = perf_counter()
    tensor, buffer = Tensor.from_memory(big), Buffer.from_memory(big)
    arrays = np.asarray(tensor), np.asarray(buffer)
    seconds = perf_counter() - start
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert all(array.ctypes.data == big.ctypes.data for array in arrays)
    print(f"1 GB into Tensor and Buffer and back: {seconds * 1e6:.0f} us, {grown} KB more memory")


def main() -> None:
    views()
    operations()
    share_a_gigabyte()


if __name__ == "__main__":
    main()
