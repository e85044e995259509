"""The promotion table of docs/dtypes.md, for every family of operations."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from glassgrad import Tensor, dtypes
from glassgrad.base.dtype import DType, promote
from glassgrad.base.errors import DTypeError

PAGE = (Path(__file__).parents[2] / "docs" / "dtypes.md").read_text()
SHORT = {"b": "bool", "e4m3": "fp8e4m3", "e5m2": "fp8e5m2", "bf16": "bfloat16"}
LONG = {"i": "int", "u": "uint", "f": "float"}
Binary = Callable[[Any, Any], Tensor]


def named(short: str) -> DType:
    """i8 is int8, f16 float16."""
    name = SHORT.get(short) or LONG[short[0]] + short[1:]
    return dtypes.named(name)


def table() -> dict[tuple[DType, DType], DType]:
    """The first table of the page whose rows begin with bold names."""
    rows = re.findall(r"^\| \*\*(\w+)\*\* \| (.*) \|$", PAGE, re.MULTILINE)
    columns = [row[0] for row in rows]
    return {
        (named(row), named(column)): named(met)
        for row, line in rows
        for column, met in zip(columns, line.split(" | "), strict=True)
    }


TABLE = table()

ARITHMETIC: dict[str, Binary] = {
    "add": operator.add,
    "mul": operator.mul,
    "maximum": lambda x, y: x.maximum(y),
    "minimum": lambda x, y: x.minimum(y),
    "where": lambda x, y: Tensor([True, False]).where(x, y),
    "masked_fill": lambda x, y: x.masked_fill(Tensor([True, False]), y),
    "cat": lambda x, y: x.cat(y),
    "stack": lambda x, y: x.stack(y),
    "matmul": operator.matmul,
    "einsum": lambda x, y: Tensor.einsum("i,i->", x, y),
    "conv2d": lambda x, y: x.reshape(1, 1, 2).conv2d(y.reshape(1, 1, 2)),
}
WITHOUT_BOOLS: dict[str, Binary] = {
    "sub": operator.sub,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "fmod": lambda x, y: x.fmod(y),
    "pow": operator.pow,
    "div trunc": lambda x, y: x.div(y, rounding_mode="trunc"),
    "div floor": lambda x, y: x.div(y, rounding_mode="floor"),
}
FLOATS: dict[str, Binary] = {
    "truediv": operator.truediv,
    "div": lambda x, y: x.div(y),
    "logaddexp": lambda x, y: x.logaddexp(y),
    "copysign": lambda x, y: x.copysign(y),
}
BITS: dict[str, Binary] = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}
SHIFTS: dict[str, Binary] = {"lshift": operator.lshift, "rshift": operator.rshift}
COMPARISONS: dict[str, Binary] = {
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "eq": operator.eq, "ne": operator.ne, "isclose": lambda x, y: x.isclose(y),
}  # fmt: skip


def ones(dtype: DType) -> Tensor:
    return Tensor.ones(2, dtype=dtype)


def check(function: Binary, wanted: Callable[[DType], DType | None]) -> None:
    """All pairs; None stands for a refusal."""
    for (left, right), met in TABLE.items():
        result = wanted(met)
        if result is None:
            with pytest.raises(DTypeError):
                function(ones(left), ones(right))
        else:
            assert function(ones(left), ones(right)).dtype is result, (left, right)


def test_the_table_of_the_page_is_the_lattice() -> None:
    assert len(TABLE) == len(dtypes.all) ** 2
    assert all(promote(*pair) is met for pair, met in TABLE.items())


@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic_meets_in_the_table(name: str) -> None:
    check(ARITHMETIC[name], lambda met: met)


@pytest.mark.parametrize("name", WITHOUT_BOOLS)
def test_differences_divisions_and_powers_meet_in_the_table_but_for_bools(name: str) -> None:
    check(WITHOUT_BOOLS[name], lambda met: None if met is dtypes.bool else met)


@pytest.mark.parametrize("name", FLOATS)
def test_quotients_are_floats(name: str) -> None:
    check(FLOATS[name], lambda met: met if met.kind == "float" else dtypes.float32)


@pytest.mark.parametrize("name", BITS)
def test_bits_are_of_whole_numbers(name: str) -> None:
    check(BITS[name], lambda met: None if met.kind == "float" else met)


@pytest.mark.parametrize("name", SHIFTS)
def test_shifts_are_of_ints(name: str) -> None:
    check(SHIFTS[name], lambda met: met if met.kind in ("int", "uint") else None)


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_are_bools(name: str) -> None:
    check(COMPARISONS[name], lambda met: dtypes.bool)


def with_number(dtype: DType, number: float) -> DType:
    """The table of Python numbers on the page."""
    if dtype.kind == "float" or isinstance(number, bool):
        return dtype
    if isinstance(number, float):
        return dtypes.float32
    return dtypes.int32 if dtype.kind == "bool" else dtype


ONE_SIDED = {name: ARITHMETIC[name] for name in ("maximum", "minimum", "where", "masked_fill")}


@pytest.mark.parametrize("number", [True, 2, 2.5])
@pytest.mark.parametrize("dtype", dtypes.all, ids=lambda dtype: dtype.name)
def test_python_numbers_have_a_kind_but_no_width(dtype: DType, number: float) -> None:
    x, met = ones(dtype), with_number(dtype, number)
    for function in (operator.add, operator.mul):
        assert function(x, number).dtype is function(number, x).dtype is met
    for one_sided in ONE_SIDED.values():
        assert one_sided(x, number).dtype is met
    quotient = met if met.kind == "float" else dtypes.float32
    assert (x / number).dtype is (number / x).dtype is quotient
    for compare in COMPARISONS.values():
        assert compare(x, number).dtype is dtypes.bool
    if met is not dtypes.bool:
        for whole in (operator.sub, operator.floordiv, operator.mod, operator.pow):
            assert whole(x, number).dtype is whole(number, x).dtype is met, whole
    if met.kind in ("int", "uint"):
        for bits in (operator.and_, operator.lshift, operator.rshift):
            assert bits(x, number).dtype is bits(number, x).dtype is met


@pytest.mark.parametrize("dtype", dtypes.all, ids=lambda dtype: dtype.name)
def test_functions_of_one_tensor_keep_floats_and_make_them(dtype: DType) -> None:
    wanted = dtype if dtype.kind == "float" else dtypes.float32
    for name in ("sqrt", "exp", "sin", "sigmoid", "softmax", "mean", "var", "logsumexp", "gelu"):
        assert getattr(ones(dtype), name)().dtype is wanted, name
    for name in ("argmax", "argmin", "argsort"):
        assert getattr(ones(dtype), name)().dtype is dtypes.int32, name


@pytest.mark.parametrize("dtype", dtypes.all, ids=lambda dtype: dtype.name)
def test_sums_of_small_ints_have_32_bits(dtype: DType) -> None:
    least = dtypes.uint32 if dtype.kind == "uint" else dtypes.int32
    wanted = dtype if dtype.kind == "float" else promote(dtype, least)
    for name in ("sum", "prod", "cumsum", "cumprod"):
        assert getattr(ones(dtype), name)(0).dtype is wanted, name
