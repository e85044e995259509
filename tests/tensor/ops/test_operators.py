"""Arithmetic, comparisons and selection against NumPy: values, shapes and promotion."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.values.arrays import FLOATS, INTS, SHAPES, numbers, same

from glassgrad import Tensor, dtypes

BINARY: list[Callable[[Any, Any], Any]] = [
    operator.add, operator.sub, operator.mul, operator.lt, operator.le, operator.gt, operator.ge,
    operator.eq, operator.ne,
]  # fmt: skip


@st.composite
def broadcastable(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes that stretch to one."""
    wide = draw(SHAPES)
    shapes = []
    for _ in range(2):
        kept = [1 if draw(st.integers(0, 3)) == 0 else size for size in wide]
        shapes.append(tuple(kept[draw(st.integers(0, len(kept))) :]))
    return shapes[0], shapes[1]


@given(broadcastable(), st.sampled_from(BINARY), st.sampled_from(FLOATS + INTS))
def test_operators_broadcast_and_compute_as_numpy_does(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], function: Callable[..., Any], dtype: str
) -> None:
    x, y = numbers(shapes[0], dtype), numbers(shapes[1], dtype, seed=1)
    with np.errstate(all="ignore"):
        wanted = function(x, y)
    same(function(Tensor(x), Tensor(y)), wanted)


