"""Buffer: views that are views, operations that are NumPy's, errors that say what was found."""

from __future__ import annotations

import array
import gc
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.errors import AxisError, DTypeError, ShapeError
from glassgrad.buffer import Buffer
from glassgrad.engine.cache import KERNELS
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


# ---------------------------------------------------------------------- making


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        ([[1, 2, 3], [4, 5, 6]], dtypes.int32, (2, 3)),
        ((1.5, 2), dtypes.float32, (2,)),
        ([True, False], dtypes.bool, (2,)),
        (7, dtypes.int32, ()),
        (2.5, dtypes.float32, ()),
        ([], dtypes.float32, (0,)),
        ([[], []], dtypes.float32, (2, 0)),
    ],
)
def test_the_dtype_is_that_of_the_data(data: Any, dtype: Any, shape: Any) -> None:
    buffer = Buffer(data)
    assert buffer.dtype is dtype and buffer.shape == shape
    assert buffer.to_python() == (list(data) if isinstance(data, tuple) else data)


@pytest.mark.parametrize("dtype", dtypes.all, ids=lambda dtype: dtype.name)
def test_every_dtype_can_be_asked_for(dtype: Any) -> None:
    assert Buffer([0, 1, 1], dtype).to_python() == [0, 1, 1]
    assert Buffer([0, 1], dtype.name).dtype is dtype


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Buffer([[1, 2], [3]]), ShapeError, "at depth 1 there are lengths 1, 2"),
        (lambda: Buffer([1, [2]]), ShapeError, "lists and single values are mixed"),
        (lambda: Buffer([1, "x"]), DTypeError, "holds str"),
        (lambda: Buffer([None]), DTypeError, "holds NoneType"),
        (lambda: Buffer([True, 2]), DTypeError, "mixes bool and int"),
        (lambda: Buffer([300], "int8"), DTypeError, "300 does not fit int8"),
        (lambda: Buffer([1.5], "int32"), DTypeError, "1.5 is no int32"),
        (lambda: Buffer([1], dtype=int), DTypeError, "is not a dtype"),
        (lambda: Buffer([1], dtype="nonsense"), DTypeError, "no dtype 'nonsense'"),
        (lambda: Buffer(object()), TypeError, "object does not share its memory"),
        (lambda: Buffer.zeros((2, -1)), ShapeError, "cannot be negative"),
        (lambda: Buffer.zeros((2, 1.5)), ShapeError, "whole number"),
        (lambda: Buffer.uniform((2,), dtype="int32"), DTypeError, "are floats, not int32"),
        (lambda: Buffer.arange(1, 2, 0), ShapeError, "step by 0"),
        (lambda: Buffer.concatenate([]), ShapeError, "nothing to concatenate"),
    ],
)
def test_bad_data_is_refused(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()


def test_creation() -> None:
    assert Buffer.ones((2, 2)).to_python() == [[1.0, 1.0], [1.0, 1.0]]
    assert Buffer.full((2,), 7, "uint8").to_python() == [7, 7]
    assert Buffer.full((), 2.5).to_python() == 2.5
    assert Buffer.empty((2, 0)).to_python() == [[], []]
    assert Buffer.arange(5).to_python() == [0, 1, 2, 3, 4]
    assert Buffer.arange(5, 0, -2).to_python() == [5, 3, 1]
    assert Buffer.arange(0.0, 1.0, 0.25).to_python() == [0.0, 0.25, 0.5, 0.75]
    assert Buffer.arange(3, 3).shape == (0,)
    parts = [Buffer([[1], [2]]), Buffer([[3, 4], [5, 6]])]
    assert Buffer.concatenate(parts, axis=-1).to_python() == [[1, 3, 4], [2, 5, 6]]


def test_random_numbers_have_their_distribution_and_follow_the_seed() -> None:
    Buffer.manual_seed(5)
    first, second = Buffer.uniform((4000,), -2.0, 2.0).numpy(), Buffer.normal((4000,), 1.0, 3.0)
    assert -2 <= first.min() < -1.9 and 1.9 < first.max() < 2
    assert abs(first.mean()) < 0.1
    assert abs(second.numpy().mean() - 1) < 0.2 and abs(second.numpy().std() - 3) < 0.15
    Buffer.manual_seed(5)
    assert np.array_equal(Buffer.uniform((4000,), -2.0, 2.0).numpy(), first)
    assert not np.array_equal(Buffer.uniform((4000,), -2.0, 2.0).numpy(), first)


# ---------------------------------------------------------------------- views


@st.composite
def keys(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, ...]:
    found: list[Any] = []
    for size in shape[: draw(st.integers(0, len(shape)))]:
        if size and draw(st.booleans()):
            found.append(draw(st.integers(-size, size - 1)))
        else:
            ends = st.one_of(st.none(), st.integers(-4, 4))
            step = draw(st.sampled_from([None, 1, 2, -1, -2]))
            found.append(slice(draw(ends), draw(ends), step))
    if draw(st.booleans()):
        found.insert(draw(st.integers(0, len(found))), Ellipsis)
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


def test_writes_through_a_view_are_seen_by_its_owner() -> None:
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
    with pytest.raises(ShapeError, match="share places"):
        windows[...] = Buffer.zeros((4, 3), "int32")
    windows[...] = 1  # one number everywhere is no question
    assert windows.data.tolist() == [1] * 6


# ---------------------------------------------------------------------- arithmetic


BINARY = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
}


