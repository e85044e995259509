"""The semantics of ops: against NumPy where it has the dtype, and ml_dtypes otherwise."""

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.values.numbers import same, values

from glassgrad.base.dtype import dtypes
from glassgrad.ir.fold import fold, threefry
from glassgrad.ir.ops import OpGroup, Ops

NUMPY = {
    dtypes.bool: np.bool_,
    dtypes.fp8e4m3: ml_dtypes.float8_e4m3fn,
    dtypes.fp8e5m2: ml_dtypes.float8_e5m2,
    dtypes.bfloat16: ml_dtypes.bfloat16,
} | {
    dtype: getattr(np, dtype.name)
    for dtype in (*dtypes.ints, dtypes.float16, dtypes.float32, dtypes.float64)
}
ARITHMETIC = {
    Ops.NEG: np.negative,
    Ops.ADD: np.add,
    Ops.SUB: np.subtract,
    Ops.MUL: np.multiply,
    Ops.MAX: np.maximum,
    Ops.MIN: np.minimum,
}
COMPARISONS = {Ops.CMPLT: np.less, Ops.CMPEQ: np.equal, Ops.CMPNE: np.not_equal}
ON_INTS = {
    Ops.FLOORDIV: np.floor_divide,
    Ops.FLOORMOD: np.remainder,
    Ops.CMOD: np.fmod,
    Ops.AND: np.bitwise_and,
    Ops.OR: np.bitwise_or,
    Ops.XOR: np.bitwise_xor,
    Ops.SHL: np.left_shift,
    Ops.SHR: np.right_shift,
}
ON_FLOATS = {
    Ops.FDIV: np.divide,
    Ops.SQRT: np.sqrt,
    Ops.TRUNC: np.trunc,
    Ops.RECIPROCAL: lambda x: np.divide(x.dtype.type(1), x),
}


def as_numpy(value, dtype):
    return np.array([value]).astype(NUMPY[dtype]) if dtype.kind != "float" else _float(value, dtype)


def _float(value, dtype):
    return np.array([value], dtype=np.float64).astype(NUMPY[dtype])


def check(op, dtype, args, function, signed=True):
    result = dtypes.bool if op in OpGroup.COMPARISON else dtype
    with np.errstate(all="ignore"):
        expected = function(*[as_numpy(arg, dtype) for arg in args])[0]
    found = fold(op, result, args, dtype)
    kind = {"float": float, "bool": bool}.get(result.kind, int)
    assert same(found, kind(expected), signed), f"{op} of {args} is {expected}, not {found}"


def drawn(data, op, dtype):
    return tuple(data.draw(values(dtype)) for _ in range(op.arity))


@pytest.mark.parametrize("op", ARITHMETIC, ids=str)
@settings(max_examples=200)
@given(data=st.data())
def test_arithmetic_equals_numpy(op, data):
    dtype = data.draw(st.sampled_from([one for one in NUMPY if one is not dtypes.bool]))
    check(op, dtype, drawn(data, op, dtype), ARITHMETIC[op], op not in (Ops.MAX, Ops.MIN))


@pytest.mark.parametrize("op", COMPARISONS, ids=str)
@settings(max_examples=100)
@given(data=st.data())
def test_comparisons_equal_numpy(op, data):
    dtype = data.draw(st.sampled_from(list(NUMPY)))
    check(op, dtype, drawn(data, op, dtype), COMPARISONS[op])


@pytest.mark.parametrize("op", ON_INTS, ids=str)
@settings(max_examples=200)
@given(data=st.data())
def test_integer_ops_equal_numpy(op, data):
    dtype = data.draw(st.sampled_from(dtypes.ints))
    check(op, dtype, drawn(data, op, dtype), ON_INTS[op])


@pytest.mark.parametrize("op", ON_FLOATS, ids=str)
@settings(max_examples=200)
@given(data=st.data())
def test_float_ops_equal_numpy(op, data):
    dtype = data.draw(st.sampled_from(dtypes.floats))
    check(op, dtype, drawn(data, op, dtype), ON_FLOATS[op])


@settings(max_examples=300)
@given(data=st.data())
def test_casts_equal_numpy_where_numpy_defines_them(data):
    first = data.draw(st.sampled_from(list(NUMPY)))
    last = data.draw(
        st.sampled_from([one for one in NUMPY if first.kind != "float" or one.kind == "float"])
    )
    value = data.draw(values(first))
    if first.kind == "float" and last not in (dtypes.float32, dtypes.float64, dtypes.float16):
        # ml_dtypes rounds float64 by way of float32
        value = float(np.float32(value)) if first is dtypes.float64 else value
    if first in (dtypes.int64, dtypes.uint64, dtypes.int32, dtypes.uint32) and last.bits <= 16:
        value = value % 4096
    with np.errstate(all="ignore"):
        expected = as_numpy(value, first).astype(NUMPY[last])[0]
    kind = {"float": float, "bool": bool}.get(last.kind, int)
    assert same(fold(Ops.CAST, last, (value,), first), kind(expected))


