"""The PYTHON device agrees with the CPU, and runs programs for a grid of threads."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from support.compiler.golden_kernels import KERNELS, TARGETS
from support.compiler.on_device import realize_on
from support.random.graphs import describe, differences, random_graph
from support.random.recipes import RandomChooser
from support.references.graph import evaluate_all

from glassgrad import Tensor
from glassgrad.devices.protocol import Device
from glassgrad.devices.python.device import PythonDevice, python_target
from glassgrad.devices.registry import Registry
from glassgrad.ir.ops import Ops
from glassgrad.ir.stages import Target
from glassgrad.render.cuda import cuda_target
from glassgrad.tensor.lazy.deferred import expand_deferred

NARROW_GRID = replace(cuda_target("sm_80"), grid_sizes=(1 << 20,))  # other loops stay loops


def test_it_is_a_device_of_the_registry() -> None:
    device: Device = PythonDevice("PYTHON:3")
    assert device.name == "PYTHON:3" and device.target.language == "python"
    assert isinstance(Registry()["python"], PythonDevice)


def test_tensors_can_use_the_device() -> None:
    x = Tensor([[1.0, -2.0], [3.0, 4.0]], device="PYTHON")
    assert (x @ x).relu().sum(0).tolist() == [15.0, 10.0]


def test_the_target_of_another_machine_can_be_used() -> None:
    device = PythonDevice("PYTHON", cuda_target("sm_75"))
    assert device.target.has_threads and device.target.language == "python"
    assert device.target.native == cuda_target("sm_75").native


@pytest.mark.parametrize("first", range(0, 200, 50))
@pytest.mark.parametrize("facts", [python_target(), cuda_target("sm_80")], ids=["cpu", "gpu"])
def test_random_graphs_agree_with_numpy(facts: Target, first: int) -> None:
    device = PythonDevice("PYTHON:4", facts)
    for seed in range(first, first + 50):
        roots = random_graph(Random(seed), 12, numel=256)
        want = evaluate_all(roots)
        assert not differences(roots, realize_on(device, roots), want), describe(roots)


@pytest.mark.parametrize("first", range(0, 300, 50))
@pytest.mark.parametrize(
    "facts",
    [python_target(), cuda_target("sm_80"), NARROW_GRID],
    ids=["cpu", "gpu", "gpu-with-loops"],
)
def test_random_recipes_change_nothing(facts: Target, first: int) -> None:
    """Races, reads of empty scratch and steps outside of a buffer are errors here."""
    device = PythonDevice("PYTHON:5", facts)
    for seed in range(first, first + 50):
        roots = random_graph(Random(seed), 10, numel=128)
        want = evaluate_all(roots)
        chooser = RandomChooser(seed)
        wrong = differences(roots, realize_on(device, roots, chooser), want)
        assert not wrong, f"{wrong}\n{describe(roots)}\n{chooser.recipes}"


@pytest.mark.parametrize("language", ["c", "cuda", "metal", "opencl"])
def test_golden_kernels_agree_with_numpy(language: str) -> None:
    """What the golden texts of every language say is also carried out, with the same facts."""
    device = PythonDevice("PYTHON:6", TARGETS[language])
    rng = np.random.default_rng(0)
    for name, (build, choose) in KERNELS.items():
        made = build()
        expand_deferred()
        root = made.uop
        for node in root.toposort():
            if node.op is Ops.BUFFER:
                view, is_float = node.arg.numpy(), node.dtype.kind == "float"
                view[...] = rng.normal(size=view.shape) if is_float else 0
        want = evaluate_all([root])
        named = type("Named", (), {"key": name, "__call__": staticmethod(choose)})()
        assert not differences([root], realize_on(device, [root], named), want), name