@pytest.mark.parametrize("sign", BINARY)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_operators_are_those_of_numpy(sign: str, dtype: str) -> None:
    left, right = filled((2, 3), dtype), filled((3, 2), dtype).T + 1
    if dtype == "float32":
        right[0, 0] = np.nan
    one, two = Buffer.from_memory(left), Buffer.from_memory(right)
    operate = BINARY[sign]
    with np.errstate(all="ignore"):
        for got, wanted in (
            (operate(one, two), operate(left, right)),
            (operate(one, 2), operate(left, np.array(2, dtype))),
            (operate(3, one), operate(np.array(3, dtype), left)),
        ):
            if sign == "/":
                wanted = wanted.astype(np.float32)
            assert got.numpy().dtype == wanted.dtype
            np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-6)


def test_float32_is_ieee_and_int32_wraps() -> None:
    big = Buffer([2**31 - 1, -(2**31)])
    assert (big + 1).to_python() == [-(2**31), -(2**31) + 1]
    assert (big * 2).to_python() == [-2, 0]
    assert (Buffer([3, -2, 50000]) ** 3).to_python() == [27, -8, (50000**3 + 2**31) % 2**32 - 2**31]
    assert (Buffer([5]) ** 0).to_python() == [1]
    tiny = Buffer([1.0, 0.1]) + 2.0**-24
    assert tiny.numpy().tolist() == (np.float32([1.0, 0.1]) + np.float32(2.0**-24)).tolist()
    assert Buffer([1e38]).__mul__(10.0).to_python() == [float("inf")]
    assert Buffer([1.0, -0.0]).__truediv__(0.0).to_python()[0] == float("inf")


def test_functions() -> None:
    numbers = np.float32([0.5, 1.0, 4.0])
    buffer = Buffer.from_memory(numbers)
    np.testing.assert_allclose(buffer.log().numpy(), np.log(numbers), rtol=1e-6)
    np.testing.assert_allclose(buffer.exp().numpy(), np.exp(numbers), rtol=1e-6)
    np.testing.assert_allclose((buffer**1.5).numpy(), numbers**1.5, rtol=1e-6)
    np.testing.assert_allclose((2.0**buffer).numpy(), 2**numbers, rtol=1e-6)
    assert buffer.maximum(0.75).to_python() == [0.75, 1.0, 4.0]
    assert buffer.maximum(buffer[::-1]).to_python() == [4.0, 1.0, 4.0]
    assert (-buffer).to_python() == [-0.5, -1.0, -4.0]
    assert Buffer([1, 2]).float().dtype is dtypes.float32
    assert Buffer([[1, 2, 3], [4, 5, 6]]).tril(1).to_python() == [[1, 2, 0], [4, 5, 6]]


def test_dtypes_meet_as_everywhere() -> None:
    assert (Buffer([1]) + 0.5).dtype is dtypes.float32
    assert (Buffer([1], "int8") + Buffer([1], "uint8")).dtype is dtypes.int16
    assert (Buffer([1.5], "float16") * 2).dtype is dtypes.float16
    assert (Buffer([1, 2]) / 2).to_python() == [0.5, 1.0]


@pytest.mark.parametrize("shape", [(2, 3), (2, 0, 3), (4,), (2, 3, 2)])
def test_reductions_are_those_of_numpy(shape: tuple[int, ...]) -> None:
    numbers = filled(shape, "int32")
    buffer = Buffer.from_memory(numbers)
    for axes in (None, 0, -1, (0,), tuple(range(len(shape))), ()):
        for keepdims in (False, True):
            got = buffer.sum(axes=axes, keepdims=keepdims)
            wanted = numbers.sum(axis=axes, keepdims=keepdims, dtype=np.int32)
            assert got.shape == wanted.shape
            assert np.array_equal(got.numpy(), wanted)
            if numbers.size:
                top = buffer.max(axes=axes, keepdims=keepdims)
                assert np.array_equal(top.numpy(), numbers.max(axis=axes, keepdims=keepdims))


