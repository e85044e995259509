"""The Tensor class: access to values, devices, printing, origins."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest

from glassgrad import Tensor, TinyJit
from glassgrad.base.errors import CaptureError
from glassgrad.ir.ops import Ops
from glassgrad.tensor.core import LIVE_TENSORS

ON_BOTH_BACKENDS = True


def test_a_lazy_tensor_shows_its_node_shape_dtype_and_device() -> None:
    text = repr(Tensor.empty(4, 4) + Tensor.empty(4, 4))
    number = int(Ops.ADD)
    node = rf"<UOp CPU \(4, 4\) float \(<Ops.ADD: {number}>, None\)>"
    assert re.fullmatch(rf"<Tensor {node} on CPU with grad None>", text)


def test_a_realised_tensor_shows_its_memory_and_gradient() -> None:
    x = Tensor([1.0, 2.0])
    x.sum().backward()
    assert "<buf real:True device:CPU size:2 dtype:dtypes.float offset:0>" in repr(x)
    assert "with grad <UOp CPU (2,) float" in repr(x)


def test_item_is_a_python_number() -> None:
    assert Tensor([[2.5]]).item() == 2.5
    assert isinstance(Tensor(3).item(), int)
    assert Tensor(True).item() is True
    assert (float(Tensor(2.5)), int(Tensor([3]))) == (2.5, 3)
    assert Tensor(0.1).item() == float(np.float32(0.1))
    assert Tensor(0.1, dtype="float64").item() == 0.1


def test_data_is_a_memoryview_that_shares_memory() -> None:
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    view = x.data()
    assert isinstance(view, memoryview)
    assert (view.format, view.shape, view.tolist()) == ("f", (2, 2), [[1, 2], [3, 4]])
    view[0, 0] = 9
    assert x.tolist() == [[9, 2], [3, 4]]


def test_data_of_moved_values_is_row_major() -> None:
    x = Tensor([[1, 2], [3, 4]])
    assert x.T.data().tolist() == [[1, 3], [2, 4]]
    fortran = np.asfortranarray(np.array([[1, 2], [3, 4]], np.int32))
    assert Tensor(fortran).data().tobytes() == np.array([[1, 2], [3, 4]], np.int32).tobytes()


def test_numpy_shares_memory_with_the_tensor() -> None:
    x = (Tensor([1.0, 2.0]) + 1).realize()
    assert np.shares_memory(x.numpy(), x.numpy())


def test_schedule_gives_the_kernels_and_runs_nothing() -> None:
    x, y = Tensor.empty(8, 8), Tensor.empty(8, 8)
    value = (x @ y + 1).relu()
    assert len(value.schedule().kernels) == 1
    assert value.uop.op is not Ops.BUFFER


def test_facts() -> None:
    x = Tensor.empty(2, 3, dtype="float16")
    assert (x.ndim, x.dim(), x.numel(), x.nbytes(), x.element_size()) == (2, 2, 6, 12, 2)
    assert (x.size(), x.size(-1), x.device) == ((2, 3), 3, "CPU")
    assert x.is_floating_point()


def test_devices_are_named_as_people_write_them() -> None:
    assert Tensor([1], device="cpu").device == "CPU"
    assert Tensor.zeros(2, device="CPU:0").device == "CPU"
    assert Tensor.rand(2, device="CPU:1").device == "CPU:1"
    assert Tensor([1, 2]).to("CPU:1").device == "CPU:1"
    assert (Tensor([1, 2]).to("CPU:1").to("CPU") + 1).device == "CPU"


def test_tensors_are_hashed_by_identity() -> None:
    x, y = Tensor([1]), Tensor([1])
    assert len({x, y}) == 2
    assert {x: 1}[x] == 1


def test_unreferenced_tensors_are_freed() -> None:
    before = len(LIVE_TENSORS)
    x = Tensor([1.0])
    assert len(LIVE_TENSORS) == before + 1
    del x
    assert len(LIVE_TENSORS) == before


def test_deep_graphs_are_realised_and_forgotten_without_recursion() -> None:
    x = Tensor([1.0])
    y = x
    for _ in range(3 * sys.getrecursionlimit()):
        y = y + 1
    assert y.item() == 1 + 3 * sys.getrecursionlimit()


def test_nodes_have_the_users_line() -> None:
    y = Tensor([1.0]) + 2  # here
    assert y.uop.origin is not None
    assert "# here" in y.uop.origin.text


def test_a_whole_number_is_an_index() -> None:
    assert list(range(Tensor(3))) == [0, 1, 2]
    assert "abc"[Tensor([1.0, 5.0, 2.0]).argmax()] == "b"
    assert [1, 2, 3, 4][Tensor(1) : Tensor(-1)] == [2, 3]
    assert bytes(Tensor([65], dtype="uint8")) == b"A"  # not 65 zeros


@pytest.mark.parametrize("value", [3.0, True, [3]])
def test_nothing_else_is_an_index(value: object) -> None:
    with pytest.raises(TypeError, match="only a whole number without axes is an index"):
        range(Tensor(value))


def test_a_captured_function_cannot_look_at_an_index() -> None:
    @TinyJit
    def ones(count: Tensor) -> Tensor:
        return Tensor.ones(count).sum().realize()

    count = Tensor(3).realize()
    with pytest.raises(CaptureError, match="looks at a value"):
        for _ in range(2):
            ones(count)
