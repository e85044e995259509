"""Low-precision arithmetic agrees bit by bit with ml_dtypes and NumPy."""

import ml_dtypes
import numpy as np
import pytest
from support.compiler.on_cpu import apply

from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.rounding import to_bits
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Param, Target
from glassgrad.ir.uop import UOp, const, make_range
from glassgrad.lower.math.low_precision import (
    LOW_PRECISION,
    decode,
    emulate,
    encode,
    from_float,
    is_low_precision,
    storage_dtype,
)

KINDS = {
    dtypes.float16: np.float16,
    dtypes.bfloat16: ml_dtypes.bfloat16,
    dtypes.fp8e4m3: ml_dtypes.float8_e4m3fn,
    dtypes.fp8e5m2: ml_dtypes.float8_e5m2,
}
WITHOUT = Target("none", "llvm", dtypes=frozenset(dtypes.all) - LOW_PRECISION)
WITH_HALF = Target("half", "llvm", dtypes=frozenset(dtypes.all) - LOW_PRECISION | {dtypes.float16})
low_precision = pytest.mark.parametrize("dtype", list(KINDS), ids=lambda dtype: dtype.name)


def all_values(dtype: DType) -> np.ndarray:
    unsigned = f"u{dtype.itemsize}"
    return np.arange(1 << dtype.bits, dtype=unsigned).view(KINDS[dtype])


def bits(array: np.ndarray) -> np.ndarray:
    return array.view(f"u{array.itemsize}")


def same_bits(got: np.ndarray, want: np.ndarray) -> bool:
    """Equal bit by bit; all nans are equal."""
    is_nan = np.isnan(want.astype(np.float32))
    kind = want.dtype
    got_nan = np.isnan(got.view(kind).astype(np.float32))
    return bool(np.array_equal(got_nan, is_nan) and ((got == bits(want)) | is_nan).all())


def tricky_floats(dtype: DType) -> np.ndarray:
    """Random floats of all magnitudes, every value of the dtype, every tie, and their
    neighbours.
    """
    values = all_values(dtype).astype(np.float32)
    values = np.unique(values[np.isfinite(values)])
    ties = (values[1:].astype(np.float64) + values[:-1]) / 2
    near = np.concatenate([values, ties.astype(np.float32)])
    around = [np.nextafter(near, np.float32(side)) for side in (np.inf, -np.inf)]
    random = np.random.default_rng(0).integers(0, 1 << 32, 200_000, dtype=np.uint32)
    special = np.array(
        [np.inf, -np.inf, np.nan, 0, -0.0, 448, 464, 463.9, 480, 65519, 65520, 3.4e38]
    )
    return np.concatenate([near, *around, random.view(np.float32), special.astype(np.float32)])


def cast(array: np.ndarray, dtype: DType) -> np.ndarray:
    with np.errstate(all="ignore"):
        return array.astype(KINDS[dtype])


@low_precision
def test_every_low_precision_value_decodes_to_its_float(dtype: DType) -> None:
    values = all_values(dtype)
    function = lambda x: decode(x, dtype)  # noqa: E731
    got = apply(function, [bits(values)], [storage_dtype(dtype)], dtypes.float32)
    want = values.astype(np.float32)
    assert same_bits(bits(got), want)


@low_precision
def test_floats_are_rounded_to_nearest_even(dtype: DType) -> None:
    values = tricky_floats(dtype)
    function = lambda x: encode(x, dtype)  # noqa: E731
    got = apply(function, [values], [dtypes.float32], storage_dtype(dtype))
    assert same_bits(got, cast(values, dtype))


def evaluate_cast(array: np.ndarray, source: DType, dtype: DType) -> np.ndarray:
    function = lambda x: lowered(UOp(Ops.CAST, dtype.vec(8), (x,)))  # noqa: E731
    return apply(function, [array], [source], storage_dtype(dtype))


def lowered(root: UOp, target: Target = WITHOUT) -> UOp:
    """The value after all rules, as bits."""
    done: dict[UOp, UOp] = {}
    for node in root.toposort():
        src = tuple(done[source] for source in node.src)
        fresh = node.replace(src=src) if src != node.src else node
        while (better := emulate(fresh, target)) is not None:
            fresh = better
        done[node] = fresh
    found = done[root]
    return found.src[0] if found.op is Ops.BITCAST and is_low_precision(found.dtype) else found


@low_precision
def test_doubles_are_rounded_once(dtype: DType) -> None:
    """By way of float32 alone, a double just above a tie would become the tie."""
    with np.errstate(invalid="ignore"):
        values = np.unique(all_values(dtype).astype(np.float64))
    values = values[np.isfinite(values)]
    ties = (values[1:] + values[:-1]) / 2
    tiny = np.ldexp(1.0, -60)
    doubles = np.concatenate([ties, ties * (1 + tiny * 2**9), ties * (1 - tiny * 2**9), values])
    doubles = np.concatenate([doubles, [1e300, -1e300, np.inf, -np.inf, np.nan, 1e-300, 3.5e38]])
    got = evaluate_cast(doubles, dtypes.float64, dtype)
    assert same_bits(got, rounded(doubles.tolist(), dtype))


def rounded(values: list[float], dtype: DType) -> np.ndarray:
    unsigned = np.array([to_bits(value, dtype) for value in values], f"u{dtype.itemsize}")
    return unsigned.view(KINDS[dtype])


