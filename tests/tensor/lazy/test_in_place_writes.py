"""Writes to aliased memory happen in program order."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from glassgrad import Buffer, Tensor
from glassgrad.base.errors import GradientError
from glassgrad.ir.ops import Ops

ON_BOTH_BACKENDS = True


def windows(count: int = 8) -> tuple[Any, Tensor, Tensor]:
    """Two tensors that see overlapping parts of one array."""
    numbers = np.arange(count, dtype=np.float32)
    return numbers, Tensor.from_memory(numbers[:6]), Tensor.from_memory(numbers[2:])


def test_aliases_see_the_write() -> None:
    numbers, a, b = windows()
    a.assign(b + 1)
    assert b.tolist() == [5, 6, 7, 8, 6, 7]
    assert (b * 2).tolist() == [10, 12, 14, 16, 12, 14]
    assert numbers.tolist() == [3, 4, 5, 6, 7, 8, 6, 7]
    assert a.tolist() == [3, 4, 5, 6, 7, 8]


def test_values_made_before_the_write_keep_the_old_contents() -> None:
    _, a, b = windows()
    before, deep = b * 2, (b + 1).sum()
    a.assign(0)
    assert before.tolist() == [4, 6, 8, 10, 12, 14]
    assert deep.item() == 33
    assert (b * 2).tolist() == [0, 0, 0, 0, 12, 14]


def test_gradients_for_memory_that_was_written_since_are_refused() -> None:
    _, a, b = windows()
    loss = (b * b).sum()
    a.assign(0)
    assert loss.uop.op is Ops.BUFFER
    assert loss.item() == 139
    with pytest.raises(GradientError, match="no part of this value"):
        loss.gradient(b)


def test_slices_are_written_in_program_order() -> None:
    numbers, a, b = windows()
    a[1:4] = b[:3] * 10
    b[0] = 77
    assert numbers.tolist() == [0, 20, 77, 40, 4, 5, 6, 7]
    assert a.tolist() == [0, 20, 77, 40, 4, 5]


def test_writes_to_unshared_memory_stay_pending() -> None:
    numbers = np.zeros(3, np.float32)
    x = Tensor.from_memory(numbers)
    x.assign(x + 1)
    assert x.uop.op is Ops.ASSIGN
    assert numbers.tolist() == [0, 0, 0]
    x.realize()
    assert numbers.tolist() == [1, 1, 1]


def test_exporting_memory_runs_its_pending_write() -> None:
    numbers = np.zeros(4, np.float32)
    x = Tensor.from_memory(numbers[:3])
    x.assign(x + 1)
    y = Tensor.from_memory(numbers[2:])
    assert y.tolist() == [1, 0]
    assert x.tolist() == [1, 1, 1]
    assert numbers.tolist() == [1, 1, 1, 0]


def test_computed_memory_can_be_aliased() -> None:
    x = (Tensor([1.0, 2.0, 3.0]) * 2).realize()
    part = Tensor.from_memory(x.numpy()[1:])
    before = x + 1
    part.assign(part * 10)
    assert (x.tolist(), before.tolist()) == ([2, 40, 60], [3, 5, 7])
    x.assign(x + 1)
    assert part.tolist() == [41, 61]


def test_a_buffer_sees_what_a_tensor_writes() -> None:
    numbers = np.zeros(3, np.float32)
    tensor, buffer = Tensor.from_memory(numbers), Buffer.from_memory(numbers)
    tensor.assign(tensor + 1)
    assert (buffer + 1).to_python() == [2, 2, 2]
    buffer[0] = 5.0
    assert (tensor + 1).tolist() == [6, 2, 2]


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_over_one_memory_agree_with_numpy(seed: int) -> None:
    random = Random(seed)
    ours, theirs = np.arange(10, dtype=np.float32), np.arange(10, dtype=np.float32)
    starts = [random.randrange(6) for _ in range(3)]
    tensors = [Tensor.from_memory(ours[start : start + 5]) for start in starts]
    arrays = [theirs[start : start + 5] for start in starts]
    lazy: list[tuple[Tensor, Any]] = []
    for _ in range(12):
        one, two = random.randrange(3), random.randrange(3)
        if random.random() < 0.5:
            lazy.append((tensors[one] + tensors[two] * 2, arrays[one] + arrays[two] * 2))
        elif random.random() < 0.5 or not lazy:
            tensors[one].assign(tensors[two] * 0.5 + 1)
            arrays[one][...] = arrays[two] * 0.5 + 1
        else:
            value, wanted = random.choice(lazy)
            tensors[one][1:4] = value[:3]
            arrays[one][1:4] = wanted[:3]
    for value, wanted in lazy:
        np.testing.assert_allclose(value.numpy(), wanted)
    for tensor, array in zip(tensors, arrays, strict=True):
        np.testing.assert_allclose(tensor.numpy(), array)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("look", [False, True])
def test_every_write_to_a_part_reaches_the_whole(dtype: str, look: bool) -> None:
    x = Tensor(np.zeros((3, 4), dtype))
    row, column, every_other = x[0], x[:, 3], x[:, ::2]
    for part in (row, column, every_other) if look else ():
        part.tolist()  # looking changes nothing
    row += 1
    x.realize()
    row += 1
    row[1] = 7
    row[Tensor([0, 2])] = 9
    wanted = np.zeros((3, 4), dtype)
    wanted[0] = [9, 7, 9, 2]
    assert row.tolist() == wanted[0].tolist()
    assert x.tolist() == wanted.tolist()
    again = x[:, ::2]
    again += 1
    wanted[:, ::2] += 1
    assert x.tolist() == wanted.tolist()


@pytest.mark.parametrize("is_computed", [False, True])
def test_a_part_stays_a_part_when_the_whole_is_written_to(is_computed: bool) -> None:
    x = Tensor(np.zeros((2, 2), np.float32))
    row = x[0]
    x += 1
    if is_computed:
        x.realize()
    row[0] = 7
    assert row.tolist() == [7, 1]
    assert x.tolist() == [[7, 1], [1, 1]]


def test_views_made_under_no_grad_can_be_written() -> None:
    x = Tensor(np.zeros((2, 2), np.float32))
    with Tensor.no_grad():
        row = x[1]
        row += 3
    assert x.tolist() == [[0, 0], [3, 3]]


def test_a_value_that_is_written_again_after_another_one_is_there_in_the_end() -> None:
    x = Tensor(np.arange(6, dtype=np.int32))
    x += 0
    x += -1
    x += 1
    assert x.tolist() == [0, 1, 2, 3, 4, 5]


def test_only_the_last_of_several_writes_is_stored() -> None:
    x = Tensor(np.arange(6, dtype=np.int32))
    for number in range(1, 4):
        x += number
    (kernel,) = x.schedule().kernels
    assert sum(node.op is Ops.STORE for node in kernel.body.toposort()) == 1
    assert x.tolist() == [6, 7, 8, 9, 10, 11]


def test_writing_nothing_changes_nothing() -> None:
    x = Tensor([1.5]).realize()
    view = x.unsqueeze(1)
    before = view.asinh()
    view[0:1, 0:1] = 3
    view[1:1, 0:1] *= 2
    Tensor.realize(view, before)
    assert (x.tolist(), view.tolist()) == ([3], [[3]])
    np.testing.assert_allclose(before.numpy(), np.arcsinh([[1.5]]), rtol=1e-6)
    empty = Tensor.zeros(0, 3)
    empty += 1
    assert empty.tolist() == []