def test_sums_of_bools_count() -> None:
    assert (Buffer([1, 5, 7]) > 4).sum().to_python() == 2


@pytest.mark.parametrize(
    ("use", "error", "words"),
    [
        (lambda b: b + Buffer([[1.0], [2.0]]), ShapeError, r"right\.expand\(\(2, 3\)\)"),
        (lambda b: Buffer([[1.0, 2.0, 3.0]]) * b, ShapeError, r"left\.expand\(\(2, 3\)\)"),
        (lambda b: b + Buffer([1.0, 2.0]), ShapeError, "no expand makes them fit"),
        (lambda b: b + "x", TypeError, "unsupported operand"),
        (lambda b: b.maximum("x"), DTypeError, "a Buffer and a str"),
        (lambda b: Buffer([1]).log(), DTypeError, "logarithm of int32"),
        (lambda b: Buffer([True]) + Buffer([True]), DTypeError, "cannot add bool"),
        (lambda b: Buffer([1]) ** -1, DTypeError, "no power -1"),
        (lambda b: b[2], AxisError, "index 2 is outside axis 0 of size 2"),
        (lambda b: b[0, 0, 0], AxisError, "3 indices were given for 2 axes"),
        (lambda b: b["x"], AxisError, "a str is no index"),
        (lambda b: b[::0], AxisError, "cannot be 0"),
        (lambda b: b[..., ...], AxisError, "only one"),
        (lambda b: b.reshape((4,)), ShapeError, "6 elements do not fill"),
        (lambda b: b.expand((2, 4)), ShapeError, r"cannot expand \(2, 3\) to \(2, 4\)"),
        (lambda b: b.permute((0, 0)), AxisError, "no order of 2 axes"),
        (lambda b: b.flip((2,)), AxisError, "no axis 2"),
        (lambda b: b.sum(axes=(0, 0)), AxisError, "name one axis twice"),
        (lambda b: b.sum(axes=5), AxisError, "no axis 5"),
        (lambda b: b[:0].max(), ShapeError, "no largest of nothing"),
        (lambda b: b[0].tril(), ShapeError, "needs two axes"),
        (lambda b: b.as_strided((9,), (1,)), ShapeError, "outside a storage of 6"),
        (lambda b: b.as_strided((2, 2), (1,)), ShapeError, "1 strides"),
        (lambda b: b.__setitem__(0, Buffer([1.0])), ShapeError, "into a place of shape"),
        (lambda b: b.__setitem__(0, Buffer([1, 2, 3])), DTypeError, "write int32 into"),
        (lambda b: Buffer([1]).__setitem__(0, 1.5), DTypeError, "write 1.5 into"),
        (lambda b: bool(b), ShapeError, "exactly one element"),
        (lambda b: len(b[0, 0]), DTypeError, "no length"),
        (lambda b: Buffer.concatenate([b, b[0]]), ShapeError, "cannot concatenate"),
    ],
)
def test_mistakes_are_named(use: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        use(Buffer([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))


def test_dtypes_have_one_name_more() -> None:
    assert DType.float32 is dtypes.float32
    assert Buffer.zeros((2,), dtype=DType.bool).to_python() == [False, False]


def test_one_operation_is_compiled_once() -> None:
    first = Buffer([1.0] * 77) * 3.0
    count = len(KERNELS)
    for number in range(5):
        first = first * (1.5 + number)
    assert len(KERNELS) == count


# ---------------------------------------------------------------------- looking


def test_a_buffer_is_a_sequence_of_views() -> None:
    buffer = Buffer([[1, 2], [3, 4], [5, 6]])
    assert len(buffer) == 3
    for row in buffer:
        row[0] = 0
    assert buffer.to_python() == [[0, 2], [0, 4], [0, 6]]
    assert (int(buffer[1, 1]), float(buffer[2, 1]), bool(buffer[0, 0])) == (4, 6.0, False)
    assert hash(buffer) != hash(Buffer([1]))


def test_repr_leaves_out_what_is_too_much() -> None:
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
def test_memory_of_others_is_shared(owner: Any) -> None:
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


def test_others_share_the_memory_of_a_buffer() -> None:
    buffer = Buffer([[1.0, 2.0], [3.0, 4.0]]).permute((1, 0))
    ways = (np.asarray(buffer), np.from_dlpack(buffer), np.asarray(buffer.memoryview()))
    for number, seen in enumerate(ways):
        assert seen.tolist() == [[1, 3 + number], [2, 4]]
        seen[0, 1] += 1
    assert buffer[0, 1].to_python() == 6
    with get(buffer) as view:
        assert view.strides == (4, 8) and view[1, 0] == 2
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
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
