"""Shared memory with other libraries, in both directions."""

from __future__ import annotations

import array
import ctypes
import gc
import mmap
import sys
from typing import Any

import numpy as np
import pytest
from support.oracle import oracle

from glassgrad import Buffer, Tensor, dtypes
from glassgrad.base.errors import DTypeError
from glassgrad.memory import export_count, get

ON_BOTH_BACKENDS = True


@pytest.mark.parametrize(
    ("obj", "dtype"),
    [
        (array.array("f", [1.0, 2.0]), dtypes.float32),
        ((ctypes.c_int16 * 2)(1, 2), dtypes.int16),
        (memoryview(array.array("q", [1, 2])), dtypes.int64),
        (np.array([1, 2], np.uint8), dtypes.uint8),
        (Buffer([1.0, 2.0]), dtypes.float32),
        (get(array.array("d", [1.0, 2.0])), dtypes.float64),
    ],
)
def test_a_tensor_wraps_any_registered_memory(obj: Any, dtype: Any) -> None:
    for tensor in (Tensor(obj), Tensor.from_memory(obj)):
        assert tensor.dtype is dtype
        assert tensor.tolist() == [1, 2]
    assert Tensor(obj, dtype="int32").tolist() == [1, 2]


def test_narrow_floats_keep_their_dtype_on_the_way_through_a_buffer() -> None:
    narrow = Buffer([1.5, -2.0], "bfloat16")
    for obj in (narrow, get(narrow)):
        tensor = Tensor(obj)
        assert tensor.dtype is dtypes.bfloat16
        assert tensor.float().tolist() == [1.5, -2.0]


def test_a_mapped_file_is_not_copied() -> None:
    pages = mmap.mmap(-1, 16)
    tensor = Tensor.from_memory(pages, dtype="int32")
    pages[4] = 9
    assert tensor.tolist() == [0, 9, 0, 0]


def test_kernels_read_later_writes_to_shared_memory() -> None:
    numbers = np.zeros((2, 3), np.float32)
    tensor = Tensor.from_memory(numbers[:, ::-1])
    assert (tensor + 1).tolist() == [[1, 1, 1], [1, 1, 1]]
    numbers[0, 0] = 5
    assert (tensor + 1).tolist() == [[1, 1, 6], [1, 1, 1]]


def test_an_expression_written_again_sees_what_others_wrote_meanwhile() -> None:
    numbers = np.zeros(2, np.float32)
    x = Tensor.from_memory(numbers)
    y, deep = x + 1, (x + 1) * 2
    assert (y.numpy().tolist(), deep.numpy().tolist()) == ([1, 1], [2, 2])
    numbers[0] = 9
    assert (x + 1).tolist() == [10, 1]
    assert ((x + 1) * 2).tolist() == [20, 2]
    assert x.clone().tolist() == [9, 0]
    assert (y.tolist(), deep.tolist(), (y * 3).tolist()) == ([1, 1], [2, 2], [3, 3])


def test_an_expression_written_again_sees_what_was_written_into_a_tensor() -> None:
    x = (Tensor([1.0, 2.0]) * 2).realize()
    y = x + 1
    assert y.tolist() == [3, 5]
    x.numpy()[0] = 50
    assert (x + 1).tolist() == [51, 5]
    y.numpy()[1] = 60  # what holds a value is written, and not what equal expressions are
    assert (x + 1).tolist() == [51, 5]
    assert (y.tolist(), (y + 1).tolist()) == ([3, 60], [4, 61])


def test_a_realized_value_keeps_its_gradient() -> None:
    numbers = np.array([1.0, 2.0], np.float32)
    x = Tensor.from_memory(numbers)
    loss = (x * x).sum()
    assert loss.item() == 5
    loss.backward()
    assert x.grad is not None and x.grad.tolist() == [2, 4]


