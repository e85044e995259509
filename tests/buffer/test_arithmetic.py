"""Operators, functions and reductions against NumPy, and their errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.errors import AxisError, DTypeError, ShapeError
from glassgrad.buffer import Buffer
from glassgrad.engine.cache.graph_keys import KERNELS


def filled(shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
    return (np.arange(np.prod(shape, dtype=int)).reshape(shape) - 3).astype(dtype)


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


def test_dtypes_promote_as_those_of_tensors() -> None:
    assert (Buffer([1]) + 0.5).dtype is dtypes.float32
    assert (Buffer([1], "int8") + Buffer([1], "uint8")).dtype is dtypes.int16
    assert (Buffer([1.5], "float16") * 2).dtype is dtypes.float16
    assert (Buffer([1, 2]) / 2).to_python() == [0.5, 1.0]


def test_numpy_takes_part_on_either_side() -> None:
    buffer, array = Buffer([1.0, 2.0]), np.float32([10.0, 20.0])
    for result in (
        buffer + array,
        array + buffer,
        buffer * np.float32(11),
        np.float32(11) * buffer,
    ):
        assert isinstance(result, Buffer) and result.to_python() == [11, 22]
    assert (array > buffer).to_python() == [True, True]
    with pytest.raises(ShapeError, match="must be equal"):
        array[:1] + buffer


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
        (lambda b: b["x"], AxisError, "a str is not an index"),
        (lambda b: b[::0], AxisError, "cannot be 0"),
        (lambda b: b[..., ...], AxisError, "only one"),
        (lambda b: b.reshape((4,)), ShapeError, "6 elements do not fill"),
        (lambda b: b.expand((2, 4)), ShapeError, r"cannot expand \(2, 3\) to \(2, 4\)"),
        (lambda b: b.permute((0, 0)), AxisError, "no order of 2 axes"),
        (lambda b: b.flip((2,)), AxisError, "no axis 2"),
        (lambda b: b.sum(axes=(0, 0)), AxisError, "name one axis twice"),
        (lambda b: b.sum(axes=5), AxisError, "no axis 5"),
        (lambda b: b[:0].max(), ShapeError, "no maximum of no elements"),
        (lambda b: b[0].tril(), ShapeError, "needs two axes"),
        (lambda b: b.as_strided((9,), (1,)), ShapeError, "outside a storage of 6"),
        (lambda b: b.as_strided((2, 2), (1,)), ShapeError, "1 strides"),
        (lambda b: b.__setitem__(0, Buffer([1.0])), ShapeError, "into a target of shape"),
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


def test_dtypes_have_aliases() -> None:
    assert DType.float32 is dtypes.float32
    assert Buffer.zeros((2,), dtype=DType.bool).to_python() == [False, False]


def test_one_operation_is_compiled_once() -> None:
    first = Buffer([1.0] * 77) * 3.0
    count = len(KERNELS)
    for number in range(5):
        first = first * (1.5 + number)
    assert len(KERNELS) == count
