"""Realization: writes run once, and older readers see the old contents."""

from __future__ import annotations

import gc
from random import Random

import numpy as np
import pytest

import glassgrad.tensor.lazy.realize
from glassgrad import Context, GlobalCounters, Tensor
from glassgrad.ir.ops import Ops
from glassgrad.tensor.lazy.buffer_versions import current_buffer
from glassgrad.tensor.lazy.collect import collect_values, graph_to_compute

ON_BOTH_BACKENDS = True


def test_a_realised_tensor_is_a_buffer_and_is_not_computed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = Tensor([1.0, 2.0])
    y = (x + 1).realize()
    assert y.uop.op is Ops.BUFFER

    def fail(values: object) -> object:
        raise AssertionError("computed again")

    monkeypatch.setattr(glassgrad.tensor.lazy.realize, "plan_and_run", fail)
    assert y.realize().tolist() == [2, 3]


def test_older_graphs_use_values_realized_since() -> None:
    x = Tensor([1.0, 2.0])
    y = x + 1
    z = y * 2
    y.realize()
    (value,) = graph_to_compute(collect_values([z.uop])[0])
    assert Ops.ADD not in {node.op for node in value.toposort()}
    assert z.tolist() == [4, 6]


def test_a_write_runs_once_however_often_it_is_read() -> None:
    x = Tensor([1, 2]).realize()
    x += 1
    assert (x * 10).tolist() == [20, 30]
    assert x.tolist() == [2, 3]
    assert (x * 10).tolist() == [20, 30]


def test_lazy_tensors_made_before_a_write_see_the_old_contents() -> None:
    x = Tensor([1, 2]).realize()
    before = x * 10
    x += 1
    after = x * 10
    x.realize()
    assert before.uop.op is Ops.BUFFER  # it had to be computed before the write
    assert (before.tolist(), after.tolist()) == ([10, 20], [20, 30])


def test_a_tensor_between_two_writes_sees_the_first() -> None:
    x = Tensor([1, 2]).realize()
    x += 1
    between = x * 10
    x += 1
    x.realize()
    assert (between.tolist(), x.tolist()) == ([20, 30], [3, 4])


def test_reading_between_two_writes_does_not_lose_the_second() -> None:
    x = Tensor([1, 2]).realize()
    old = x * 100
    x += 1
    between = x * 10
    x.assign(x + old)
    assert between.tolist() == [20, 30]
    assert x.tolist() == [102, 203]
    assert old.tolist() == [100, 200]


def test_another_value_in_the_same_memory_keeps_its_contents() -> None:
    x = Tensor([1, 2]).realize()
    alias = x.int()
    x += 1
    x.realize()
    assert (alias.tolist(), x.tolist()) == ([1, 2], [2, 3])


def test_another_value_with_the_same_write_keeps_that_version() -> None:
    x = Tensor([1, 2]).realize()
    x += 1
    alias = x.int()
    x += 1
    assert alias.realize(x).tolist() == [2, 3]
    assert x.tolist() == [3, 4]


def test_two_tensors_that_hold_one_version_do_not_write_over_each_other() -> None:
    x = Tensor([1, 2]).realize()
    y = x.int()
    x += 1
    y += 10
    assert (x.tolist(), y.tolist()) == ([2, 3], [11, 12])
    x += 1
    y = x.int()
    y += 10
    x.realize()
    x += 1
    assert (x.tolist(), y.tolist()) == ([4, 5], [13, 14])


def test_equal_expressions_are_recomputed_after_an_overwrite() -> None:
    x = Tensor([1.0, 2.0])
    y = (x + 1).realize()
    keep = x + 1  # the node lives on
    y *= 5
    y.realize()
    assert (x + 1).tolist() == [2, 3]
    assert keep.tolist() == [2, 3]
    assert y.tolist() == [10, 15]