def test_writing_into_a_constant_that_was_computed_changes_no_other() -> None:
    x = Tensor([1.0, 2.0])
    x.const_like(2.0).realize().numpy()[...] = 5
    x.const_like(2.0).numpy()[...] = 5
    assert (x * 2.0).tolist() == [2, 4]


def test_numpy_and_data_share_the_memory_of_a_tensor() -> None:
    tensor = (Tensor([[1.0, 2.0], [3.0, 4.0]]) * 2).realize()
    seen, again = np.asarray(tensor), tensor.numpy()
    assert np.shares_memory(seen, again)
    memoryview(tensor.data())[0, 1] = 50.0
    assert seen[0, 1] == 50
    assert (tensor + 1).tolist() == [[3, 51], [7, 9]]
    assert np.from_dlpack(tensor)[0, 1] == 50
    with get(tensor) as view:
        assert view[0, 1] == 50
    assert Buffer.from_memory(tensor).to_python() == [[2, 50], [6, 8]]


def test_numpy_may_ask_for_another_dtype_or_a_copy() -> None:
    tensor = Tensor([1.5, 2.5]).realize()
    assert np.asarray(tensor, dtype=np.float64).tolist() == [1.5, 2.5]
    assert not np.shares_memory(np.array(tensor), tensor.numpy())
    with pytest.raises(DTypeError, match="without a copy"):
        tensor.__array__(np.int32, copy=False)


def test_an_array_outlives_its_tensor() -> None:
    seen = np.asarray((Tensor([1, 2, 3]) + 1).realize())
    gc.collect()
    assert seen.tolist() == [2, 3, 4]


def test_torch_tensors_come_and_go_without_a_copy() -> None:
    torch = oracle("torch")
    theirs = torch.arange(6, dtype=torch.float32).reshape(2, 3).t()
    ours = Tensor.from_dlpack(theirs)
    assert ours.shape == (3, 2)
    theirs[2, 1] = 50
    assert (ours * 2).tolist() == [[0, 6], [2, 8], [4, 100]]
    back = torch.from_dlpack(ours)
    assert back.data_ptr() == theirs.data_ptr()
    assert Tensor(theirs).tolist() == theirs.tolist()
    narrow = torch.tensor([1.5, -2.0], dtype=torch.bfloat16)
    assert Tensor(narrow).dtype is dtypes.bfloat16
    assert torch.from_dlpack(Tensor([1.5], dtype="bfloat16").realize()).dtype is torch.bfloat16


def test_an_address_is_a_tensor() -> None:
    numbers = np.arange(6, dtype=np.int32)
    address = numbers.ctypes.data
    tensor = Tensor.from_blob(address, (2, 3), dtype=dtypes.int32, owner=numbers)
    del numbers
    gc.collect()
    assert tensor.tolist() == [[0, 1, 2], [3, 4, 5]]
    for bad in (0, -8, True, 1.5, None):
        with pytest.raises(DTypeError, match="an address is a positive number"):
            Tensor.from_blob(bad, (1,))  # type: ignore[arg-type]


def test_memory_is_given_back_with_the_last_tensor() -> None:
    raw = bytearray(64)
    before = sys.getrefcount(raw)
    tensor = Tensor.from_memory(raw)
    result = tensor + 1
    assert export_count(raw) == 1
    assert result.tolist() == [1] * 64
    del tensor, result
    gc.collect()
    assert export_count(raw) == 0
    assert sys.getrefcount(raw) == before


def test_read_only_memory_is_copied_when_written() -> None:
    tensor = Tensor.from_memory(b"abc")
    tensor.assign(tensor + 1).realize()
    assert tensor.tolist() == [98, 99, 100]


@pytest.mark.parametrize("obj", [None, object(), "text", {1: 2}])
def test_what_shares_no_memory_is_no_tensor(obj: Any) -> None:
    with pytest.raises(TypeError):
        Tensor(obj)
    with pytest.raises(TypeError, match="does not export its memory"):
        Tensor.from_memory(obj)
