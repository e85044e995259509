"""Checked memory: bounds, uninitialized scratch, and races."""

import numpy as np
import pytest
from support.compiler.hand_programs import address

from glassgrad.base.dtype import DType, dtypes
from glassgrad.devices.python.memory import AccessError, HostMemory, ScratchMemory, ThreadState

ALONE = ThreadState(0, 0, 0)


def floats(values: list[float], has_threads: bool = False) -> tuple[np.ndarray, HostMemory]:
    array = np.array(values, np.float32)
    return array, HostMemory("data0", dtypes.float, len(values), has_threads, address(array))


def test_elements_are_read_and_written_in_place() -> None:
    array, memory = floats([1.5, 2.5])
    assert memory.read(1, ALONE) == 2.5
    memory.write(0, 0.25, ALONE)
    assert array.tolist() == [0.25, 2.5]


@pytest.mark.parametrize("dtype", [*dtypes.floats, dtypes.bool, dtypes.long], ids=lambda d: d.name)
def test_every_dtype_can_be_stored(dtype: DType) -> None:
    space = np.zeros(16, np.uint8)
    memory = HostMemory("data0", dtype, 16 // dtype.itemsize, False, address(space))
    memory.write(1, 1, ALONE)
    assert memory.read(1, ALONE) == 1 and memory.read(0, ALONE) == 0


@pytest.mark.parametrize("at", [-1, 2])
def test_an_access_out_of_bounds_is_an_error(at: int) -> None:
    _, memory = floats([1.0, 2.0])
    with pytest.raises(AccessError, match=f"element {at} of data0, which has 2"):
        memory.read(at, ALONE)
    with pytest.raises(AccessError, match=f"element {at} of data0"):
        memory.write(at, 1.0, ALONE)


def test_scratch_is_uninitialized_at_first() -> None:
    memory = ScratchMemory("buf0", dtypes.float, 2, False)
    memory.write(0, 1.0, ALONE)
    assert memory.read(0, ALONE) == 1.0
    with pytest.raises(AccessError, match="element 1 of buf0 is read before"):
        memory.read(1, ALONE)


@pytest.mark.parametrize(
    ("other", "is_ordered"),
    [
        (ThreadState(0, 0, 0), True),  # the same thread
        (ThreadState(0, 1, 1), True),  # another thread behind a barrier
        (ThreadState(0, 1, 0), False),
        (ThreadState(1, 0, 1), False),  # groups never wait for each other
    ],
)
def test_only_a_barrier_orders_threads(other: ThreadState, is_ordered: bool) -> None:
    _, memory = floats([1.0], has_threads=True)
    memory.write(0, 2.0, ALONE)
    if is_ordered:
        assert memory.read(0, other) == 2.0
        return
    with pytest.raises(AccessError, match="reads element 0 of data0, which thread 0 of group 0"):
        memory.read(0, other)


def test_a_write_and_an_unordered_read_are_a_race() -> None:
    _, memory = floats([1.0], has_threads=True)
    memory.read(0, ALONE)
    with pytest.raises(AccessError, match="thread 1 of group 0 writes element 0"):
        memory.write(0, 5.0, ThreadState(0, 1, 0))


def test_two_threads_may_store_the_same_but_not_different_values() -> None:
    _, memory = floats([1.0], has_threads=True)
    memory.write(0, 3.0, ALONE)
    memory.write(0, 3.0, ThreadState(0, 1, 0))
    with pytest.raises(AccessError, match="writes element 0"):
        memory.write(0, 4.0, ThreadState(0, 2, 0))
