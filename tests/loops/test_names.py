"""A kernel's name tells its shape."""

from __future__ import annotations

from support.compiler.nests import GPU, kernel_of, kinds
from support.compiler.schedules import TARGET, memory

from glassgrad.ir.ops import AxisKind
from glassgrad.loops import optimize


def nothing(nest: object, target: object) -> tuple[()]:
    return ()


def test_a_name_tells_whether_a_kernel_reduces_and_how_long_its_loops_are() -> None:
    assert optimize(kernel_of(memory(4, 4) + memory(4, 4)), TARGET, nothing).name == "E_16"
    assert optimize(kernel_of(memory(64, 16).sum(1)), TARGET, nothing).name == "r_64_16"
    assert optimize(kernel_of(memory(4, 6).transpose() + 1), TARGET, nothing).name == "E_6_4"


def test_vectors_show_in_the_name() -> None:
    assert optimize(kernel_of(memory(4, 4) + memory(4, 4)), TARGET).name == "E_2_8"


def test_on_a_gpu_four_elements_go_to_each_of_four_threads() -> None:
    nest = optimize(kernel_of(memory(4, 4) + memory(4, 4)), GPU)
    assert nest.name == "E_4_4"
    assert kinds(nest) == {AxisKind.LOCAL: [4], AxisKind.LANE: [4]}


def test_the_label_is_the_name_where_nothing_is_coloured() -> None:
    nest = optimize(kernel_of(memory(64, 16).sum(1)), TARGET)
    assert nest.label == nest.name
