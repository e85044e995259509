"""Producers register, consumers get; the hub checks and counts."""

from __future__ import annotations

import array
import ctypes
import gc
import mmap
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.oracle import oracle

from glassgrad.memory import (
    Flags,
    MemoryView,
    available,
    byte_array,
    export_count,
    get,
    register,
    unregister,
)


class Owner:
    """Has bytes, and says so only to the hub."""

    def __init__(self, size: int = 8) -> None:
        self.raw = bytearray(range(size))
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.raw))


class Child(Owner):
    pass


@pytest.fixture
def released() -> Iterator[list[MemoryView]]:
    """Owner is registered while the test runs; the list has one entry per release."""
    calls: list[MemoryView] = []

    def export(owner: Owner, flags: Flags) -> MemoryView:
        return byte_array(owner, owner.address, len(owner.raw), readonly=False)

    assert register(Owner, get=export, release=lambda view: calls.append(view.obj))
    yield calls
    unregister(Owner)


def test_a_registered_class_exports_until_it_is_unregistered(released: list[Any]) -> None:
    owner = Owner()
    assert available(owner)
    with get(owner) as view:
        assert view.obj is owner and view.data == owner.address
        assert [view[i] for i in range(8)] == list(range(8))
    assert released == [owner]
    assert unregister(Owner) and not unregister(Owner)
    assert not available(owner)
    with pytest.raises(TypeError, match="Owner does not export its memory"):
        get(owner)


def test_subclasses_inherit_and_the_first_registration_stays(released: list[Any]) -> None:
    assert get(Child(4)).shape == (4,)
    assert not register(Owner, get=lambda owner, flags: None)
    assert get(Owner()).shape == (8,)
    assert register(Child, get=lambda owner, flags: None)
    try:
        with pytest.raises(BufferError, match="Child refused"):
            get(Child())
    finally:
        unregister(Child)


def test_a_registration_beats_the_buffer_protocol() -> None:
    class Text(bytearray):
        pass

    text = Text(b"abc")
    assert get(text).format == "B"
    register(Text, get=lambda text, flags: MemoryView(text, 0, 0, format="d"))
    try:
        assert get(text).format == "d"
    finally:
        unregister(Text)


def test_exports_are_counted_and_their_owners_kept_alive(released: list[Any]) -> None:
    owner = Owner()
    before = sys.getrefcount(owner)
    first, second = get(owner), get(owner)
    assert export_count(owner) == 2
    first.release()
    assert export_count(owner) == 1
    del second
    assert export_count(owner) == 0
    released.clear()
    assert sys.getrefcount(owner) == before
    view = get(owner)
    del owner
    gc.collect()
    assert view[3] == 3


def test_unavailable_memory_is_refused() -> None:
    class Lazy:
        ready = False

    register(
        Lazy, get=lambda lazy, flags: byte_array(lazy, 0, 0), available=lambda lazy: lazy.ready
    )
    try:
        lazy = Lazy()
        assert not available(lazy)
        with pytest.raises(BufferError, match="does not export its memory now"):
            get(lazy)
        lazy.ready = True
        assert get(lazy).shape == (0,)
    finally:
        unregister(Lazy)


@pytest.mark.parametrize(
    ("layout", "why"),
    [
        ({"format": "k"}, "unknown type 'k'"),
        ({"shape": (3, 3)}, "needs 9 bytes, but there are 8"),
        ({"shape": (2, 2), "strides": (1,)}, "1 strides were given for 2 axes"),
        ({"shape": (2, 2), "sub_offsets": (0,)}, "1 sub-offsets"),
        ({"shape": (-1,)}, "are invalid"),
        ({"format": "i", "item_size": 0}, "are invalid"),
    ],
)
def test_inconsistent_views_are_rejected_and_released(layout: dict[str, Any], why: str) -> None:
    class Wrong(Owner):
        pass

    calls: list[Any] = []
    if layout.get("format") == "k":
        layout |= {"item_size": 1}

    def export(owner: Owner, flags: Flags) -> MemoryView:
        return MemoryView(owner, owner.address, 8, **layout)

    register(Wrong, get=export, release=calls.append)
    try:
        with pytest.raises(BufferError, match=why):
            get(Wrong())
        assert len(calls) == 1
    finally:
        unregister(Wrong)


ROWS = np.zeros((3, 4), np.int32)
F = Flags


@pytest.mark.parametrize(
    ("obj", "flags", "is_granted"),
    [
        (b"abc", F.SIMPLE, True),
        (b"abc", F.WRITABLE, False),
        (bytearray(3), F.WRITABLE, True),
        (ROWS, F.SIMPLE, True),
        (ROWS.T, F.SIMPLE, False),
        (ROWS.T, F.MULTI_DIMENSIONAL, False),
        (ROWS.T, F.STRIDES, True),
        (ROWS, F.ROW_MAJOR, True),
        (ROWS.T, F.ROW_MAJOR, False),
        (ROWS, F.COLUMN_MAJOR, False),
        (ROWS.T, F.COLUMN_MAJOR, True),
        (ROWS.T, F.ANY_CONTIGUOUS, True),
        (ROWS[:, ::2], F.ANY_CONTIGUOUS, False),
        (ROWS[:, ::2], F.FULL, True),
        (ROWS[:, ::2], F.FULL | F.WRITABLE, True),
    ],
)
def test_flags_are_the_layouts_that_the_caller_accepts(
    obj: Any, flags: Flags, is_granted: bool
) -> None:
    if is_granted:
        assert get(obj, flags).release()
        return
    with pytest.raises(BufferError):
        get(obj, flags)
    assert export_count(obj) == 0


