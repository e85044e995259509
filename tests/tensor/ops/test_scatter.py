"""scatter, nonzero and masked_select against loops and NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from support.compiler.schedules import memory, planned
from support.references.finite_differences import check
from support.values.arrays import SHAPES, distinct, numbers, same

from glassgrad import Tensor
from glassgrad.ir.ops import Ops

ON_BOTH_BACKENDS = True
CASES = [((5,), (8,), 0), ((4, 3), (2, 3), 0), ((4, 3), (3, 7), -1), ((2, 3, 4), (1, 3, 2), 2)]


def places(shape: tuple[int, ...], size: int) -> np.ndarray:
    return np.random.default_rng(shape).integers(0, size, shape)


def collected(x: np.ndarray, axis: int, index: np.ndarray, src: np.ndarray) -> dict[Any, list[Any]]:
    """For every place of x the elements of src that go there, in order."""
    found: dict[Any, list[Any]] = {}
    for place in np.ndindex(*index.shape):
        target = list(place)
        target[axis] = index[place]
        found.setdefault(tuple(target), []).append(src[place])
    return found


@pytest.mark.parametrize(("shape", "count", "axis"), CASES)
def test_the_last_element_stays(shape: tuple[int, ...], count: tuple[int, ...], axis: int) -> None:
    x, index, src = numbers(shape), places(count, shape[axis]), numbers(count, seed=1)
    wanted = x.copy()
    for place, values in collected(x, axis, index, src).items():
        wanted[place] = values[-1]
    same(Tensor(x).scatter(axis, Tensor(index), Tensor(src)), wanted)


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize(("shape", "count", "axis"), CASES)
def test_elements_combine(
    shape: tuple[int, ...], count: tuple[int, ...], axis: int, reduce: str, include_self: bool
) -> None:
    x, index = numbers(shape, "float64"), places(count, shape[axis])
    src = numbers(count, "float64", seed=1)
    combine = {"sum": np.sum, "prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min}
    wanted = x.copy()
    for place, values in collected(x, axis, index, src).items():
        wanted[place] = combine[reduce]([x[place]] * include_self + values)
    got = Tensor(x).scatter_reduce(axis, Tensor(index), Tensor(src), reduce, include_self)
    same(got, wanted, rtol=1e-12)


def test_scatter_takes_numbers_sources_that_are_longer_and_old_reductions() -> None:
    x, index = numbers((3, 4)), np.array([[0, 2], [1, 1]])
    wanted = x.copy()
    np.put_along_axis(wanted[:2], index, 7, 1)
    same(Tensor(x).scatter(1, Tensor(index), 7), wanted)
    src = numbers((5, 5), seed=2)
    np.put_along_axis(wanted[:2], index, src[:2, :2], 1)
    same(Tensor(x).scatter(1, Tensor(index), Tensor(src)), wanted)
    y = Tensor([1.0, 2.0, 3.0])
    twice = Tensor([1, 1])
    assert y.scatter(0, twice, 5.0, reduce="add").tolist() == [1, 12, 3]
    assert y.scatter(0, twice, 5.0, reduce="multiply").tolist() == [1, 50, 3]


WIDE = [((90,), (200,), 0), ((3, 70), (3, 150), 1), ((80, 3), (50, 2), 0)]


@pytest.mark.parametrize(("shape", "taken", "axis"), WIDE)
def test_many_indices_are_written_in_order(
    shape: tuple[int, ...], taken: tuple[int, ...], axis: int
) -> None:
    x, index = numbers(shape), places(taken, shape[axis])
    src = numbers(taken, seed=1)
    found = collected(x, axis, index, src)
    for reduce, combine in (("amax", max), ("amin", min), ("prod", np.prod), ("sum", sum)):
        wanted = x.copy()
        for place, elements in found.items():
            wanted[place] = combine([x[place], *elements])
        got = Tensor(x).scatter_reduce(axis, Tensor(index), Tensor(src), reduce)
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-4, atol=1e-5)
    wanted = x.copy()
    for place, elements in found.items():
        wanted[place] = elements[-1]
    same(Tensor(x).scatter(axis, Tensor(index), Tensor(src)), wanted)


def test_nan_lands_as_the_extreme_of_many() -> None:
    src, index = np.array([1.0, np.nan, 3.0], np.float32), np.array([70, 70, 5])
    for reduce in ("amax", "amin"):
        got = Tensor.zeros(100).scatter_reduce(
            0, Tensor(index), Tensor(src), reduce, include_self=False
        )
        assert np.isnan(got.numpy()[70]) and got.numpy()[5] == 3


@pytest.mark.parametrize("reduce", ["amax", "amin"])
def test_gradients_of_extremes_are_shared_by_those_that_are_equal(reduce: str) -> None:
    src = Tensor([2.0, 5.0, 5.0, 2.0, 1.0], requires_grad=True)
    x = Tensor.zeros(70)
    got = x.scatter_reduce(0, Tensor([3, 3, 3, 3, 60]), src, reduce, include_self=False)
    (got * 4).sum().backward()
    assert src.grad is not None
    wanted = [0, 2, 2, 0, 4] if reduce == "amax" else [2, 0, 0, 2, 4]
    assert src.grad.tolist() == wanted


def test_scatter_does_not_compare_all_pairs() -> None:
    x, index, src = memory(4096), memory(4096, dtype="int32"), memory(4096)
    for made in (x.scatter(0, index, src), x.scatter_reduce(0, index, src, "amax")):
        for kernel in planned(made).kernels:
            loops = {node for node in kernel.body.toposort() if node.op is Ops.RANGE}
            stores = [node for node in kernel.body.toposort() if node.op is Ops.STORE]
            assert loops and all(len(store.bound) == 1 for store in stores)
            assert not any(node.op is Ops.REDUCE for node in kernel.body.toposort())


def test_scatter_of_ints_and_bools() -> None:
    x = numbers((4,), "int16")
    got = Tensor(x).scatter_reduce(0, Tensor([1, 1, 2]), Tensor([5, 6, 7], dtype="int16"), "amax")
    same(got, np.array([x[0], max(6, x[1]), max(7, x[2]), x[3]], "int16"))
    mask = Tensor([False, False, True]).scatter(0, Tensor([0, 2]), Tensor([True, False]))
    assert mask.tolist() == [True, False, False]


@settings(max_examples=15)
@given(SHAPES)
def test_nonzero_and_masked_select(shape: tuple[int, ...]) -> None:
    x = numbers(shape, "int32")
    mask = x > 2
    rows = Tensor(mask).nonzero()
    assert rows.tolist() == np.argwhere(mask).tolist()
    assert rows.dtype.name == "int32"
    same(Tensor(x).masked_select(Tensor(mask)), x[mask])
    same(Tensor(x > 3).masked_select(Tensor(mask)), (x > 3)[mask])


def test_masks_broadcast() -> None:
    x, mask = numbers((3, 4)), np.array([True, False, False, True])
    same(Tensor(x).masked_select(Tensor(mask)), x[np.broadcast_to(mask, x.shape)])


def test_a_size_that_is_given_cuts_or_fills_and_computes_nothing_now() -> None:
    x = Tensor([[0, 5], [7, 0]])
    assert x.nonzero(size=1).tolist() == [[0, 1]]
    assert x.nonzero(size=3, fill_value=-1).tolist() == [[0, 1], [1, 0], [-1, -1]]
    assert x.masked_select(x > 4, size=3, fill_value=9).tolist() == [5, 7, 9]
    assert x.masked_select(x > 4, size=1).tolist() == [5]


def test_many_true_indices_are_found() -> None:
    mask = np.random.default_rng(0).random(5000) < 0.3
    assert Tensor(mask).nonzero().numpy()[:, 0].tolist() == np.flatnonzero(mask).tolist()


def test_scatter_of_nothing_is_a_copy() -> None:
    x, none = Tensor([1.0, 2.0]), np.zeros(0)
    y = x.scatter(0, Tensor(none.astype(np.int64)), Tensor(none.astype(np.float32)))
    x[0] = 5.0
    assert y.tolist() == [1.0, 2.0]


def test_scatter_is_one_kernel_whatever_its_axis() -> None:
    x = memory(128, 256)
    for axis, shape in enumerate([(64, 256), (128, 300)]):
        index, src = memory(*shape, dtype="int32"), memory(*shape)
        assert len(planned(x.scatter(axis, index, src)).kernels) == 1


@pytest.mark.parametrize("axis", [0, 1])
def test_gradients_of_many_writes_go_to_the_last(axis: int) -> None:
    x, src = distinct((70, 70)), distinct((9, 8), seed=1)
    index = np.random.default_rng(axis).integers(0, 4, (9, 8))
    a, b = Tensor(x, requires_grad=True), Tensor(src, requires_grad=True)
    weight = distinct((70, 70), seed=2)
    (a.scatter(axis, Tensor(index), b) * Tensor(weight)).sum().backward()
    want_x, want_src, last = weight.copy(), np.zeros_like(src), {}
    for place in np.ndindex(*index.shape):
        target = (index[place], place[1]) if axis == 0 else (place[0], index[place])
        last[target] = place
    for target, place in last.items():
        want_x[target], want_src[place] = 0, weight[target]
    same(a.grad, want_x)
    same(b.grad, want_src)


def test_gradients_of_scatter() -> None:
    x, src = distinct((3, 2)), distinct((2, 2), seed=1) + 0.01
    index = np.array([[0, 2], [0, 1]])
    check(lambda a, b: a.scatter(0, Tensor(index), b), x, src)
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        check(lambda a, b, r=reduce: a.scatter_reduce(0, Tensor(index), b, r), x, src)
    mask = Tensor(x > 0)
    check(lambda a: a.masked_select(mask), x)
