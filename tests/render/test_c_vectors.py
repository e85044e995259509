"""Every op of every dtype in C agrees with `fold`, on scalars and in every lane."""

import numpy as np
import pytest
from support.compiler.many_outputs import apply_all
from support.values.interesting import CASES, ORDINARY, interesting, pairs, same

from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.errors import DeviceError
from glassgrad.devices.registry import Device
from glassgrad.ir.fold import fold
from glassgrad.ir.ops import OpGroup, Ops
from glassgrad.ir.uop import UOp
from glassgrad.memory.view import numpy_dtype
from glassgrad.render.c_vectors import has_operator, splat_of

name_of = lambda value: getattr(value, "name", str(value))  # noqa: E731
CONSTANTS = (0, 1, 3, 5)


def clang() -> Device:
    try:
        return Device["CLANG"]
    except DeviceError as error:
        pytest.skip(error.message)


@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("dtype", ORDINARY, ids=name_of)
def test_an_op_agrees_with_fold(dtype: DType, width: int) -> None:
    ops = [op for op, of in CASES if of is dtype]
    x, y = pairs(dtype)
    results = [dtypes.bool if op in OpGroup.COMPARISON else dtype for op in ops]
    functions = [
        (lambda *v, o=op: v[0].alu(o, *v[1 : o.arity]), result)
        for op, result in zip(ops, results, strict=True)
    ]
    found = apply_all(clang(), functions, [x, y], [dtype, dtype], width)
    for op, result, got in zip(ops, results, found, strict=True):
        rows = zip(*(array.tolist() for array in (x, y)[: op.arity]), strict=True)
        same(got, np.array([fold(op, result, row, dtype) for row in rows], numpy_dtype(result)))


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("before", ORDINARY, ids=name_of)
def test_casts_to_all_dtypes_agree_with_fold(before: DType, width: int) -> None:
    x = interesting(before)
    functions = [(lambda v, a=after: v.cast(a.vec(width)), after) for after in ORDINARY]
    for (_, after), got in zip(
        functions, apply_all(clang(), functions, [x], [before], width), strict=True
    ):
        want = [fold(Ops.CAST, after, (value,), before) for value in x.tolist()]
        same(got, np.array(want, numpy_dtype(after)))


@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.uint8, dtypes.float32], ids=name_of)
def test_ops_with_constant_operands_agree_with_fold(dtype: DType, width: int) -> None:
    x = interesting(dtype)
    ops = (Ops.MAX, Ops.MIN) if dtype.kind == "float" else (Ops.CDIV, Ops.CMOD, Ops.MAX, Ops.SHR)
    cases = [(op, number) for op in ops for number in CONSTANTS]
    functions = [
        (lambda v, o=op, n=number: v.alu(o, v.const_like(n)), dtype) for op, number in cases
    ]
    found = apply_all(clang(), functions, [x], [dtype], width)
    for (op, number), got in zip(cases, found, strict=True):
        right = float(number) if dtype.kind == "float" else number
        want = [fold(op, dtype, (value, right)) for value in x.tolist()]
        same(got, np.array(want, numpy_dtype(dtype)))


def test_where_mulacc_and_bitcast_work_on_vectors() -> None:
    f32, u32 = dtypes.float32, dtypes.uint32
    x = np.arange(-8, 8, dtype=np.float32)
    functions = [
        (lambda v: (v < 0.0).where(v * v, v.const_like(3.0)), f32),
        (lambda v: v.alu(Ops.MULACC, v, v), f32),
        (lambda v: v.bitcast(u32.vec(8)), u32),
        (lambda v: (v < 0.0).ne(v < 4.0).bitcast(dtypes.uint8.vec(8)), dtypes.uint8),
    ]
    found = apply_all(clang(), functions, [x], [f32], 8)
    same(found[0], np.where(x < 0, x * x, np.float32(3)))
    same(found[1], x * x + x)
    same(found[2], x.view(np.uint32))
    same(found[3], ((x < 0) != (x < 4)).view(np.uint8))


def test_ops_without_a_c_operator_are_known() -> None:
    three = UOp(Ops.STACK, dtypes.int.vec(4), (UOp(Ops.CONST, dtypes.int, (), 3),) * 4)
    x = UOp(Ops.ACC, three.dtype, (three,), 0)
    assert splat_of(three) is three.src[0] and splat_of(x) is None
    assert has_operator(x + x) and has_operator(x >> three) and has_operator(x.alu(Ops.CDIV, three))
    assert not has_operator(x >> x) and not has_operator(x.maximum(x))
    assert has_operator((x < x).maximum(x < x))
