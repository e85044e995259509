"""Every elementwise op of every dtype agrees with `fold`, in every lane."""

import numpy as np
import pytest
from support.compiler.on_cpu import apply
from support.values.interesting import CASES, ORDINARY, interesting, pairs, same

from glassgrad.base.dtype import DType, dtypes
from glassgrad.ir.fold import fold
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.memory.view import numpy_dtype
from glassgrad.render.llvm_values import constant, llvm_type, mangled_type

name_of = lambda value: getattr(value, "name", str(value))  # noqa: E731


@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize(("op", "dtype"), CASES, ids=name_of)
def test_an_op_agrees_with_fold(op: Ops, dtype: DType, width: int) -> None:
    x, y = pairs(dtype)
    arrays = [x, y][: op.arity]
    is_comparison = op in (Ops.CMPLT, Ops.CMPEQ, Ops.CMPNE)
    result = dtypes.bool if is_comparison else dtype
    rows = zip(*(array.tolist() for array in arrays), strict=True)
    want = np.array([fold(op, result, row, dtype) for row in rows], numpy_dtype(result))
    got = apply(lambda *v: v[0].alu(op, *v[1:]), arrays, [dtype] * op.arity, result, width)
    same(got, want)


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("after", ORDINARY, ids=name_of)
@pytest.mark.parametrize("before", ORDINARY, ids=name_of)
def test_casts_between_all_dtypes_agree_with_fold(before: DType, after: DType, width: int) -> None:
    x = interesting(before)
    values = [fold(Ops.CAST, after, (value,), before) for value in x.tolist()]
    got = apply(lambda v: v.cast(after.vec(width)), [x], [before], after, width)
    same(got, np.array(values, numpy_dtype(after)))


def test_half_floats_are_cast_by_the_machine() -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    wide = apply(lambda v: v.cast(dtypes.float32.vec(8)), [x], [dtypes.float16], dtypes.float32)
    same(wide, x.astype(np.float32))
    back = apply(lambda v: v.cast(dtypes.float16.vec(8)), [wide], [dtypes.float32], dtypes.float16)
    same(back, x)


@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.uint8, dtypes.float32], ids=name_of)
def test_division_and_extrema_with_constants_agree_with_fold(dtype: DType) -> None:
    x = interesting(dtype)
    ops = (Ops.MAX, Ops.MIN) if dtype.kind == "float" else (Ops.CDIV, Ops.CMOD, Ops.MAX, Ops.SHR)
    for op in ops:
        for number in (0, 1, 3, 5):
            want = [fold(op, dtype, (value, dtype_number(number, dtype))) for value in x.tolist()]
            got = apply(lambda v, o=op, n=number: v.alu(o, v.const_like(n)), [x], [dtype], dtype)
            same(got, np.array(want, numpy_dtype(dtype)))


def dtype_number(number: int, dtype: DType) -> float | int:
    return float(number) if dtype.kind == "float" else number


def test_where_selects_lane_by_lane() -> None:
    x = np.arange(-8, 8, dtype=np.float32)
    got = apply(
        lambda v: (v < 0.0).where(v * v, v.const_like(3.0)), [x], [dtypes.float32], dtypes.float32
    )
    same(got, np.where(x < 0, x * x, np.float32(3)))


def test_mulacc_agrees_with_fold() -> None:
    for dtype in (dtypes.int32, dtypes.float64, dtypes.uint8):
        x = np.arange(16, dtype=numpy_dtype(dtype))
        got = apply(lambda v: UOp(Ops.MULACC, v.dtype, (v, v, v)), [x], [dtype], dtype)
        same(got, x * x + x)


def test_bits_are_read_as_another_dtype() -> None:
    x = np.array([1.0, -2.5, np.inf, 0.0], np.float32)
    got = apply(lambda v: v.bitcast(dtypes.uint32.vec(4)), [x], [dtypes.float32], dtypes.uint32, 4)
    same(got, x.view(np.uint32))
    flags = np.array([True, False, True, True])
    got = apply(lambda v: v.bitcast(dtypes.uint8.vec(4)), [flags], [dtypes.bool], dtypes.uint8, 4)
    same(got, flags.view(np.uint8))


def test_constants_are_written_exactly() -> None:
    assert constant(0.1, dtypes.float64) == "0x3FB999999999999A"
    assert constant(0.1, dtypes.float32) == "0x3FB99999A0000000"
    assert constant(float("inf"), dtypes.float32) == "0x7FF0000000000000"
    assert constant(1e39, dtypes.float32) == "0x7FF0000000000000"
    assert constant(1.5, dtypes.float16) == "0xH3E00"
    assert constant(1e9, dtypes.float16) == "0xH7C00"
    assert constant(2**64 - 1, dtypes.uint64) == "-1"
    assert constant(-3, dtypes.int8.vec(2)) == "<i8 -3, i8 -3>"
    assert constant(True, dtypes.bool) == "true"


def test_types_have_their_names_in_intrinsics() -> None:
    assert llvm_type(dtypes.float32.vec(8)) == "<8 x float>"
    assert llvm_type(dtypes.bool.vec(4)) == "<4 x i1>"
    assert mangled_type("<8 x float>") == "v8f32"
    assert mangled_type("double") == "f64"
    assert mangled_type("i16") == "i16"
