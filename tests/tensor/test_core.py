"""Live tensors, devices and operands."""

from __future__ import annotations

import gc

import numpy as np

from glassgrad import Tensor
from glassgrad.tensor.core import copy_to_device, device_of, live_tensors


def test_live_tensors_are_listed_until_they_are_freed() -> None:
    x = Tensor([1.0])
    assert any(tensor is x for tensor in live_tensors())
    number = id(x)
    del x
    gc.collect()
    assert all(id(tensor) != number for tensor in live_tensors())


def test_live_tensors_are_compared_by_identity() -> None:
    made = [Tensor([1.0]) for _ in range(50)]
    assert sum(any(tensor is one for one in made) for tensor in live_tensors()) == 50


def test_the_device_is_that_of_the_first_buffer() -> None:
    x = Tensor([1.0], device="CPU:1")
    assert device_of(((x + 1) * 2).uop) == "CPU:1"
    assert device_of(Tensor(1.0).uop) == "CPU"
    assert device_of(copy_to_device(x.uop, "CPU")) == "CPU"
    assert copy_to_device(x.uop, "CPU:1") is x.uop


def test_numbers_of_numpy_are_numbers() -> None:
    x = Tensor([1.0])
    assert (x + np.float64(1)).uop is (x + 1.0).uop
    assert (x + np.int64(1)).uop is (x + 1).uop