@given(st.sampled_from(INTS), st.integers(-9, 9).filter(bool), SHAPES)
def test_floor_division_and_remainder_round_down(
    dtype: str, by: int, shape: tuple[int, ...]
) -> None:
    x = numbers(shape, dtype)
    by = abs(by) if dtype.startswith("u") else by
    same(Tensor(x) // by, x // np.array(by, dtype))
    same(Tensor(x) % by, x % np.array(by, dtype))
    y = np.full(shape, by, dtype)
    same(Tensor(y) // Tensor(x + (x == 0)), y // (x + (x == 0)).astype(dtype))


@given(st.sampled_from(FLOATS), st.sampled_from((0.5, -0.75, 3.0)))
def test_float_floor_division_and_remainder_round_down(dtype: str, by: float) -> None:
    x = numbers((17,), dtype)
    same(Tensor(x) // by, x // np.array(by, dtype))
    same(Tensor(x) % by, x % np.array(by, dtype))


@given(st.sampled_from([name for name in INTS if not name.startswith("u")]))
def test_truncating_division_rounds_towards_zero(dtype: str) -> None:
    x, y = np.meshgrid(np.arange(-7, 8, dtype=dtype), np.array([-3, -2, -1, 1, 2, 3], dtype))
    wanted = np.trunc(x / y).astype(dtype)
    same(Tensor(x).div(Tensor(y), rounding_mode="trunc"), wanted)
    same(Tensor(x).fmod(Tensor(y)), np.fmod(x, y))


@pytest.mark.parametrize("dtype", INTS)
def test_ints_wrap_as_numpys_do(dtype: str) -> None:
    top = np.array([np.iinfo(dtype).max], dtype)
    with np.errstate(all="ignore"):
        same(Tensor(top) + 1, top + np.array(1, dtype))
        same(Tensor(top) * Tensor(top), top * top)


PROMOTIONS = [
    ("int32", 1, "int32"), ("int32", 1.5, "float32"), ("float16", 1.5, "float16"),
    ("uint8", 1, "uint8"), ("bool", 1, "int32"), ("bool", 1.5, "float32"), ("bool", True, "bool"),
    ("float64", 2, "float64"), ("int64", 1.5, "float32"), ("bfloat16", 2.0, "bfloat16"),
    ("int8", True, "int8"),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "number", "wanted"), PROMOTIONS)
def test_python_numbers_decide_the_kind_but_not_the_width(
    dtype: str, number: float, wanted: str
) -> None:
    x = Tensor.zeros(2, dtype=dtype)
    assert (x + number).dtype is dtypes.named(wanted)
    assert (number + x).dtype is dtypes.named(wanted)
    assert Tensor([True, False]).where(x, number).dtype is dtypes.named(wanted)


def test_division_of_ints_gives_floats() -> None:
    same(Tensor([1, 2, 3]) / 2, np.array([0.5, 1, 1.5], np.float32))
    same(6 / Tensor([1, 2, 3]), np.array([6, 3, 2], np.float32))


def test_comparisons_with_nan_are_false_but_for_not_equal() -> None:
    x = Tensor([float("nan")])
    for function in BINARY[3:]:
        assert function(x, 1.0).tolist() == [function is operator.ne]
        assert function(x, x).tolist() == [function is operator.ne]


def test_numpy_arrays_and_scalars_are_operands_on_both_sides() -> None:
    x = Tensor([1.0, 2.0])
    array = np.array([10.0, 20.0], np.float32)
    assert (x + array).tolist() == (array + x).tolist() == [11, 22]
    assert (np.float32(2) * x).tolist() == [2, 4]
    assert (x * np.float64(2)).dtype is dtypes.float32


@pytest.mark.parametrize("dtype", ["bool", *INTS])
def test_bits_are_combined_as_numpy_does(dtype: str) -> None:
    x, y = numbers((3, 5), dtype), numbers((5,), dtype, seed=3)
    for function in (operator.and_, operator.or_, operator.xor):
        same(function(Tensor(x), Tensor(y)), function(x, y))
    same(~Tensor(x), ~x)
    if dtype != "bool":
        same(Tensor(x) << 2, x << np.array(2, dtype))
        same(Tensor(x) >> 2, x >> np.array(2, dtype))


@given(SHAPES, st.sampled_from(("float32", "int32", "bool")))
def test_where_selects(shape: tuple[int, ...], dtype: str) -> None:
    mask, x, y = numbers(shape, "bool"), numbers(shape, dtype), numbers(shape, dtype, seed=1)
    same(Tensor(mask).where(Tensor(x), Tensor(y)), np.where(mask, x, y))


def test_maximum_and_minimum_propagate_nan() -> None:
    x, y = Tensor([1.0, float("nan"), 3.0]), Tensor([2.0, 2.0, float("nan")])
    same(x.maximum(y), np.array([2, np.nan, np.nan], np.float32))
    same(x.minimum(y), np.array([1, np.nan, np.nan], np.float32))


@given(st.sampled_from(FLOATS + INTS + ("bool",)), st.sampled_from(FLOATS + INTS + ("bool",)))
def test_casts_convert_values(source: str, target: str) -> None:
    x = np.abs(numbers((9,), source)) if target.startswith("u") else numbers((9,), source)
    same(Tensor(x).cast(target), x.astype(target))


def test_bitcast_reads_the_same_bits() -> None:
    x = np.array([1.0, -2.5, np.inf], np.float32)
    same(Tensor(x).bitcast("int32"), x.view(np.int32))


SIGNED = ["int8", "int16", "int32", "int64"]
COMPARE = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


@pytest.mark.parametrize("compare", COMPARE)
@pytest.mark.parametrize("dtype", SIGNED)
def test_negative_ints_are_smaller_than_uint64s(dtype: str, compare: Callable[..., Any]) -> None:
    left = np.array([-1, -1, 0, 5, 127, 127], dtype)
    right = np.array([0, 2**64 - 1, 0, 5, 2**63 + 127, 126], "uint64")
    wanted = [compare(int(x), int(y)) for x, y in zip(left, right, strict=True)]
    assert compare(Tensor(left), Tensor(right)).tolist() == wanted
    turned = [compare(int(y), int(x)) for x, y in zip(left, right, strict=True)]
    assert compare(Tensor(right), Tensor(left)).tolist() == turned


@pytest.mark.parametrize("compare", COMPARE)
@pytest.mark.parametrize("number", [-1, 300, 2**70, -(2**70)])
def test_numbers_that_a_dtype_cannot_hold_are_compared_by_value(
    number: int, compare: Callable[..., Any]
) -> None:
    x = np.array([0, 7, 255], "uint8")
    assert compare(Tensor(x), number).tolist() == [compare(int(v), number) for v in x]
    assert compare(number, Tensor(x)).tolist() == [compare(number, int(v)) for v in x]
