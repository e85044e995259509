"""Host memory is aligned, zero when fresh, and reused within a bound."""

import ctypes

import pytest

from glassgrad.base.config import Context
from glassgrad.base.errors import DeviceError, OutOfMemoryError
from glassgrad.memory.allocator import (
    ALIGNMENT,
    HostAllocator,
    allocator_for,
    host_bytes,
    register,
    size_class,
)

SIZES = (0, 1, 63, 64, 65, 1000, 4096, (1 << 20) - 1, 1 << 20, 3 << 20)


@pytest.mark.parametrize("nbytes", SIZES)
def test_fresh_blocks_are_aligned_and_zero(nbytes: int) -> None:
    block = HostAllocator(pool_bytes=0).allocate(nbytes, zeroed=True)
    assert block.address % ALIGNMENT == 0
    assert block.nbytes >= nbytes
    assert not any(ctypes.string_at(block.address, nbytes))


@pytest.mark.parametrize("nbytes", SIZES)
def test_a_size_class_wastes_at_most_an_eighth(nbytes: int) -> None:
    assert nbytes <= size_class(nbytes) <= max(ALIGNMENT, nbytes + ALIGNMENT, nbytes * 9 // 8)
    assert size_class(size_class(nbytes)) == size_class(nbytes)


@Context(POISON=0)
def test_a_freed_block_is_reused_and_cleared_only_when_asked() -> None:
    allocator = HostAllocator(pool_bytes=1 << 20)
    first = allocator.allocate(1000, zeroed=True)
    ctypes.memset(first.address, 7, 1000)
    allocator.free(first)
    again = allocator.allocate(1000, zeroed=False)
    assert again.address == first.address
    assert ctypes.string_at(again.address, 1000) == b"\7" * 1000
    allocator.free(again)
    cleared = allocator.allocate(990, zeroed=True)
    assert cleared.address == first.address
    assert ctypes.string_at(cleared.address, 990) == bytes(990)


def test_the_pool_holds_no_more_than_its_bound() -> None:
    allocator = HostAllocator(pool_bytes=5000)
    blocks = [allocator.allocate(2048, zeroed=True) for _ in range(4)]
    for block in blocks:
        allocator.free(block)
    assert allocator.pooled == 4096
    assert len(allocator.pool[2048]) == 2
    allocator.clear()
    assert allocator.pooled == 0 and not allocator.pool


def test_impossible_sizes_are_out_of_memory() -> None:
    with pytest.raises(OutOfMemoryError, match="cannot allocate"):
        HostAllocator(pool_bytes=0).allocate(1 << 60, zeroed=True)


def test_a_memoryview_of_memory_keeps_its_owner_alive() -> None:
    raw = bytearray(b"abcd")
    address = ctypes.addressof(ctypes.c_char.from_buffer(raw))
    window = host_bytes(address, 4, raw)
    window[0] = ord("x")
    assert raw == b"xbcd"
    del raw
    assert bytes(window) == b"xbcd"


def test_an_unknown_device_has_no_memory_until_it_is_registered() -> None:
    with pytest.raises(DeviceError, match=r"NOWHERE.*has no allocator"):
        allocator_for("NOWHERE:1")
    made = HostAllocator(pool_bytes=0)
    register("SOMEWHERE", lambda _: made)
    assert allocator_for("SOMEWHERE:1") is made


def test_the_devices_of_this_machine_share_its_memory() -> None:
    assert allocator_for("CPU") is allocator_for("CPU:1") is allocator_for("PYTHON")
