"""The device that a graph runs on."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiler.schedules import leaf

from glassgrad.base.dtype import dtypes
from glassgrad.base.errors import DeviceError
from glassgrad.engine.device_choice import copy_to_device, plan_device
from glassgrad.engine.pipeline import realize
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.memory.view import View


def on(device: str, values: list[float]) -> UOp:
    host = View.from_host(np.array(values, np.float32))
    return UOp(Ops.BUFFER, dtypes.float32, (), copy_to_device(host, device, realize))


def test_a_graph_runs_where_its_buffers_are() -> None:
    assert plan_device([leaf([1.0])], None).name == "CPU"
    assert plan_device([on("CPU:1", [1.0])], None).name == "CPU:1"
    (view,) = realize([on("CPU:1", [1.0, 2.0]) + 1.0])
    assert view.device == "CPU:1"
    assert view.numpy().tolist() == [2.0, 3.0]


def test_without_buffers_the_wanted_device_is_used() -> None:
    assert plan_device([], "CPU:1").name == "CPU:1"
    (view,) = realize([UOp(Ops.IOTA, dtypes.int32, (), 4)], "CPU:1")
    assert view.device == "CPU:1"


def test_buffers_of_two_devices_are_an_error() -> None:
    with pytest.raises(DeviceError, match="operands on CPU and CPU:1"):
        realize([leaf([1.0]) + on("CPU:1", [2.0])])


def test_a_computed_value_is_copied_to_another_device() -> None:
    there = UOp(Ops.COPY, dtypes.float32, (leaf([1.0, 2.0]) * 3.0,), "CPU:1")
    (view,) = realize([there + on("CPU:1", [1.0, 1.0])])
    assert view.device == "CPU:1"
    assert view.numpy().tolist() == [4.0, 7.0]


def test_a_value_survives_a_round_trip_between_devices() -> None:
    there = UOp(Ops.COPY, dtypes.float32, (leaf([1.0, 2.0]) * 3.0,), "CPU:1")
    back = UOp(Ops.COPY, dtypes.float32, (there + 1.0,), "CPU")
    (view,) = realize([back + leaf([10.0, 20.0])])
    assert view.device == "CPU"
    assert view.numpy().tolist() == [14.0, 27.0]


def test_strided_memory_is_copied_element_by_element() -> None:
    view = View.from_host(np.arange(6, dtype=np.float32).reshape(2, 3).T)
    assert copy_to_device(view, "CPU:1", realize).numpy().tolist() == [[0, 3], [1, 4], [2, 5]]


def test_empty_memory_is_copied() -> None:
    view = View.from_host(np.zeros((0, 3), np.float32))
    assert copy_to_device(view, "CPU:1", realize).shape == (0, 3)
