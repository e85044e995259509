from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassgrad import Tensor, TinyJit
from glassgrad.base.counters import GlobalCounters
from glassgrad.base.dtype import dtypes
from glassgrad.base.errors import AxisError
from glassgrad.engine.cache.graph_keys import KERNELS
from glassgrad.engine.capture.recorder import recording
from glassgrad.engine.pipeline import realize
from glassgrad.ir.ops import Ops

SHAPE = (6, 5)


def computed(*values: int, dtype: str = "int32") -> Tensor:
    """Indices that are known only after they are computed."""
    return Tensor(np.array(values, dtype=dtype)) + 0


def table() -> Tensor:
    return Tensor(np.arange(30, dtype=np.float32).reshape(SHAPE))


USES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "rows": lambda x, i: x[i],
    "columns": lambda x, i: x.permute((1, 0))[:, i],
    "one of two": lambda x, i: x[i, i * 0],
    "gather": lambda x, i: x.gather(0, i.reshape(-1, 1)),
    "scatter": lambda x, i: x.scatter(0, i.reshape(-1, 1), 1.0),
    "scatter_reduce": lambda x, i: x.scatter_reduce(
        0, i.reshape(-1, 1), x[: i.shape[0], :1], "sum"
    ),
    "the gradient": lambda x, i: (x[i] * 2).sum().gradient(x)[0],
    "a sum of rows": lambda x, i: x[i].sum(0),
    "padded rows": lambda x, i: x[i].pad(((1, 2), (0, 0))),
    "rows of products": lambda x, i: (x @ x.permute((1, 0)))[i],
}


@pytest.mark.parametrize("device", ["CPU", "PYTHON", "CLANG"])
@pytest.mark.parametrize("use", USES)
def test_an_index_out_of_range_is_an_error_wherever_it_is_used(use: str, device: str) -> None:
    for bad in (6, 1000, 2**30):
        with pytest.raises(IndexError, match=f"index {bad} is out of range for axis . of size 6"):
            USES[use](table().to(device), computed(0, bad, 3).to(device)).realize()


@pytest.mark.parametrize("use", USES)
def test_indices_in_range_pass(use: str) -> None:
    known = Tensor([0, 5, 3])
    found = USES[use](table(), computed(0, 5, 3)).numpy()
    np.testing.assert_array_equal(found, USES[use](table(), known).numpy())


def test_negative_indices_count_from_the_end() -> None:
    x = table()
    assert x[computed(-1, -6)].numpy().tolist() == x.numpy()[[-1, -6]].tolist()
    with pytest.raises(AxisError, match="index -7 is out of range for axis 0 of size 6"):
        x[computed(-1, -7)].realize()


def test_gather_does_not_wrap() -> None:
    with pytest.raises(AxisError, match=r"index -1 is out of range[\s\S]*use 0 to 5"):
        table().gather(0, computed(0, -1).reshape(2, 1)).realize()


def test_the_error_names_the_line_of_the_lookup() -> None:
    x = table()
    found = x[computed(0, 9)]  # the line of the error
    total = found.sum() + 1
    with pytest.raises(AxisError, match="the line of the error"):
        total.item()


def test_equal_lookups_share_a_plan_and_still_name_their_own_lines() -> None:
    x = table()
    fine = x[computed(0, 1)].realize()
    assert fine.shape == (2, 5)
    with pytest.raises(AxisError, match="the second line"):
        x[computed(0, 9)].realize()  # the second line


def test_of_several_lookups_the_wrong_one_is_named() -> None:
    x = table()
    first = x[computed(0, 1)]
    second = x.reshape(5, 6)[computed(2, 7)]
    with pytest.raises(
        AxisError, match=r"index 7 is out of range for axis 0 of size 5[\s\S]*second"
    ):
        (first.sum() + second.sum()).realize()


def test_int64_indices_are_not_truncated() -> None:
    for dtype in ("int64", "uint64"):
        with pytest.raises(AxisError, match=f"index {2**32} is out of range"):
            table()[computed(0, 2**32, dtype=dtype)].realize()


