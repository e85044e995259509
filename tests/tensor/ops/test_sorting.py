"""sort, argsort and topk against NumPy's stable sort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.compiler.schedules import memory, planned
from support.references.finite_differences import check
from support.values.arrays import FLOATS, INTS, SHAPES, distinct, numbers, same

from glassgrad import Tensor, dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp

ON_BOTH_BACKENDS = True


def is_number(node: UOp) -> bool:
    return node.dtype.kind in ("int", "uint", "float")


def order(x: np.ndarray, axis: int, descending: bool = False) -> np.ndarray:
    """Stable in both directions: equal elements keep their order."""
    if not descending:
        return np.argsort(x, axis, kind="stable").astype("int32")
    back = np.argsort(np.flip(x, axis), axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - back, axis).astype("int32")


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", [*FLOATS, *INTS, "float16", "bool"])
def test_every_dtype_sorts_stably(dtype: str, descending: bool) -> None:
    x = numbers((2, 13), dtype)
    values, index = Tensor(x).sort(descending=descending)
    wanted = order(x, 1, descending)
    same(index, wanted)
    same(values, np.take_along_axis(x, wanted, 1))


@settings(max_examples=15)
@given(SHAPES, st.data())
def test_any_axis_sorts(shape: tuple[int, ...], data: st.DataObject) -> None:
    x = numbers(shape)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1)) if shape else -1
    values, index = Tensor(x).sort(axis)
    if not shape:
        assert (values.item(), index.item()) == (x.item(), 0)
        return
    same(index, order(x, axis))
    same(values, np.sort(x, axis))


@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values_are_ordered(dtype: str) -> None:
    x = np.array([np.nan, 1, -np.inf, 0.0, -0.0, np.inf, -np.nan, -1, 5e-324], dtype)
    same(Tensor(x).argsort(), np.argsort(x, kind="stable").astype("int32"))
    assert Tensor(x).argsort(descending=True).tolist()[:3] == [0, 6, 5]


def test_the_extremes_of_ints_sort() -> None:
    for dtype in INTS:
        ends = np.iinfo(dtype)
        x = np.array([ends.max, 0, ends.min, 1, ends.max], dtype)
        same(Tensor(x).sort()[0], np.sort(x))
        same(Tensor(x).sort(descending=True)[1], order(x, 0, descending=True))


@pytest.mark.parametrize("largest", [False, True])
def test_topk_takes_the_first_of_the_order(largest: bool) -> None:
    x = numbers((3, 10, 2))
    for k in (0, 1, 4, 10):
        values, index = Tensor(x).topk(k, dim=1, largest=largest)
        wanted = order(x, 1, descending=largest)[:, :k]
        same(index, wanted)
        same(values, np.take_along_axis(x, wanted, 1))


def test_rows_are_sorted_side_by_side_in_a_few_kernels_whose_steps_stay_inside() -> None:
    values, order = memory(256, 1024).sort()
    for found, itemsize in ((values, 4), (order, 8)):
        made = planned(found)
        assert len(made.kernels) <= 8
        moved = {node for slots in made.buffers for node in slots}
        assert len(moved) <= len(made.kernels) + 1
        assert all(node.dtype.itemsize in (4, itemsize) for node in moved)


def test_values_are_sorted_without_indices_and_gathers() -> None:
    values, order = memory(16, 64).sort()
    for kernel in planned(values).kernels:
        assert all(node.dtype.itemsize == 4 for node in kernel.body.toposort() if is_number(node))
    assert any(
        node.dtype is dtypes.int64
        for kernel in planned(order).kernels
        for node in kernel.body.toposort()
    )


@pytest.mark.parametrize(("rows", "length"), [(1, 65), (7, 64), (8, 31), (9, 40), (30, 2)])
def test_any_number_of_rows_of_any_length_is_sorted(rows: int, length: int) -> None:
    x = np.random.default_rng(rows * length).integers(-40, 40, (rows, length)).astype(np.float32)
    values, index = Tensor(x).sort()
    same(values, np.sort(x))
    same(index, order(x, 1))


@pytest.mark.parametrize(("shape", "k"), [((1, 100), 5), ((3, 4, 40), 16), ((2, 300), 3)])
def test_the_largest_of_many_rows(shape: tuple[int, ...], k: int) -> None:
    x = np.random.default_rng(k).standard_normal(shape).astype(np.float32)
    values, index = Tensor(x).topk(k)
    same(values, -np.sort(-x)[..., :k])
    same(index, order(x, -1, descending=True)[..., :k])


def test_gradients_go_back_to_where_values_came_from() -> None:
    x = distinct((2, 5))
    check(lambda t: t.sort(1)[0], x)
    check(lambda t: t.topk(2, 0, largest=False)[0], x)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("k", [1, 3, 8, 33])
def test_a_few_of_many_agree_with_sorting_all(dtype: str, k: int) -> None:
    x = np.random.default_rng(k).integers(-9, 9, size=(2, 77)).astype(dtype)
    for largest in (False, True):
        values, index = Tensor(x).topk(k, largest=largest)
        wanted = order(x, 1, descending=largest)[:, :k]
        same(index, wanted)
        same(values, np.take_along_axis(x, wanted, 1))


def test_topk_does_not_sort_everything() -> None:
    few, all_of_them = Tensor.empty(1024).topk(5)[1], Tensor.empty(1024).argsort()
    work = [
        sum(
            node.numel()
            for node in map(Tensor._from_uop, x.uop.toposort())
            if node.uop.op is Ops.FLIP
        )
        for x in (few, all_of_them)
    ]
    assert work[0] * 4 < work[1]


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int64", "uint8"])
@pytest.mark.parametrize(("shape", "k"), [((3, 600), 1), ((2, 1024), 32), ((1, 2111), 9)])
def test_very_few_of_very_many_are_found_by_groups(
    shape: tuple[int, int], k: int, dtype: str
) -> None:
    x = np.random.default_rng(k).integers(0, 60, size=shape).astype(dtype)
    x[:, -3:] = x.max()  # equal ones at the end, beyond the last whole group
    for largest in (False, True):
        values, index = Tensor(x).topk(k, largest=largest)
        wanted = order(x, 1, descending=largest)[:, :k]
        same(index, wanted)
        same(values, np.take_along_axis(x, wanted, 1))


def test_nan_is_the_largest_of_many() -> None:
    x = np.random.default_rng(0).standard_normal((2, 900)).astype(np.float32)
    x[0, [5, 899]], x[1, 7] = np.nan, np.inf
    assert Tensor(x).topk(3)[1].numpy()[0, :2].tolist() == [5, 899]
    assert Tensor(x).topk(3)[1].numpy()[1, 0] == 7
    assert not np.isnan(Tensor(x).topk(20, largest=False)[0].numpy()).any()


def test_most_of_many_elements_only_meet_their_group() -> None:
    made = planned(memory(8, 50257).topk(40)[1])
    written = [node for slots in made.buffers for node in slots if node.op is not Ops.BUFFER]
    assert max(int(np.prod(node.shape)) for node in written) <= 8 * 2048


def test_gradients_of_few_of_many_go_back() -> None:
    x = Tensor(np.random.default_rng(1).permutation(700).astype(np.float32)).requires_grad_()
    (x.topk(3)[0] * Tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad is not None
    found = x.grad.numpy()
    assert found[np.argsort(-x.numpy())[:3]].tolist() == [1.0, 2.0, 3.0]
    assert np.count_nonzero(found) == 3
