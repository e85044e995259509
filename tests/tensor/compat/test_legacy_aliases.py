"""Older names and short forms."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from support.values.arrays import numbers

from glassgrad import Tensor, Variable, dtypes
from glassgrad.base.errors import FormatError, ShapeError
from glassgrad.ir.fold import threefry


def test_lazydata_kernelize_and_schedules() -> None:
    x = Tensor(numbers((3, 4))) + 1
    assert x.lazydata is x.uop
    assert x.kernelize() is x
    schedule, variables = x.schedule_with_vars()
    assert len(schedule.kernels) == 1
    assert variables == {}
    count = Variable("count", 1, 3).bind(2)
    assert Tensor(numbers((3, 4)))[:count].sum().schedule_with_vars()[1] == {"count": 2}


def test_acc_dtype_is_dtype() -> None:
    x = Tensor(numbers((2, 2), "float16"))
    image, kernel = Tensor.ones(1, 1, 2, 2).half(), Tensor.ones(1, 1, 2, 2).half()
    for value in (
        x.sum(acc_dtype=dtypes.float32),
        x.prod(acc_dtype=dtypes.float32),
        x.dot(x, acc_dtype=dtypes.float32),
        x.matmul(x, acc_dtype=dtypes.float32),
        image.conv2d(kernel, acc_dtype=dtypes.float32),
        Tensor.einsum("ij,jk->ik", x, x, acc_dtype=dtypes.float32),
    ):
        assert value.dtype is dtypes.float32
    assert x.sum(dtype=dtypes.float64, acc_dtype=dtypes.float32).dtype is dtypes.float64


def test_memory_at_an_address_is_shared() -> None:
    array = np.arange(6, dtype="int16")
    x = Tensor.from_blob(array.ctypes.data, (2, 3), dtype="int16", owner=array)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    array[0] = 7
    assert x.tolist()[0][0] == 7


def test_a_file_becomes_bytes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"glass")
    assert bytes(Tensor.from_url(str(path)).tolist()) == b"glass"


def test_a_file_that_becomes_bytes_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"glass")
    digest = sha256(b"glass").hexdigest()
    for place in (str(path), path.as_uri()):
        assert bytes(Tensor.from_url(place, sha256=digest).tolist()) == b"glass"
        with pytest.raises(FormatError, match="has the SHA-256 hash"):
            Tensor.from_url(place, sha256="0" * 64)


def test_constants_and_sums_of_many() -> None:
    assert Tensor.const(2.5, dtypes.float64).dtype is dtypes.float64
    x = Tensor([1.0, 2.0])
    assert x.ufix(3).tolist() == 3.0
    assert x.usum().tolist() == [1, 2]
    alone = x.usum()
    alone += 10
    assert x.tolist() == [1, 2]
    assert x.usum(x, 1).tolist() == [3, 5]
    assert x.uprod(x, x).tolist() == [1, 8]
    assert (x.max_shape, x.max_numel()) == ((2,), 2)


def test_threefry_scrambles_counters_by_a_key() -> None:
    counters = Tensor([0, 1, 2], dtype="uint64")
    one = counters.threefry(Tensor(5, dtype="uint64")).tolist()
    assert len(set(one)) == 3
    assert one == counters.threefry(Tensor(5, dtype="uint64")).tolist()
    assert one != counters.threefry(Tensor(6, dtype="uint64")).tolist()


def test_random_bits_are_the_words_of_threefry() -> None:
    key, counter = Tensor([1, 2], dtype="uint32"), Tensor([2**32 - 1, 0], dtype="uint32")
    wanted = [threefry(2**32 - 1 + i, 1 | 2 << 32) for i in range(3)]
    words = [half for word in wanted for half in (word & 0xFFFFFFFF, word >> 32)]
    assert Tensor.random_bits(key, counter, 5).tolist() == words[:5]
    assert Tensor.random_bits(key, counter, 0).tolist() == []
    with pytest.raises(ShapeError, match="two uint32s, not int32 of shape"):
        Tensor.random_bits(Tensor([1, 2]), counter, 5)
    with pytest.raises(ShapeError, match="cannot make -1 random words"):
        Tensor.random_bits(key, counter, -1)


def test_linear_schedules_are_schedules() -> None:
    x = Tensor([1, 2]) + 1
    assert len(x.schedule_linear().kernels) == 1
    schedule, variables = x.linear_with_vars()
    assert len(schedule.kernels) == 1 and variables == {}