def test_an_index_dtype_within_the_bounds_is_not_checked() -> None:
    x = Tensor.zeros(256, 2).contiguous()
    rows = x[Tensor([1, 2], dtype=dtypes.uint8) + 0]
    assert all(node.op is not Ops.CHECK for node in rows.uop.toposort())


def test_padded_indices_are_not_checked() -> None:
    """In the padding the index would be 0 - 3, which is not an error."""
    x = Tensor([10.0, 20.0])
    found = x.gather(0, computed(3, 4) - 3).pad((2, 2))
    assert found.tolist() == [0, 0, 10, 20, 0, 0]


def test_an_empty_axis_cannot_be_indexed() -> None:
    with pytest.raises(AxisError, match="axis 0, which is empty"):
        Tensor.zeros(0, 3)[computed(0)]
    assert Tensor.zeros(0, 3)[computed(0)[:0]].shape == (0, 3)


def test_checks_add_no_kernels_and_equal_lookups_are_one_kernel() -> None:
    x, i, j = table().realize(), computed(0, 5).realize(), computed(3, 1).realize()
    GlobalCounters.reset()
    x[i].realize()
    assert GlobalCounters.kernel_count == 1
    KERNELS.clear()  # other tests of this process may fill it
    y = Tensor(np.ones(SHAPE, np.float32))
    (x[i] * 1.5).realize()
    assert len(KERNELS) == 1
    realize([(y[j] * 1.5).uop])
    assert len(KERNELS) == 1
    GlobalCounters.reset()
    (x[i] * 3).sum().gradient(x)[0].realize()
    assert GlobalCounters.kernel_count == 1


def test_after_an_error_the_next_run_is_clean() -> None:
    x = table()
    with pytest.raises(AxisError):
        x[computed(6)].realize()
    assert x[computed(5)].numpy().tolist() == [[25, 26, 27, 28, 29]]


def test_a_captured_function_checks_the_indices_of_each_call() -> None:
    x = table().realize()

    @TinyJit
    def rows(i: Tensor) -> Tensor:
        return (x[i] * 2).sum(1).realize()  # inside of a capture

    for _ in range(3):
        assert rows(computed(0, 5).realize()).tolist() == [20, 270]
    with pytest.raises(AxisError, match=r"index -8 is out of range[\s\S]*inside of a capture"):
        rows(computed(-8, 1).realize())
    assert rows(computed(5, 0).realize()).tolist() == [270, 20]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-9, 9), min_size=1, max_size=40), st.booleans())
def test_lookups_agree_with_numpy_or_fail_with_it(indices: list[int], as_column: bool) -> None:
    x = np.arange(30, dtype=np.float32).reshape(SHAPE)
    i = np.array(indices, dtype=np.int32)
    try:
        expected = x[:, i] if as_column else x[i]
    except IndexError:
        expected = None
    ours = Tensor(x)[:, Tensor(i) + 0] if as_column else Tensor(x)[Tensor(i) + 0]
    if expected is None:
        with pytest.raises(IndexError):
            ours.numpy()
    else:
        np.testing.assert_array_equal(ours.numpy(), expected)


def test_a_failed_run_is_not_captured() -> None:
    with recording(is_strict=False) as recorder:
        with pytest.raises(AxisError):
            table()[computed(9)].realize()
        (table() + 1).realize()
    assert [len(run.plan.cells) for run in recorder.runs] == [0]


def test_all_error_cells_are_cleared_after_a_replay() -> None:
    """Of two bad indices only the first is reported, and both cells are cleared."""
    step = TinyJit(lambda x, i: (x[i].contiguous().sum(0).realize(), x.flip(0)[i].max().realize()))
    x = table().realize()
    good, bad = (Tensor(np.array(v, np.int32)).realize() for v in ([1, 2], [1, 70]))
    for _ in range(3):
        want = [value.tolist() for value in step(x, good)]
    with pytest.raises(AxisError, match="index 70"):
        step(x, bad)
    assert [value.tolist() for value in step(x, good)] == want
