"""Arrow columns are imported and exported; without pyarrow, our own exports are imported."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
from typing import Any

import numpy as np
import pytest
from support.oracle import oracle

from glassgrad.memory import export_count, get
from glassgrad.memory.bridge_arrow import ArrowArray
from glassgrad.memory.capsules import EXPORTED, sweep

pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


class OnlyArrow:
    """Shows a view as an Arrow array and as nothing else."""

    def __init__(self, obj: Any) -> None:
        self.view = get(obj)

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self.view.__arrow_c_array__(requested_schema)


@pytest.mark.parametrize("kind", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"])
def test_a_column_round_trips(kind: str) -> None:
    array = np.arange(5).astype(kind)
    column = OnlyArrow(array)
    with get(column) as view:
        assert view.data == array.__array_interface__["data"][0]
        assert view.readonly
        assert [view[i] for i in range(5)] == array.tolist()
        with pytest.raises(BufferError, match="still in use"):
            column.view.release()
    assert column.view.release()


def test_only_rows_of_numbers_are_columns() -> None:
    for array in (np.zeros((2, 2)), np.zeros(4)[::2], np.zeros(2, "c8"), np.zeros(2, "S2")):
        with pytest.raises(BufferError):
            get(array).__arrow_c_array__()


def test_ten_thousand_columns_leak_nothing() -> None:
    array = np.arange(5.0)
    before = sys.getrefcount(array)
    for number in range(10_000):
        column = OnlyArrow(array)
        if number % 2:
            get(column).release()
        else:
            column.__arrow_c_array__()  # and nobody takes it
    del column
    gc.collect()
    sweep()
    assert not EXPORTED
    assert export_count(array) == 0
    assert sys.getrefcount(array) == before


class Consumer:
    """Takes a column as libraries in C do: moves the structure, and calls `release` of its own."""

    def __init__(self, capsules: Any) -> None:
        self.capsules = capsules
        source = pointer_of(capsules[1], b"arrow_array")
        self.array = ArrowArray.from_buffer_copy(ArrowArray.from_address(source))
        ArrowArray.from_address(source).release = None

    def release(self) -> None:
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.array.release)(ctypes.addressof(self.array))


def test_a_released_column_is_marked_and_found() -> None:
    array = np.arange(5.0)
    view = get(array)
    consumer = Consumer(view.__arrow_c_array__())
    del consumer.capsules
    with pytest.raises(BufferError, match="still in use"):
        view.release()
    consumer.release()
    assert not consumer.array.release
    assert view.release()


def test_columns_may_be_released_by_other_threads() -> None:
    array = np.arange(5.0)
    view = get(array)
    consumers = [Consumer(view.__arrow_c_array__()) for _ in range(100)]

    def work(number: int) -> None:
        for consumer in consumers[number::4]:
            consumer.release()
            sweep()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert view.release()


def test_a_pending_exception_survives_the_release_of_a_column() -> None:
    pa = oracle("pyarrow")
    view = get(np.arange(4.0))

    def fail() -> None:
        [pa.array(view), 1 / 0]

    with pytest.raises(ZeroDivisionError):
        fail()
    assert view.release()


def test_pyarrow_shares_memory_both_ways() -> None:
    pa = oracle("pyarrow")
    array = np.arange(6, dtype=np.int32)
    view = get(array)
    column = pa.array(view)
    assert column.type == pa.int32() and column.to_pylist() == [0, 1, 2, 3, 4, 5]
    assert column.buffers()[1].address == array.ctypes.data
    with pytest.raises(BufferError, match="still in use"):
        view.release()
    del column
    assert view.release()
    part = pa.array([1.5, 2.5, 3.5, 4.5])[1:3]
    with get(part) as seen:
        assert [seen[i] for i in range(2)] == [2.5, 3.5]
        assert seen.data == part.buffers()[1].address + 8
    for refused in (pa.array([1, None]), pa.array(["a"]), pa.array([True])):
        with pytest.raises(BufferError):
            get(refused)
