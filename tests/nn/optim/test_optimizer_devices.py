"""Optimisers on two devices; the interpreter of test_optimizer.py knows one only."""

from __future__ import annotations

import pytest

from glassgrad import Tensor
from glassgrad.base.errors import DeviceError
from glassgrad.nn.optim import SGD, Adam


def test_an_optimiser_keeps_its_numbers_where_its_parameters_are() -> None:
    w = Tensor.ones(2, device="PYTHON").realize()
    optimizer = Adam([w], lr=0.25)
    w.square().sum().backward()
    optimizer.step()
    assert optimizer.device == optimizer.lr.device == optimizer.mean[0].device == "PYTHON"
    assert w.tolist() == [0.75, 0.75]


def test_parameters_elsewhere_are_refused() -> None:
    with pytest.raises(DeviceError, match="on CPU cannot update a parameter on PYTHON"):
        SGD([Tensor.ones(2, device="PYTHON").realize()], device="CPU")
