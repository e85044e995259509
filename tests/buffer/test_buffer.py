"""Buffer: views share memory, operations match NumPy, errors say what was found."""

from __future__ import annotations

import array
import gc
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.oracle import oracle

from glassgrad.base.dtype import dtypes
from glassgrad.base.errors import DTypeError, ShapeError
from glassgrad.buffer import Buffer
from glassgrad.memory import export_count, get

SHAPES = st.lists(st.integers(0, 3), min_size=1, max_size=3).map(tuple)


def filled(shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
    return (np.arange(np.prod(shape, dtype=int)).reshape(shape) - 3).astype(dtype)


def test_the_example_of_the_first_design_works() -> None:
    buffer = Buffer.zeros((3, 3), dtype=dtypes.float32)
    buffer = buffer + 5.0
    buffer[1, 1] = 10.0
    assert buffer.reshape((9,)).to_python() == [5.0] * 4 + [10.0] + [5.0] * 4
    assert buffer.sum(axes=(0,)).to_python() == [15.0, 20.0, 15.0]
    assert buffer.to_python() == [[5.0, 5.0, 5.0], [5.0, 10.0, 5.0], [5.0, 5.0, 5.0]]
    assert (buffer.shape, buffer.stride, buffer.offset, buffer.numel) == ((3, 3), (3, 1), 0, 9)


# ---------------------------------------------------------------------- views


@st.composite
def keys(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """An index that is in range; an Ellipsis stands for the axes without an index."""
    found: list[Any] = []
    first, last = sorted(draw(st.lists(st.integers(0, len(shape)), min_size=2, max_size=2)))
    has_ellipsis = draw(st.booleans())
    for axis, size in enumerate(shape):
        if has_ellipsis and axis == first:
            found.append(Ellipsis)
        if first <= axis < last:
            continue
        if axis >= last and not has_ellipsis:
            break
        if size and draw(st.booleans()):
            found.append(draw(st.integers(-size, size - 1)))
        else:
            ends = st.one_of(st.none(), st.integers(-4, 4))
            step = draw(st.sampled_from([None, 1, 2, -1, -2]))
            found.append(slice(draw(ends), draw(ends), step))
    return tuple(found)


@given(SHAPES, st.data())
def test_indexing_is_that_of_numpy_and_shares_memory(
    shape: tuple[int, ...], data: st.DataObject
) -> None:
    numbers = filled(shape)
    buffer = Buffer.from_memory(numbers)
    key = data.draw(keys(shape))
    part, wanted = buffer[key], numbers[key]
    assert part.shape == wanted.shape
    assert np.array_equal(part.numpy(), wanted)
    assert part.is_contiguous() == np.asarray(wanted).flags.c_contiguous
    if part.numel:
        assert part.storage is buffer.storage
        assert np.shares_memory(part.numpy(), numbers)


@settings(max_examples=60)
@given(SHAPES, st.data())
def test_writing_at_an_index_is_that_of_numpy(shape: tuple[int, ...], data: st.DataObject) -> None:
    numbers = filled(shape)
    buffer = Buffer.from_memory(numbers.copy())
    key = data.draw(keys(shape))
    if data.draw(st.booleans()):
        value: Any = 42.0
        buffer[key] = value
    else:
        value = filled(numbers[key].shape) * 10 + 0.5
        buffer[key] = Buffer.from_memory(np.asarray(value))
    numbers[key] = value
    assert np.array_equal(buffer.numpy(), numbers)


@given(SHAPES, st.data())
def test_movement_is_that_of_numpy_and_shares_memory(
    shape: tuple[int, ...], data: st.DataObject
) -> None:
    numbers = filled(shape)
    buffer = Buffer.from_memory(numbers)
    order = data.draw(st.permutations(range(len(shape))))
    axes = tuple(data.draw(st.sets(st.integers(0, len(shape) - 1))))
    moved, wanted = buffer.permute(order).flip(axes), np.flip(numbers.transpose(order), axes)
    assert np.array_equal(moved.numpy(), wanted)
    if moved.numel:
        assert np.shares_memory(moved.numpy(), numbers)
    wide = (2, *wanted.shape)
    assert np.array_equal(moved.expand(wide).numpy(), np.broadcast_to(wanted, wide))


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple), st.data())
def test_reshape_is_a_view_wherever_numpy_has_one(
    shape: tuple[int, ...], data: st.DataObject
) -> None:
    base = filled((*shape, 2))[..., 0] if data.draw(st.booleans()) else filled(shape)
    numbers = base.transpose(data.draw(st.permutations(range(len(shape)))))
    count = numbers.size
    divisors = [n for n in range(1, count + 1) if count % n == 0]
    first = data.draw(st.sampled_from(divisors))
    wanted = data.draw(st.sampled_from([(count,), (first, count // first), (1, first, -1), ()]))
    if wanted == () and count != 1:
        wanted = (count,)
    result = Buffer.from_memory(numbers).reshape(wanted)
    assert np.array_equal(result.numpy(), numbers.reshape(wanted))
    shares = np.shares_memory(numbers.reshape(wanted), numbers)
    assert np.shares_memory(result.numpy(), numbers) == shares


def test_writes_to_a_view_reach_its_owner() -> None:
    buffer = Buffer.zeros((2, 3), "int32")
    buffer.permute((1, 0))[2][1] = 5
    buffer.reshape((3, 2))[0] = [7, 8]
    buffer.flip((0,))[0, 1] = 9
    assert buffer.to_python() == [[7, 8, 0], [0, 9, 5]]
    column = buffer[:, 1:2].expand((2, 3))
    buffer[0, 1] = -1
    assert column.to_python() == [[-1, -1, -1], [9, 9, 9]]


def test_a_write_that_overlaps_its_source_reads_first() -> None:
    for step in (1, -1):
        numbers = np.arange(1000, dtype=np.float32)
        buffer = Buffer.from_memory(numbers.copy())
        if step == 1:
            buffer[1:] = buffer[:-1]
            numbers[1:] = numbers[:-1].copy()
        else:
            buffer[...] = buffer[::-1]
            numbers[...] = numbers[::-1].copy()
        assert np.array_equal(buffer.numpy(), numbers)
    shared = np.arange(8, dtype=np.int32)
    one, two = Buffer.from_memory(shared), Buffer.from_memory(shared)
    one[2:] = two[:6]
    assert shared.tolist() == [0, 1, 0, 1, 2, 3, 4, 5]


def test_windows_on_one_memory_may_overlap() -> None:
    windows = Buffer.arange(6).as_strided((4, 3), (1, 1))
    assert windows.to_python() == [[0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5]]
    assert windows.sum(axes=1).to_python() == [3, 6, 9, 12]
    with pytest.raises(ShapeError, match="share memory"):
        windows[...] = Buffer.zeros((4, 3), "int32")
    windows[...] = 1  # one number everywhere is no question
    assert windows.data.tolist() == [1] * 6


# ---------------------------------------------------------------------- looking


def test_a_buffer_is_a_sequence_of_views() -> None:
    buffer = Buffer([[1, 2], [3, 4], [5, 6]])
    assert len(buffer) == 3
    for row in buffer:
        row[0] = 0
    assert buffer.to_python() == [[0, 2], [0, 4], [0, 6]]
    assert (int(buffer[1, 1]), float(buffer[2, 1]), bool(buffer[0, 0])) == (4, 6.0, False)
    assert hash(buffer) != hash(Buffer([1]))


def test_repr_of_a_large_buffer_is_shortened() -> None:
    assert repr(Buffer([1.5, 2.0])) == "Buffer([1.5, 2], shape=(2,), dtype=float32)"
    text = repr(Buffer.zeros((1000, 1000)))
    assert text.startswith("Buffer([[0, 0, 0, …, 0, 0, 0], ") and len(text) < 400
    assert repr(Buffer.empty((0,))) == "Buffer([], shape=(0,), dtype=float32)"


def test_data_is_the_flat_storage() -> None:
    part = Buffer([[1, 2], [3, 4]])[1]
    assert part.data.tolist() == [1, 2, 3, 4] and part.offset == 2
    part.data[3] = 9
    assert part.to_python() == [3, 9]


@pytest.mark.parametrize(
    "owner", [bytearray(8), array.array("i", [1, 2]), np.zeros((2, 2), np.float64)[:, ::-1]]
)
def test_external_memory_is_shared(owner: Any) -> None:
    before = sys.getrefcount(owner)
    buffer = Buffer.from_memory(owner)
    assert export_count(owner) == 1
    buffer[...] = 1
    assert np.asarray(owner).reshape(-1)[0] == 1
    copied = Buffer(owner)
    copied[...] = 2
    assert np.asarray(owner).reshape(-1)[0] == 1
    del buffer, copied
    gc.collect()
    assert export_count(owner) == 0
    assert sys.getrefcount(owner) == before


def test_exports_share_the_memory_of_a_buffer() -> None:
    buffer = Buffer([[1.0, 2.0], [3.0, 4.0]]).permute((1, 0))
    ways = (np.asarray(buffer), np.from_dlpack(buffer), np.asarray(buffer.memoryview()))
    for number, seen in enumerate(ways):
        assert seen.tolist() == [[1, 3 + number], [2, 4]]
        seen[0, 1] += 1
    assert buffer[0, 1].to_python() == 6
    with get(buffer) as view:
        assert view.strides == (4, 8) and view[1, 0] == 2
    torch = oracle("torch")
    assert torch.from_dlpack(buffer).stride() == (1, 2)


def test_read_only_memory_is_not_written() -> None:
    buffer = Buffer.from_memory(b"abc")
    assert (buffer + 1).to_python() == [98, 99, 100]
    with pytest.raises(DTypeError, match="read-only"):
        buffer[0] = 1


def test_empty_buffers_work() -> None:
    empty = Buffer.zeros((0, 3))
    assert (empty + 1).shape == (0, 3)
    assert (empty < empty).dtype is dtypes.bool
    assert empty.sum(axes=0).to_python() == [0.0, 0.0, 0.0]
    assert empty.reshape((3, 0)).to_python() == [[], [], []]
    empty[...] = 5.0
    assert list(empty) == []
    assert Buffer.concatenate([empty, Buffer([[1.0, 2.0, 3.0]])]).shape == (1, 3)
