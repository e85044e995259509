"""POISON=1: undefined memory is NaN, zeroed memory is zero."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from glassgrad import Tensor, TinyJit
from glassgrad.base.config import Context
from glassgrad.base.dtype import dtypes
from glassgrad.devices.registry import Device
from glassgrad.memory.allocator import HostAllocator
from glassgrad.memory.poison import PATTERN, poison
from glassgrad.memory.storage import Storage

SIZES = (1, 2, 64, 1000, (1 << 16) + 3, 3 << 20)


def contents(address: int, nbytes: int) -> bytes:
    return ctypes.string_at(address, nbytes)


def pattern(nbytes: int) -> bytes:
    return (PATTERN * (nbytes // 2 + 1))[:nbytes]


@pytest.mark.parametrize("nbytes", SIZES)
def test_exactly_the_given_bytes_are_filled(nbytes: int) -> None:
    raw = (ctypes.c_ubyte * (nbytes + 1))()
    poison(ctypes.addressof(raw), nbytes)
    assert bytes(raw) == pattern(nbytes) + b"\0"


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_the_pattern_is_a_nan(name: str) -> None:
    assert np.isnan(np.frombuffer(PATTERN * 4, name)).all()


@pytest.mark.parametrize("nbytes", SIZES)
def test_fresh_and_recycled_blocks_are_poisoned_unless_zeros_are_asked_for(nbytes: int) -> None:
    allocator = HostAllocator(pool_bytes=8 << 20)
    with Context(POISON=1):
        first = allocator.allocate(nbytes, zeroed=False)
        assert contents(first.address, nbytes) == pattern(nbytes)
        ctypes.memset(first.address, 7, nbytes)
        allocator.free(first)
        assert contents(first.address, nbytes) == pattern(nbytes)  # who still reads it notices
        again = allocator.allocate(nbytes, zeroed=True)
        assert again.address == first.address
        assert not any(contents(again.address, nbytes))


def test_without_the_setting_nothing_is_filled() -> None:
    allocator = HostAllocator(pool_bytes=1 << 20)
    with Context(POISON=0):
        block = allocator.allocate(640, zeroed=False)
    assert not any(contents(block.address, 640))


def test_a_storage_that_is_read_first_holds_zeros() -> None:
    with Context(POISON=1):
        assert not any(Storage("CPU", 1000, dtypes.float32).as_buffer())
        assert Tensor.zeros(7).contiguous().tolist() == [0.0] * 7
        assert Tensor.zeros(7).realize().tolist() == [0.0] * 7


def test_an_empty_tensor_is_poisoned() -> None:
    with Context(POISON=1):
        assert np.isnan(Tensor.empty(5).numpy()).all()


def test_scratch_memory_is_poisoned_before_every_run() -> None:
    with Context(POISON=1):
        x = Tensor(np.random.default_rng(0).standard_normal((64, 300), np.float32))
        x.softmax(1).realize()
        pool = Device["CPU"].pool
        pool._grow_scratch(max(pool.scratch_bytes, 4096))
        block = pool.arenas[0]
        ctypes.memset(block.address, 7, block.nbytes)
        (x + 1).realize()
        assert 7 not in contents(block.address, block.nbytes)


def test_replays_compute_the_same_in_poisoned_memory() -> None:
    with Context(POISON=1):
        step = TinyJit(lambda x: ((x @ x).relu().realize() @ x).sum(0).realize())
        x = Tensor(np.random.default_rng(0).standard_normal((33, 33), np.float32)).realize()
        want = np.maximum(x.numpy() @ x.numpy(), 0) @ x.numpy()
        for _ in range(5):
            np.testing.assert_allclose(step(x).numpy(), want.sum(0), rtol=1e-3, atol=1e-2)
