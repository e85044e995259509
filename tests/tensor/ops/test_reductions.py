"""Reductions against NumPy, over all shapes and axes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.values.arrays import FLOATS, FULL_SHAPES, INTS, SHAPES, numbers, same

from glassgrad import Tensor, dtypes


@st.composite
def axes_of(draw: st.DrawFn, shape: tuple[int, ...]) -> int | tuple[int, ...] | None:
    if not shape or draw(st.booleans()):
        return None
    ndim = len(shape)
    if draw(st.booleans()):
        return draw(st.integers(-ndim, ndim - 1))
    found = draw(st.lists(st.integers(0, ndim - 1), unique=True, max_size=ndim))
    return tuple(axis - ndim if draw(st.booleans()) else axis for axis in found)


@given(st.data(), SHAPES, st.sampled_from(FLOATS + INTS), st.booleans())
def test_sum_and_prod_over_any_axes(
    data: st.DataObject, shape: tuple[int, ...], dtype: str, keepdim: bool
) -> None:
    x, axis = numbers(shape, dtype), data.draw(axes_of(shape))
    kind = np.dtype(dtype).kind
    wide = {"u": np.uint32, "i": np.int32, "f": dtype}[kind]
    wide = np.promote_types(dtype, wide)
    for name in ("sum", "prod"):
        with np.errstate(all="ignore"):
            wanted = getattr(np, name)(x, axis=axis, keepdims=keepdim, dtype=wide)
        got = getattr(Tensor(x), name)(axis, keepdim)
        same(got, np.asarray(wanted, wide), rtol=1e-5)


@given(st.data(), FULL_SHAPES, st.sampled_from((*FLOATS, *INTS, "bool")), st.booleans())
def test_max_and_min_over_any_axes(
    data: st.DataObject, shape: tuple[int, ...], dtype: str, keepdim: bool
) -> None:
    x, axis = numbers(shape, dtype), data.draw(axes_of(shape))
    for name in ("max", "min"):
        same(getattr(Tensor(x), name)(axis, keepdim), getattr(x, name)(axis, keepdims=keepdim))


@given(st.data(), SHAPES, st.sampled_from(("bool", "int32", "float32")))
def test_any_and_all_over_any_axes(data: st.DataObject, shape: tuple[int, ...], dtype: str) -> None:
    x, axis = numbers(shape, dtype), data.draw(axes_of(shape))
    same(Tensor(x).any(axis), np.any(x, axis))
    same(Tensor(x).all(axis), np.all(x, axis))


@given(st.data(), FULL_SHAPES, st.booleans(), st.sampled_from((0, 1)))
def test_mean_var_and_std_over_any_axes(
    data: st.DataObject, shape: tuple[int, ...], keepdim: bool, correction: int
) -> None:
    x, axis = numbers(shape, "float64"), data.draw(axes_of(shape))
    same(Tensor(x).mean(axis, keepdim), x.mean(axis, keepdims=keepdim), rtol=1e-12)
    with np.errstate(all="ignore"):
        count = x.size // np.asarray(x.mean(axis)).size
        if count <= correction:
            return
        for name in ("var", "std"):
            wanted = getattr(x, name)(axis, keepdims=keepdim, ddof=correction)
            got = getattr(Tensor(x), name)(axis, keepdim, correction)
            same(got, wanted, rtol=1e-12, atol=1e-12)


def test_var_mean_gives_both() -> None:
    x = numbers((3, 4), "float64")
    variance, mean = Tensor(x).var_mean(1)
    same(variance, x.var(1, ddof=1), rtol=1e-12)
    same(mean, x.mean(1), rtol=1e-12)
    spread, mean = Tensor(x).std_mean(0, keepdim=True)
    same(spread, x.std(0, ddof=1, keepdims=True), rtol=1e-12)
    same(mean, x.mean(0, keepdims=True), rtol=1e-12)


@given(st.data(), FULL_SHAPES, st.sampled_from(("float32", "int32", "uint8")))
def test_argmax_and_argmin_return_the_first_index(
    data: st.DataObject, shape: tuple[int, ...], dtype: str
) -> None:
    x = numbers(shape, dtype)
    axis = data.draw(st.none() | st.integers(-len(shape), len(shape) - 1))
    same(Tensor(x).argmax(axis), np.argmax(x, axis).astype(np.int32))
    same(Tensor(x).argmin(axis), np.argmin(x, axis).astype(np.int32))


def test_argmax_counts_nan_as_largest() -> None:
    assert Tensor([1.0, float("nan"), 3.0, float("nan")]).argmax().item() == 1


def test_argmax_keeps_axes_if_asked() -> None:
    x = Tensor(numbers((2, 3)))
    assert x.argmax(1, keepdim=True).shape == (2, 1)
    assert x.argmax(keepdim=True).shape == (1, 1)
    assert Tensor(3.0).argmax(0).item() == 0


SUMS = {
    "bool": "int32", "int8": "int32", "uint8": "uint32", "int64": "int64", "float16": "float16",
    "bfloat16": "bfloat16", "float64": "float64",
}  # fmt: skip


@pytest.mark.parametrize(("dtype", "wanted"), SUMS.items())
def test_sums_widen_small_ints_and_keep_floats(dtype: str, wanted: str) -> None:
    assert Tensor.ones(3, dtype=dtype).sum().dtype is dtypes.named(wanted)
    assert Tensor.ones(3, dtype=dtype).sum(dtype="float64").dtype is dtypes.float64


def test_half_sums_are_accumulated_in_float32() -> None:
    x = Tensor(np.full(5000, 0.1, np.float16))
    assert x.sum().item() == pytest.approx(5000 * float(np.float16(0.1)), rel=1e-3)
    assert x.mean().item() == pytest.approx(0.1, rel=1e-3)


def test_sums_of_nothing_are_zero_and_products_one() -> None:
    x = Tensor.empty(0, 3)
    assert x.sum().item() == 0
    assert x.sum(0).tolist() == [0, 0, 0]
    assert x.prod(0).tolist() == [1, 1, 1]
    assert x.sum(1).shape == (0,)
    assert x.max(1).shape == (0,)


def test_logsumexp_does_not_overflow_and_knows_infinities() -> None:
    x = np.array([[1000.0, 1000.0], [-np.inf, -np.inf], [np.inf, 1.0], [-1000.0, -1001.0]])
    with np.errstate(all="ignore"):
        wanted = np.logaddexp.reduce(x, axis=1)
    same(Tensor(x).logsumexp(1), wanted, rtol=1e-12)
    assert Tensor.empty(2, 0).logsumexp(1).tolist() == [-np.inf, -np.inf]
    assert Tensor(x).logsumexp(1, keepdim=True).shape == (4, 1)


def test_reducing_axes_of_one_element_records_no_reduction() -> None:
    from glassgrad.ir.ops import Ops

    uop = Tensor.empty(3, 1).sum(1).uop
    assert Ops.REDUCE not in {node.op for node in uop.toposort()}


def test_allclose_is_one_answer() -> None:
    x = Tensor([1.0, float("nan")])
    assert not x.allclose(x).item()
    assert x.allclose(x, equal_nan=True).item()
