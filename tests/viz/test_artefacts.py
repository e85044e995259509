"""The result of each stage as text."""

from __future__ import annotations

import numpy as np

from glassgrad import Device, Tensor
from glassgrad.viz.artefacts import artefacts, nest_and_passes


def kernel_of(value: Tensor):
    (kernel,) = value.schedule().kernels
    return kernel


def test_the_stages_are_in_the_order_of_the_pipeline() -> None:
    x = Tensor(np.ones((64, 64), np.float32)).realize()
    found = list(artefacts(kernel_of(x.sum(1)), Device["CPU"]))
    assert [one.stage for one in found] == ["kernel", "nest", "program", "source", "machine"]
    assert "unroll a reduction axis" in found[1].text


def test_a_device_without_machine_code_ends_with_the_source() -> None:
    x = Tensor(np.ones(8, np.float32)).realize()
    found = list(artefacts(kernel_of(x + 1), Device["PYTHON"]))
    assert [one.stage for one in found][-1] == "source"


def test_passes_that_change_a_kernel_are_listed_with_their_results() -> None:
    x = Tensor(np.ones(64, np.float32)).realize()
    nest, found = nest_and_passes(kernel_of(x.exp()), Device["CPU"])
    assert nest.name.startswith("E_")
    texts = {one.name: one.text for one in found}
    assert "exp2(" not in texts["expand functions"]
    assert "STORE(" in texts["emit instructions"]
    assert all(one.seconds >= 0 for one in found)
