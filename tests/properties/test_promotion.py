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


def dtype_of(short: str) -> DType:
    """A dtype by its name on the page: i8 is int8, f16 is float16."""
    name = SHORT.get(short) or LONG[short[0]] + short[1:]
    return dtypes.named(name)


def table() -> dict[tuple[DType, DType], DType]:
    """The table of the page whose rows start with bold names."""
    rows = re.findall(r"^\| \*\*(\w+)\*\* \| (.*) \|$", PAGE, re.MULTILINE)
    columns = [row[0] for row in rows]
    return {
        (dtype_of(row), dtype_of(column)): dtype_of(promoted)
        for row, line in rows
        for column, promoted in zip(columns, line.split(" | "), strict=True)
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
    """Check all pairs of dtypes; None stands for an error."""
    for (left, right), promoted in TABLE.items():
        result = wanted(promoted)
        if result is None:
            with pytest.raises(DTypeError):
                function(ones(left), ones(right))
        else:
            assert function(ones(left), ones(right)).dtype is result, (left, right)


def test_the_documented_table_is_that_of_promote() -> None:
    assert len(TABLE) == len(dtypes.all) ** 2
    assert all(promote(*pair) is promoted for pair, promoted in TABLE.items())


@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic_promotes(name: str) -> None:
    check(ARITHMETIC[name], lambda promoted: promoted)


@pytest.mark.parametrize("name", WITHOUT_BOOLS)
def test_differences_divisions_and_powers_promote_and_refuse_bools(name: str) -> None:
    check(WITHOUT_BOOLS[name], lambda promoted: None if promoted is dtypes.bool else promoted)


@pytest.mark.parametrize("name", FLOATS)
def test_quotients_are_floats(name: str) -> None:
    check(FLOATS[name], lambda promoted: promoted if promoted.kind == "float" else dtypes.float32)


@pytest.mark.parametrize("name", BITS)
def test_bitwise_operations_refuse_floats(name: str) -> None:
    check(BITS[name], lambda promoted: None if promoted.kind == "float" else promoted)


@pytest.mark.parametrize("name", SHIFTS)
def test_shifts_refuse_floats_and_bools(name: str) -> None:
    check(SHIFTS[name], lambda promoted: promoted if promoted.kind in ("int", "uint") else None)


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_are_bools(name: str) -> None:
    check(COMPARISONS[name], lambda promoted: dtypes.bool)


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
def test_python_numbers_are_weakly_typed(dtype: DType, number: float) -> None:
    x, promoted = ones(dtype), with_number(dtype, number)
    for function in (operator.add, operator.mul):
        assert function(x, number).dtype is function(number, x).dtype is promoted
    for one_sided in ONE_SIDED.values():
        assert one_sided(x, number).dtype is promoted
    quotient = promoted if promoted.kind == "float" else dtypes.float32
    assert (x / number).dtype is (number / x).dtype is quotient
    for compare in COMPARISONS.values():
        assert compare(x, number).dtype is dtypes.bool
    if promoted is not dtypes.bool:
        for operation in (operator.sub, operator.floordiv, operator.mod, operator.pow):
            assert operation(x, number).dtype is operation(number, x).dtype is promoted, operation
    if promoted.kind in ("int", "uint"):
        for bits in (operator.and_, operator.lshift, operator.rshift):
            assert bits(x, number).dtype is bits(number, x).dtype is promoted


@pytest.mark.parametrize("dtype", dtypes.all, ids=lambda dtype: dtype.name)
def test_dtypes_of_unary_functions(dtype: DType) -> None:
    wanted = dtype if dtype.kind == "float" else dtypes.float32
    for name in ("sqrt", "exp", "sin", "sigmoid", "softmax", "mean", "var", "logsumexp", "gelu"):
        assert getattr(ones(dtype), name)().dtype is wanted, name
    for name in ("argmax", "argmin", "argsort"):
        assert getattr(ones(dtype), name)().dtype is dtypes.int32, name


@pytest.mark.parametrize("dtype", dtypes.all, ids=lambda dtype: dtype.name)
def test_sums_of_narrow_ints_have_32_bits(dtype: DType) -> None:
    accumulator = dtypes.uint32 if dtype.kind == "uint" else dtypes.int32
    wanted = dtype if dtype.kind == "float" else promote(dtype, accumulator)
    for name in ("sum", "prod", "cumsum", "cumprod"):
        assert getattr(ones(dtype), name)(0).dtype is wanted, name