@low_precision
@pytest.mark.parametrize("source", [*dtypes.ints, dtypes.bool], ids=lambda dtype: dtype.name)
def test_ints_are_rounded_once(dtype: DType, source: DType) -> None:
    kind = np.dtype(source.name)
    random = np.random.default_rng(4)
    if source.kind == "bool":
        values = np.array([False, True])
    else:
        low, high = int(dtypes.min(source)), int(dtypes.max(source))
        powers = [sign * (1 << n) + d for n in range(64) for sign in (1, -1) for d in (-1, 0, 1)]
        ties = [(0b100000001 << n) + d for n in range(56) for d in (-1, 0, 1)]
        ties += [-tie for tie in ties]
        splat = [int(v) for v in random.integers(low, high, 500, dtype=kind, endpoint=True)]
        chosen = [v for v in (*powers, *ties, *splat, low, high) if low <= v <= high]
        values = np.array(chosen, kind)
    got = evaluate_cast(values, source, dtype)
    assert same_bits(got, rounded(values.tolist(), dtype))


@low_precision
@pytest.mark.parametrize("op", [Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, Ops.MAX], ids=str)
def test_arithmetic_equals_that_of_the_low_precision_dtype(dtype: DType, op: Ops) -> None:
    random = np.random.default_rng(6)
    values = all_values(dtype)
    x, y = random.choice(values, 20_000), random.choice(values, 20_000)
    with np.errstate(all="ignore"):
        wide = x.astype(np.float32), y.astype(np.float32)
        numpy = {Ops.ADD: np.add, Ops.SUB: np.subtract, Ops.MUL: np.multiply, Ops.FDIV: np.divide}
        want = cast(numpy.get(op, np.maximum)(*wide), dtype)

    def function(a: UOp, b: UOp) -> UOp:
        one, two = a.bitcast(dtype.vec(8)), b.bitcast(dtype.vec(8))
        return lowered(UOp(op, one.dtype, (one, two)))

    got = apply(function, [bits(x), bits(y)], [storage_dtype(dtype)] * 2, storage_dtype(dtype))
    if op is Ops.MAX:  # the sign of zero is unspecified
        zeros = (x.astype(np.float32) == 0) & (y.astype(np.float32) == 0)
        got, want = got[~zeros], want[~zeros]
    assert same_bits(got, want)


def kernel(dtype: DType) -> UOp:
    """out[i] = where(x[i] < 2, x[i] * 1.5, constant), staged on the way."""
    i, j = make_range(0, 8), make_range(1, 8)
    out, x = (UOp(Ops.PARAM, dtype, (), Param(slot, (8,), (1,))) for slot in range(2))
    stage = UOp(Ops.STAGE, dtype, (x.index(j).load(), j, j), (8,))
    value = stage.index(i).load()
    chosen = (value < 2.0).where(value * 1.5, value.const_like(0.1))
    return UOp(Ops.STORE, dtypes.void, (out.index(i), chosen, i))


@low_precision
def test_no_node_of_an_unsupported_dtype_is_left(dtype: DType) -> None:
    body = lowered(kernel(dtype))
    assert not [node for node in body.toposort() if is_low_precision(node.dtype)]
    stored = next(node for node in body.toposort() if node.op is Ops.STORE)
    assert stored.src[1].dtype is storage_dtype(dtype)


def test_a_machine_with_half_floats_keeps_them_in_memory_only() -> None:
    body = lowered(kernel(dtypes.float16), WITH_HALF)
    halves = {node.op for node in body.toposort() if node.dtype is dtypes.float16}
    assert halves == {Ops.PARAM, Ops.INDEX, Ops.LOAD, Ops.STAGE, Ops.CAST, Ops.WHERE, Ops.CONST}
    products = [node for node in body.toposort() if node.op is Ops.MUL]
    assert all(node.dtype is dtypes.float32 for node in products)


def test_float32_nodes_are_unchanged() -> None:
    x = const(1.0, dtypes.float32)
    for node in (x + 2.0, x.cast(dtypes.int32), x < 1.0, x):
        assert emulate(node, WITHOUT) is None


def test_rounding_a_float_that_the_machine_can_cast_is_a_cast() -> None:
    x = const(1.0, dtypes.float32)
    assert from_float(x, dtypes.float16, WITH_HALF).op is Ops.CAST


@low_precision
def test_a_register_stage_is_decoded_when_read(dtype: DType) -> None:
    """STAGE without indices is a value itself, not a LOAD of one."""
    x = UOp(Ops.PARAM, dtype, (), Param(1, (), ())).index().load()
    stage = UOp(Ops.STAGE, dtype, (x,), ())
    out = UOp(Ops.PARAM, dtypes.float32, (), Param(0, (), ()))
    store = UOp(Ops.STORE, dtypes.void, (out.index(), stage.cast(dtypes.float32)))
    body = lowered(UOp(Ops.SINK, dtypes.void, (stage, store)))
    assert [line.op for line in body.src] == [Ops.STAGE, Ops.STORE]
    assert not [
        node
        for node in body.toposort()
        if node.op is Ops.CAST and node.src[0].op is Ops.STAGE and node.dtype.kind == "float"
    ]


def test_rounding_a_float32_takes_no_float64() -> None:
    x = UOp(Ops.PARAM, dtypes.float32, (), Param(1, (), ())).index().load()
    for dtype in KINDS:
        body = lowered(x.cast(dtype).cast(dtypes.float32))
        assert not [node for node in body.toposort() if node.dtype is dtypes.float64]