def test_sub_offsets_require_the_indirect_flag() -> None:
    class Table(Owner):
        pass

    def export(owner: Owner, flags: Flags) -> MemoryView:
        return MemoryView(
            owner, owner.address, 8, shape=(1, 8), strides=(8, 1), sub_offsets=(0, -1)
        )

    register(Table, get=export)
    try:
        with pytest.raises(BufferError, match="INDIRECT"):
            get(Table(), F.STRIDES)
        assert get(Table(), F.INDIRECT).sub_offsets == (0, -1)
    finally:
        unregister(Table)


def test_the_numbers_of_the_flags_are_fixed() -> None:
    assert [flag.value for flag in (F.SIMPLE, F.WRITABLE, F.FORMAT, F.MULTI_DIMENSIONAL)] == [
        0, 1, 2, 4,
    ]  # fmt: skip
    assert [flag.value for flag in (F.STRIDES, F.ROW_MAJOR, F.COLUMN_MAJOR)] == [12, 28, 44]
    assert [flag.value for flag in (F.ANY_CONTIGUOUS, F.INDIRECT, F.FULL)] == [60, 76, 78]


# ---------------------------------------------------------------------- whom it knows


def producers() -> dict[str, tuple[Any, int]]:
    """Eight bytes in everything that this machine has, and where they are."""
    numbers = np.arange(8, dtype=np.uint8)
    ints = array.array("B", range(8))
    raw = bytearray(range(8))
    pages = mmap.mmap(-1, 8)
    fields = (ctypes.c_ubyte * 8)(*range(8))
    found = {
        "bytearray": (raw, ctypes.addressof(ctypes.c_char.from_buffer(raw))),
        "memoryview": (memoryview(raw), ctypes.addressof(ctypes.c_char.from_buffer(raw))),
        "array": (ints, ints.buffer_info()[0]),
        "mmap": (pages, ctypes.addressof(ctypes.c_char.from_buffer(pages))),
        "ctypes": (fields, ctypes.addressof(fields)),
        "numpy": (numbers, numbers.__array_interface__["data"][0]),
    }
    try:
        import torch
    except ImportError:
        return found
    tensor = torch.arange(8, dtype=torch.uint8)
    found["torch"] = (tensor, tensor.data_ptr())
    return found


def consumers() -> dict[str, Any]:
    """Everything that can look through a view."""
    found = {
        "memoryview": lambda view: view.memoryview(),
        "interface": lambda view: np.asarray(view),
        "dlpack": lambda view: np.from_dlpack(view),
        "ctypes": lambda view: (ctypes.c_ubyte * 8).from_buffer(view.memoryview()),
    }
    try:
        import torch
    except ImportError:
        return found
    return found | {"torch": torch.from_dlpack}


PRODUCERS = producers()
CONSUMERS = consumers()


@pytest.mark.parametrize("consumer", CONSUMERS)
@pytest.mark.parametrize("producer", PRODUCERS)
def test_every_pair_shares_one_memory(producer: str, consumer: str) -> None:
    obj, address = PRODUCERS[producer]
    with get(obj) as view:
        assert view.data == address
        seen = CONSUMERS[consumer](view)
        with get(seen) as again:
            assert again.data == address
        seen[5] = 77
        assert view[5] == 77
        assert obj[5] == 77
        view[5] = 5
        assert seen[5] == 5
        del seen


@pytest.mark.parametrize("producer", PRODUCERS)
def test_every_producer_is_a_column_of_pyarrow(producer: str) -> None:
    pa = oracle("pyarrow")
    obj, address = PRODUCERS[producer]
    with get(obj) as view:
        column = pa.array(view)
        assert column.buffers()[1].address == address
        view[5] = 77
        assert column[5].as_py() == 77
        with get(column) as again:
            assert again.data == address and again.readonly
        view[5] = 5
        del column


def test_bytes_are_shared_read_only() -> None:
    with get(b"abcdefgh") as view:
        assert view.readonly
        assert not np.asarray(view).flags.writeable
        seen = view.memoryview()
        assert seen.readonly and bytes(seen) == b"abcdefgh"
        del seen


@pytest.mark.parametrize("obj", [None, 5, [1, 2], "text", object()])
def test_an_object_without_memory_is_a_type_error(obj: Any) -> None:
    assert not available(obj)
    with pytest.raises(TypeError, match="does not export its memory"):
        get(obj)


def test_an_exporter_that_was_closed_refuses() -> None:
    closed = memoryview(bytearray(4))
    closed.release()
    with pytest.raises(BufferError, match="released memoryview"):
        get(closed)


def test_threads_that_get_and_release_lose_no_count() -> None:
    owner = bytearray(64)
    before = sys.getrefcount(owner)
    kept: list[MemoryView] = []

    def work() -> None:
        for number in range(500):
            view = get(owner)
            if number % 10 == 0:
                kept.append(view)
            elif number % 2:
                view.release()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert export_count(owner) == len(kept) == 200
    kept.clear()
    assert export_count(owner) == 0
    assert sys.getrefcount(owner) == before