def test_a_write_keeps_the_memory() -> None:
    array = np.array([1.0, 2.0], np.float32)
    x = Tensor.from_memory(array)
    x += 1
    x.realize()
    assert array.tolist() == [2, 3]
    assert np.shares_memory(x.numpy(), array)


def test_read_only_memory_is_not_written() -> None:
    data = bytes([1, 2, 3])
    x = Tensor(data)
    x += 1
    assert x.tolist() == [2, 3, 4]
    assert data == bytes([1, 2, 3])


def test_values_without_a_holder_are_not_computed_for_a_write() -> None:
    x = Tensor([1, 2]).realize()
    _ = x * 10
    del _
    x += 1
    roots, writes, *_ = collect_values([x.uop])
    assert roots == writes == [x.uop]


def test_assigning_to_a_value_that_has_no_memory_replaces_it() -> None:
    x = Tensor([1, 2]) + 1
    x.assign(x * 10)
    assert Ops.ASSIGN not in {node.op for node in x.uop.toposort()}
    assert x.tolist() == [20, 30]


def test_swapping_two_tensors_reads_both_before_writing() -> None:
    x, y = Tensor([1, 2]).realize(), Tensor([3, 4]).realize()
    a, b = x + 0, y + 0
    x.assign(b)
    y.assign(a)
    x.realize(y)
    assert (x.tolist(), y.tolist()) == ([3, 4], [1, 2])


def test_current_is_the_buffer_itself() -> None:
    x = Tensor([1, 2])
    assert current_buffer(x.uop) is x.uop
    assert current_buffer((x + 1).uop) is None


@pytest.mark.parametrize("seed", range(300))
def test_random_programs_of_writes_and_reads_agree_with_numpy(seed: int) -> None:
    """Tensors hold lazy values; arrays hold what they must be, computed at once."""
    rng = Random(seed)
    arrays = [np.array([rng.randrange(9) for _ in range(3)], np.int64) for _ in range(3)]
    tensors = [Tensor(array.copy()) for array in arrays]
    for _ in range(25):
        i, j = rng.randrange(len(tensors)), rng.randrange(len(tensors))
        kind = rng.randrange(8)
        if kind == 0:
            tensors.append(tensors[i] + tensors[j])
            arrays.append(arrays[i] + arrays[j])
        elif kind == 1:
            tensors[i].assign(tensors[j] * 2 + tensors[i])
            arrays[i][:] = arrays[j] * 2 + arrays[i]
        elif kind == 2:
            at = rng.randrange(3)
            tensors[i][at:] = tensors[j][: 3 - at]
            arrays[i][at:] = arrays[j][: 3 - at].copy()
        elif kind == 3:
            tensors[i] += 1
            arrays[i] += 1
        elif kind == 4:
            tensors[i].realize(tensors[j])
        elif kind == 5:
            tensors += [tensors[i].reshape(3), tensors[j].cast("int64")]
            arrays += [arrays[i], arrays[j].copy()]
        elif kind == 6 and len(tensors) > 3:
            del tensors[i], arrays[i]
        else:
            assert tensors[i].tolist() == arrays[i].tolist()
    for tensor, array in zip(tensors, arrays, strict=True):
        assert tensor.tolist() == array.tolist()


def test_without_memory_the_largest_tensors_are_named_with_their_lines(backend: str) -> None:
    if backend == "interpreted":
        pytest.skip("the reference has no memory limit")
    large = (Tensor.ones(1000, 100) * 2).contiguous().realize()
    gc.collect()
    limit = GlobalCounters.mem_used + 1000
    with Context(MEM_LIMIT=limit), pytest.raises(MemoryError) as caught:
        (large + 1).contiguous().realize()
    assert "400,000 bytes  (1000, 100) float32" in str(caught.value)
    assert "large = (Tensor.ones(1000, 100) * 2).contiguous().realize()" in str(caught.value)
    assert large.sum().item() == 200_000  # nothing is lost
