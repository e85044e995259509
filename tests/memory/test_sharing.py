"""Which storages overlap."""

from __future__ import annotations

import gc
from random import Random

import numpy as np
import pytest

from glassgrad.base.dtype import dtypes
from glassgrad.memory.sharing import SHARED_STORAGES, SharedStorages
from glassgrad.memory.storage import BufferSpec, Storage
from glassgrad.memory.view import View


def extent(start: int, size: int) -> Storage:
    return Storage("CPU", size, dtypes.uint8, BufferSpec(external_ptr=start))


@pytest.mark.parametrize("seed", range(20))
def test_storages_overlap_where_their_extents_do(seed: int) -> None:
    random, register = Random(seed), SharedStorages()
    storages = []
    for _ in range(30):
        storages.append(extent(random.randrange(1000, 1100), random.randrange(20)))
        register.add(storages[-1])
        one = random.choice(storages)
        mine = set(range(one.address, one.address + one.nbytes))
        wanted = {
            id(other)
            for other in storages
            if other is not one and mine & set(range(other.address, other.address + other.nbytes))
        }
        assert {id(other) for other in register.overlapping(one)} == wanted


def test_collected_storages_overlap_nothing() -> None:
    register = SharedStorages()
    one, other = extent(1000, 10), extent(1005, 10)
    for storage in (one, other):
        register.add(storage)
    assert register.overlapping(one) == [other]
    del other, storage
    gc.collect()
    assert register.overlapping(one) == []
    assert len(register.entries) == 1


def test_a_storage_is_registered_once_its_memory_is_shared() -> None:
    own = Storage("CPU", 8, dtypes.float32)
    assert SHARED_STORAGES.overlapping(own) == []  # and asking does not allocate
    assert not own.is_allocated()
    seen = View.from_host(np.frombuffer(own.as_buffer(), np.float32)[2:4]).storage
    assert SHARED_STORAGES.overlapping(own) == [seen]
    assert SHARED_STORAGES.overlapping(seen) == [own]


def test_parts_share_with_their_base_and_with_each_other() -> None:
    base = Storage("CPU", 8, dtypes.uint8)
    early = base.part(4, dtypes.uint8, 0)
    base.allocate()
    late = base.part(4, dtypes.uint8, 2)
    assert SHARED_STORAGES.overlapping(late) == []  # the early one has no memory yet
    assert early.address == base.address
    assert SHARED_STORAGES.overlapping(late) == [early]
    assert set(SHARED_STORAGES.overlapping(base)) == {early, late}
