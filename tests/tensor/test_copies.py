"""copy, deepcopy and pickle: the same values in memory of their own."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import numpy as np
import pytest

from glassgrad import Tensor, nn
from glassgrad.base.dtype import dtypes
from glassgrad.base.errors import ShapeError
from glassgrad.nn.optim import SGD

DTYPES = [
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
    "float16", "bfloat16", "float32", "float64", "fp8e4m3", "fp8e5m2",
]  # fmt: skip
WAYS = [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
Way = Callable[[Tensor], Tensor]
every_way = pytest.mark.parametrize("way", WAYS, ids=["copy", "deepcopy", "pickle"])


@every_way
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2, 3), (), (0, 3)])
def test_values_shape_and_dtype_are_the_same(way: Way, dtype: str, shape: tuple[int, ...]) -> None:
    x = Tensor(np.arange(6).reshape(2, 3)[: shape[0] if shape else 1]).cast(dtype)
    x = x if shape else x[0, 1]
    y = way(x)
    assert y.shape == shape and y.dtype is x.dtype and y.tolist() == x.tolist()


@every_way
def test_a_write_to_one_does_not_reach_the_other(way: Way) -> None:
    x = Tensor([1.0, 2.0]).realize()
    y = way(x)
    y += 1
    assert (x.tolist(), y.tolist()) == ([1, 2], [2, 3])
    x.assign(Tensor([7.0, 8.0]))
    assert (x.tolist(), y.tolist()) == ([7, 8], [2, 3])


@every_way
def test_copies_do_not_share_external_memory(way: Way) -> None:
    theirs = np.ones(3, np.float32)
    y = way(Tensor(theirs))
    y *= 2
    theirs[:] = 5
    assert y.tolist() == [2, 2, 2]


@every_way
def test_random_numbers_that_are_still_to_come_are_the_same(way: Way) -> None:
    x = Tensor.rand(5)
    assert way(x).tolist() == x.tolist()


@every_way
def test_slices_and_transposes_are_copied_as_shown(way: Way) -> None:
    x = Tensor(np.arange(12).reshape(3, 4)).realize()
    assert way(x.T[1:3]).tolist() == x.T[1:3].tolist()


@every_way
def test_what_is_trained_stays_trained(way: Way) -> None:
    for flag in (True, False):
        assert way(Tensor([1.0], requires_grad=flag)).is_param is flag


def test_gradients_are_copied_and_not_shared() -> None:
    x = Tensor([3.0], requires_grad=True)
    (x * x).sum().backward()
    y = copy.deepcopy(x)
    assert x.grad is not None and y.grad is not None and y.grad.tolist() == [6]
    y.grad += 1
    assert x.grad.tolist() == [6]


def test_a_copied_model_is_trained_alone_and_keeps_what_it_shares() -> None:
    model = nn.Linear(2, 3)
    model.tied = model.weight  # type: ignore[attr-defined]
    before = model.weight.tolist()
    other = copy.deepcopy(model)
    assert other.tied is other.weight  # type: ignore[attr-defined]
    with Tensor.train():
        optimizer = SGD([other.weight], lr=1.0)
        other(Tensor.ones(4, 2)).sum().backward()
        optimizer.step()
    assert model.weight.tolist() == before != other.weight.tolist()


def test_a_model_comes_back_from_a_pickle() -> None:
    model = nn.Linear(2, 3)
    again = pickle.loads(pickle.dumps(model))
    x = Tensor.ones(4, 2)
    assert again(x).tolist() == model(x).tolist()


def test_a_pickle_of_a_file_s_elements_comes_back_on_the_cpu(tmp_path: object) -> None:
    path = f"{tmp_path}/elements"
    np.arange(4, dtype=np.uint8).tofile(path)
    again = pickle.loads(pickle.dumps(Tensor.empty(4, dtype=dtypes.uint8, device=f"DISK:{path}")))
    assert (again.device, again.tolist()) == ("CPU", [0, 1, 2, 3])


def test_one_number_is_written_in_any_format() -> None:
    assert f"{Tensor(3.14159):.2f} {Tensor([7]):4d}" == "3.14    7"
    x = Tensor([1.0, 2.0])
    assert f"{x}" == str(x)
    with pytest.raises(ShapeError, match="exactly one element"):
        f"{x:.2f}"


def test_a_pickle_of_a_view_holds_only_its_elements() -> None:
    whole = Tensor.zeros(100_000).contiguous().realize()
    assert len(pickle.dumps(whole[:10])) < 2000 < len(pickle.dumps(whole))
