"""In-place methods with names that end in an underscore."""

from __future__ import annotations

import numpy as np
import pytest

from glassgrad import Tensor
from glassgrad.base.errors import ShapeError


def test_a_tensor_that_takes_over_an_array_does_not_write_to_it() -> None:
    array = np.ones(3, np.float32)
    fresh = Tensor.zeros(3)
    fresh.copy_(Tensor(array)).add_(1).realize()
    assert fresh.tolist() == [2, 2, 2]
    assert array.tolist() == [1, 1, 1]
    assigned = Tensor.zeros(3).assign(Tensor(array))
    assigned.assign(assigned + 1).realize()
    assert array.tolist() == [1, 1, 1]


def test_detached_tensors_share_memory() -> None:
    x = Tensor([1.0, 2.0]).realize()
    x.detach().zero_()
    assert x.tolist() == [0.0, 0.0]


def test_in_place_writes_keep_the_dtype() -> None:
    assert Tensor([1.5, 2.5]).copy_(Tensor([1, 2])).tolist() == [1.0, 2.0]
    half = Tensor([1.0], dtype="float16").realize()
    assert half.add_(Tensor([1.0])).dtype.name == "float16"
    assert half.tolist() == [2.0]
    with pytest.raises(TypeError, match="cannot write float"):
        Tensor([1, 2]).add_(0.5)


@pytest.mark.parametrize("value", [[5, 6], Tensor([5, 6])])
def test_fill_takes_one_number(value: object) -> None:
    with pytest.raises(ShapeError, match="one number"):
        Tensor([1, 2]).fill_(value)
