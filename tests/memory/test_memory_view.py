"""A MemoryView describes memory, decodes items, and is released exactly once."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassgrad.base.errors import AxisError, FormatError
from glassgrad.memory import MemoryView, get

ATTRIBUTES = (
    "obj", "data", "byte_size", "readonly", "format", "item_size", "item_desc", "ndim", "shape",
    "strides", "sub_offsets", "private_data", "device", "dtype",
)  # fmt: skip


def over(raw: bytearray, **layout: object) -> MemoryView:
    address = ctypes.addressof(ctypes.c_char.from_buffer(raw))
    return MemoryView(raw, address, len(raw), readonly=False, **layout)  # type: ignore[arg-type]


@given(st.lists(st.integers(1, 3), max_size=4).map(tuple), st.data())
def test_items_of_any_strided_array_are_those_of_numpy(
    shape: tuple[int, ...], data: st.DataObject
) -> None:
    kind = data.draw(st.sampled_from(["<i2", ">u4", "<f8", "<c8", "?", "S3"]))
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(kind)
    array = array.transpose(data.draw(st.permutations(range(len(shape)))))
    steps = [data.draw(st.sampled_from([1, -1, 2])) for _ in shape]
    array = array[(*(slice(None, None, step) for step in steps), ...)]
    with get(array) as view:
        wanted = memoryview(array)
        assert (view.shape, view.strides, view.ndim) == (array.shape, wanted.strides, array.ndim)
        assert view.item_size == array.itemsize
        assert view.is_row_major_contiguous() == array.flags.c_contiguous
        assert view.is_column_major_contiguous() == array.flags.f_contiguous
        assert view.is_contiguous() == array.flags.forc
        for index in np.ndindex(array.shape):
            item = view[index]
            assert (item.rstrip(b"\0") if kind == "S3" else item) == array[index]
            back = tuple(i - n for i, n in zip(index, array.shape))
            assert view.item_pointer(index) == view.item_pointer(back)


def test_items_can_be_written() -> None:
    array = np.zeros((2, 3), [("a", "<i2"), ("b", ">f8")])
    with get(array) as view:
        view[1, -1] = (7, 2.5)
        with pytest.raises(FormatError, match="does not fit"):
            view[0, 0] = (1, "x")
    assert array[1, 2].item() == (7, 2.5)
    assert array[0, 0].item() == (0, 0.0)


def test_read_only_memory_is_not_written() -> None:
    with get(b"abc") as view, pytest.raises(BufferError, match="read-only"):
        view[0] = 1


@pytest.mark.parametrize("index", [3, -4, (0, 0), (), "x", 1.0])
def test_indices_are_checked(index: object) -> None:
    with get(b"abc") as view, pytest.raises(AxisError):
        view[index]


def test_sub_offsets_are_followed() -> None:
    rows = [ctypes.create_string_buffer(b"xx" + text, 6) for text in (b"abcd", b"efgh")]
    table = (ctypes.c_void_p * 2)(*[ctypes.addressof(row) for row in rows])
    view = MemoryView(
        (rows, table),
        ctypes.addressof(table),
        8,
        readonly=False,
        shape=(2, 4),
        strides=(ctypes.sizeof(ctypes.c_void_p), 1),
        sub_offsets=(2, -1),
    )
    assert bytes(view[1, i] for i in range(4)) == b"efgh"
    assert not view.is_contiguous()
    view[0, 3] = ord("!")
    assert rows[0].raw == b"xxabc!"
    assert view.memoryview().tobytes() == b"abc!efgh"


def test_missing_fields_have_defaults() -> None:
    raw = bytearray(12)
    plain = over(raw)
    assert (plain.shape, plain.strides, plain.item_size, plain.format) == ((12,), (1,), 1, None)
    words = over(raw, format="<i", shape=(3, 1))
    assert (words.strides, words.item_size, words.sub_offsets) == ((4, 4), 4, None)
    assert over(raw, format="i", shape=()).is_contiguous()
    assert over(raw, sub_offsets=(-1,)).sub_offsets is None


def test_items_of_an_unexplained_size_have_only_addresses() -> None:
    class Pair(ctypes.Structure):
        _fields_ = (("x", ctypes.c_int), ("y", ctypes.c_double))

    pairs = (Pair * 2)((1, 2.0), (3, 4.0))
    with get(pairs) as view:
        assert view.item_size == 16
        assert view.item_pointer(1) == ctypes.addressof(pairs) + 16
        if memoryview(pairs).format == "T{<i:x:<d:y:}":  # what ctypes says before 3.12
            with pytest.raises(FormatError, match="describes 12 bytes, but items have 16"):
                view[1]


def test_the_sizes_of_ctypes_longs_are_native() -> None:
    for kind in (ctypes.c_long, ctypes.c_ulong, ctypes.c_longlong, ctypes.c_short):
        numbers = (kind * 3)(1, 2, 3)
        with get(numbers) as view:
            assert [view[i] for i in range(3)] == [1, 2, 3]
            assert view.memoryview().tolist() == [1, 2, 3]


def test_the_tail_padding_of_a_record_may_be_missing() -> None:
    view = over(bytearray(b"\1\0\2" * 2), format="T{h:a:b:b:}", item_size=3)
    assert view[1] == (1, 2)


# ---------------------------------------------------------------------- giving back


def test_a_released_view_has_no_attributes() -> None:
    view = get(bytearray(b"abc"))
    assert view.release() is True
    assert view.released
    assert view.release() is False
    for name in ATTRIBUTES:
        with pytest.raises(ValueError, match="released"):
            getattr(view, name)
    for use in (
        lambda: view[0],
        lambda: view.item_pointer(0),
        view.memoryview,
        view.is_contiguous,
        view.__dlpack__,
        view.__enter__,
        lambda: view.__array_interface__,
    ):
        with pytest.raises(ValueError, match="released"):
            use()
    assert repr(view) == "<MemoryView, released>"


def race(view: MemoryView, workers: int = 4) -> list[bool]:
    """What release() says to threads that call it at once."""
    barrier = threading.Barrier(workers)
    results: list[bool] = []

    def work() -> None:
        barrier.wait()
        results.append(view.release())

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_only_one_of_many_threads_releases() -> None:
    for _ in range(50):
        calls: list[object] = []
        view = MemoryView(None, 0, 0, release=calls.append)
        assert sorted(race(view)) == [False, False, False, True]
        assert len(calls) == 1


def test_a_view_that_is_dropped_is_released() -> None:
    calls: list[object] = []
    view = MemoryView(None, 0, 0, release=lambda view: calls.append(view.byte_size))
    del view
    assert calls == [0]


def test_a_cycle_through_its_owner_is_collected() -> None:
    class Owner:
        pass

    gc.collect()
    calls: list[int] = []
    owner = Owner()
    owner.view = MemoryView(owner, 0, 0, release=lambda view: calls.append(1))  # type: ignore
    del owner
    gc.collect()
    assert calls == [1]


def test_a_producer_may_refuse_a_release() -> None:
    answers = [False, True]
    view = over(bytearray(b"abc"), release=lambda view: answers.pop(0))
    assert view.release() is False
    assert view[0] == ord("a")
    assert view.release() is True
    assert not answers


def test_a_release_that_fails_can_be_tried_again() -> None:
    outcomes = [RuntimeError("not now"), None]

    def release(view: MemoryView) -> None:
        outcome = outcomes.pop(0)
        if outcome is not None:
            raise outcome

    view = over(bytearray(b"abc"), release=release)
    with pytest.raises(RuntimeError, match="not now"):
        view.release()
    assert view.shape == (3,)
    assert view.release() is True


# ---------------------------------------------------------------------- to Python's memoryview


@given(st.lists(st.integers(0, 3), max_size=4).map(tuple), st.data())
def test_memoryview_and_numpy_agree(shape: tuple[int, ...], data: st.DataObject) -> None:
    array = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    array = array.transpose(data.draw(st.permutations(range(len(shape)))))
    steps = [data.draw(st.sampled_from([1, -1, 2])) for _ in shape]
    array = array[(*(slice(None, None, step) for step in steps), ...)]
    with get(array) as view:
        seen = view.memoryview()
        wanted = memoryview(array)
        assert (seen.shape, seen.format, seen.readonly) == (wanted.shape, "f", False)
        assert (seen.nbytes, seen.itemsize) == (wanted.nbytes, 4)
        assert seen.c_contiguous == wanted.c_contiguous
        assert seen.f_contiguous == wanted.f_contiguous
        assert seen.tolist() == array.tolist()
        assert np.array_equal(np.asarray(seen), array)
        del seen


def test_a_view_with_exports_is_not_released() -> None:
    raw = bytearray(b"abcdef")
    view = get(raw)
    seen = view.memoryview()
    part = seen[2:4]
    del seen
    with pytest.raises(BufferError, match="1 export of this view"):
        view.release()
    assert bytes(part) == b"cd"
    del part
    assert view.release()
    raw.append(1)  # nothing is exported any more


def test_an_export_keeps_view_and_owner_alive() -> None:
    part = get(np.arange(5, dtype=np.int16)).memoryview()[1:]
    gc.collect()
    assert part.tolist() == [1, 2, 3, 4]


def test_read_only_stays_read_only() -> None:
    seen = get(b"abc").memoryview()
    assert seen.readonly
    with pytest.raises(TypeError):
        seen[0] = 1


def test_ten_thousand_exports_leak_nothing() -> None:
    raw = bytearray(b"abc")
    before = sys.getrefcount(raw)
    for _ in range(10_000):
        with get(raw) as view:
            view.memoryview()
    assert sys.getrefcount(raw) == before


def test_the_buffer_method_of_newer_pythons_checks_its_flags() -> None:
    with pytest.raises(BufferError, match="read-only"):
        get(b"abc").__buffer__(1)
    assert bytes(get(b"abc").__buffer__(0)) == b"abc"
    if sys.version_info >= (3, 12):
        assert bytes(memoryview(get(b"abc"))) == b"abc"


def test_memory_of_another_device_is_described_but_not_touched() -> None:
    view = MemoryView(None, 4096, 16, format="f", device="CUDA:1")
    assert view.item_pointer(2) == 4104
    for use in (lambda: view[0], view.memoryview, lambda: view.__array_interface__):
        with pytest.raises(BufferError, match="memory of device CUDA:1"):
            use()
    assert view.__dlpack_device__() == (2, 1)
