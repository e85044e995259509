"""copy, deepcopy and pickle of a Buffer."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from glassgrad.buffer import Buffer
from glassgrad.memory.storage import Storage
from glassgrad.memory.view import View

WAYS = [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
Way = Callable[[Buffer], Buffer]
every_way = pytest.mark.parametrize("way", WAYS, ids=["copy", "deepcopy", "pickle"])


@every_way
def test_a_write_to_one_does_not_reach_the_other(way: Way) -> None:
    x = Buffer([1.0, 2.0])
    y = way(x)
    y[0] = 9.0
    assert (x.to_python(), y.to_python()) == ([1, 2], [9, 2])


@every_way
@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "float16", "bfloat16", "float64"])
def test_copies_of_parts_of_memory_are_equal(way: Way, dtype: str) -> None:
    x = Buffer(Buffer([[1, 0, 3], [4, 5, 6]]), dtype=dtype)[:, ::2]
    y = way(x)
    assert (y.shape, y.dtype, y.to_python()) == (x.shape, x.dtype, x.to_python())


@every_way
def test_copies_do_not_share_external_memory(way: Way) -> None:
    theirs = np.ones(3, np.float32)
    y = way(Buffer.from_memory(theirs))
    y[:] = 2.0
    assert theirs.tolist() == [1, 1, 1]


def test_views_of_one_memory_are_copied_as_views_of_one_memory() -> None:
    whole = Buffer([1.0, 2.0, 3.0])
    both = copy.deepcopy([whole, whole[1:]])
    both[1][0] = 7.0
    assert both[0].to_python() == [1, 7, 3] and whole.to_python() == [1, 2, 3]


def test_elements_of_a_file_come_back_on_the_cpu(tmp_path: Path) -> None:
    path = tmp_path / "elements"
    path.write_bytes(bytes([1, 2, 3, 4]))
    again = pickle.loads(pickle.dumps(Storage(f"DISK:{path}", 4, "uint8")))
    assert again.device == "CPU" and bytes(again.as_buffer()) == bytes([1, 2, 3, 4])


def test_copies_outlive_their_views_and_storages() -> None:
    view = View.from_host(bytearray(b"abcd"))
    kept = copy.deepcopy(view)
    del view
    assert kept.memoryview().tobytes() == b"abcd"
