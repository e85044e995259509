"""A Storage owns a block: allocated lazily, counted exactly, freed with its last reference."""

import gc
import threading

import pytest

from glassgrad.base.config import Context
from glassgrad.base.counters import GlobalCounters
from glassgrad.base.dtype import dtypes
from glassgrad.base.errors import DeviceError, FormatError, OutOfMemoryError
from glassgrad.base.events import BufferAllocated, Event, listen
from glassgrad.memory.storage import BufferSpec, Storage


def test_nothing_is_allocated_until_it_is_needed() -> None:
    storage = Storage("CPU", 10, dtypes.float32)
    assert not storage.is_allocated()
    assert storage.nbytes == 40
    assert storage.address % 64 == 0
    assert storage.is_allocated()


def test_allocating_twice_is_an_error() -> None:
    storage = Storage("CPU", 1, dtypes.int8).allocate()
    with pytest.raises(DeviceError, match="already allocated"):
        storage.allocate()


def test_bytes_round_trip() -> None:
    storage = Storage("CPU", 4, dtypes.uint8).copyin(memoryview(b"wxyz"))
    out = bytearray(4)
    storage.copyout(memoryview(out))
    assert out == b"wxyz" == bytes(storage.as_buffer())


def test_a_wrong_number_of_bytes_is_refused() -> None:
    storage = Storage("CPU", 4, dtypes.uint8)
    with pytest.raises(FormatError, match="3 bytes given for a storage of 4 bytes"):
        storage.copyin(memoryview(b"abc"))
    with pytest.raises(FormatError, match="5 bytes given"):
        storage.copyout(memoryview(bytearray(5)))


def test_sizes_are_not_negative_and_dtypes_may_be_named() -> None:
    with pytest.raises(FormatError, match="cannot have -1 elements"):
        Storage("CPU", -1, dtypes.int8)
    assert Storage("CPU", 2, "float64").nbytes == 16


def test_a_fresh_storage_reads_as_zeros_even_when_its_block_was_used_before() -> None:
    for _ in range(3):
        storage = Storage("CPU", 5000, dtypes.uint8)
        assert bytes(storage.as_buffer()) == bytes(5000)
        storage.copyin(memoryview(b"\xff" * 5000))
        del storage


def test_memory_in_use_is_counted_exactly() -> None:
    gc.collect()
    before = GlobalCounters.mem_used
    storage = Storage("CPU", 100, dtypes.float64)
    assert GlobalCounters.mem_used == before
    storage.allocate()
    part = storage.part(10, dtypes.float64, 80)
    assert part.address == storage.address + 80
    assert GlobalCounters.mem_used == before + 800
    window = part.as_buffer()
    del storage, part
    assert GlobalCounters.mem_used == before + 800, "the memoryview still needs it"
    del window
    assert GlobalCounters.mem_used == before


def test_a_part_shares_its_base() -> None:
    storage = Storage("CPU", 8, dtypes.uint8)
    early = storage.part(2, dtypes.uint8, 2)
    storage.copyin(memoryview(bytes(range(8))))
    assert bytes(early.as_buffer()) == b"\2\3"
    assert bytes(early.part(1, dtypes.uint8, 1).as_buffer()) == b"\3"
    with pytest.raises(FormatError, match="outside a storage of 8 bytes"):
        storage.part(2, dtypes.int32, 4)


def test_an_external_pointer_is_neither_allocated_nor_counted() -> None:
    owner = Storage("CPU", 4, dtypes.uint8).copyin(memoryview(b"abcd"))
    before = GlobalCounters.mem_used
    seen = Storage("CPU", 4, dtypes.uint8, BufferSpec(external_ptr=owner.address), owner)
    assert seen.is_allocated()
    del owner
    assert bytes(seen.as_buffer()) == b"abcd"
    assert GlobalCounters.mem_used == before


def test_read_only_memory_is_not_written() -> None:
    storage = Storage("CPU", 1, dtypes.uint8, readonly=True)
    with pytest.raises(FormatError, match="read-only"):
        storage.copyin(memoryview(b"x"))
    assert storage.as_buffer().readonly


def test_the_memory_limit_is_enforced() -> None:
    used = GlobalCounters.mem_used_per_device["CPU"]
    with Context(MEM_LIMIT=used + 100):
        kept = Storage("CPU", 100, dtypes.uint8).allocate()
        with pytest.raises(OutOfMemoryError, match="the limit is"):
            Storage("CPU", 1, dtypes.uint8).allocate()
    assert kept.is_allocated()


def test_allocations_are_announced() -> None:
    seen: list[Event] = []
    with listen(seen.append):
        Storage("CPU", 3, dtypes.int16).allocate()
    assert seen == [BufferAllocated("CPU", 6)]


def test_threads_that_need_a_storage_at_once_get_the_same_block() -> None:
    for _ in range(50):
        storage = Storage("CPU", 16, dtypes.uint8)
        found: list[int] = []
        threads = [
            threading.Thread(target=lambda s, f: f.append(s.address), args=(storage, found))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 4 and len(set(found)) == 1