@pytest.mark.parametrize(
    "value, dtype, expected",
    [
        (2.9, dtypes.int, 2),
        (-2.9, dtypes.int, -2),
        (300.0, dtypes.uint8, 255),
        (-1.0, dtypes.uint8, 0),
        (1e30, dtypes.int64, 2**63 - 1),
        (-1e30, dtypes.int64, -(2**63)),
        (math.inf, dtypes.int16, 32767),
        (-math.inf, dtypes.int16, -32768),
        (math.nan, dtypes.int, 0),
        (math.nan, dtypes.bool, True),
        (-0.0, dtypes.bool, False),
    ],
)
def test_casts_of_floats_saturate_at_the_range_of_an_int(value, dtype, expected):
    assert same(fold(Ops.CAST, dtype, (value,), dtypes.double), expected)


def test_large_ints_are_rounded_once():
    value = (1 << 60) + (1 << 36) + 1  # just above the middle of two float32
    assert fold(Ops.CAST, dtypes.float, (value,), dtypes.long) == float((1 << 60) + (1 << 37))


@pytest.mark.parametrize(
    "op, args, expected",
    [
        (Ops.EXP2, (3.0,), 8.0),
        (Ops.EXP2, (2000.0,), math.inf),
        (Ops.EXP2, (-math.inf,), 0.0),
        (Ops.LOG2, (8.0,), 3.0),
        (Ops.LOG2, (0.0,), -math.inf),
        (Ops.LOG2, (-1.0,), math.nan),
        (Ops.LOG2, (math.inf,), math.inf),
        (Ops.SIN, (math.inf,), math.nan),
        (Ops.SIN, (-0.0,), -0.0),
        (Ops.SQRT, (-0.0,), -0.0),
        (Ops.SQRT, (-1.0,), math.nan),
        (Ops.POW, (0.0, -1.0), math.inf),
        (Ops.POW, (-0.0, -3.0), -math.inf),
        (Ops.POW, (-2.0, 3.0), -8.0),
        (Ops.POW, (-2.0, 0.5), math.nan),
        (Ops.POW, (math.nan, 0.0), 1.0),
        (Ops.POW, (-10.0, 999.0), -math.inf),
        (Ops.MULACC, (2.0, 3.0, 4.0), 10.0),
    ],
)
def test_functions_at_their_edges(op, args, expected):
    assert same(fold(op, dtypes.double, args), expected)


@pytest.mark.parametrize(
    "op, args, expected",
    [
        (Ops.CDIV, (-7, 2), -3),
        (Ops.CDIV, (-(2**31), -1), -(2**31)),
        (Ops.CDIV, (7, 0), 0),
        (Ops.CMOD, (-7, 2), -1),
        (Ops.FLOORDIV, (-7, 2), -4),
        (Ops.FLOORDIV, (7, 0), 0),
        (Ops.FLOORMOD, (-7, 2), 1),
        (Ops.FLOORMOD, (7, 0), 0),
        (Ops.SHL, (1, 32), 0),
        (Ops.SHR, (-8, 40), -1),
        (Ops.WHERE, (True, 1, 2), 1),
        (Ops.NEG, (-(2**31),), -(2**31)),
    ],
)
def test_ints_at_their_edges(op, args, expected):
    assert fold(op, dtypes.int, args) == expected


def test_float32_results_are_rounded_to_float32():
    assert fold(Ops.ADD, dtypes.float, (0.1, 0.2)) == float(np.float32(0.1) + np.float32(0.2))


def test_bits_are_read_as_another_dtype():
    assert fold(Ops.BITCAST, dtypes.int, (1.0,), dtypes.float) == 0x3F80_0000
    assert fold(Ops.BITCAST, dtypes.half, (0xBC00,), dtypes.ushort) == -1.0


@pytest.mark.parametrize(
    "counter, key, expected",
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_threefry_gives_the_published_answers(counter, key, expected):
    def word(pair):
        return pair[0] | pair[1] << 32

    assert threefry(word(counter), word(key)) == word(expected)


def test_every_elementwise_op_has_a_meaning():
    for op in OpGroup.ELEMENTWISE - {Ops.CAST, Ops.BITCAST}:
        dtype = dtypes.uint64 if op is Ops.THREEFRY else dtypes.int
        floats = op in (Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.SQRT, Ops.RECIPROCAL, Ops.FDIV, Ops.POW)
        one = 1.0 if floats else 1
        fold(op, dtypes.float if floats else dtype, (one,) * op.arity)
