"""The road test: an expression enters every stage once, in order; an equal one enters none."""

from __future__ import annotations

from glassgrad import Tensor
from glassgrad.base.events import Event, KernelLaunched, StageEntered, listen
from glassgrad.engine.cache import graph_keys as cache
from glassgrad.ir.stages import Kernel, Nest, Program, Source
from glassgrad.schedule import movement

STAGES = ["schedule", "loops", "lower", "render", "devices"]
NOUNS = {"loops": Kernel, "lower": Nest, "render": Program, "devices": Source}


def walk(numbers: list[list[int]]) -> tuple[int, list[Event]]:
    seen: list[Event] = []
    with listen(seen.append):
        answer = Tensor(numbers).relu().sum().item()
    return answer, seen


def stages(seen: list[Event]) -> list[str]:
    return [event.stage for event in seen if isinstance(event, StageEntered)]


def test_relu_and_sum_enter_each_stage_once_and_a_replay_enters_none() -> None:
    cache.clear()
    answer, seen = walk([[1, -2, 3], [4, -5, 6]])
    assert answer == 14
    assert stages(seen) == STAGES
    answer, seen = walk([[7, -2, 3], [4, -5, -6]])
    assert answer == 14
    assert stages(seen) == []


def test_each_stage_gets_the_result_of_the_one_before() -> None:
    cache.clear()
    movement.clear()
    _, seen = walk([[1, -2, 3], [4, -5, 6]])
    entered = {event.stage: event.value for event in seen if isinstance(event, StageEntered)}
    assert {stage: type(entered[stage]) for stage in NOUNS} == NOUNS
    assert entered["devices"].program is entered["render"]
    assert entered["render"].name == entered["lower"].name


def test_the_launch_comes_last() -> None:
    cache.clear()
    _, seen = walk([[1, -2, 3], [4, -5, 6]])
    assert isinstance(seen[-1], KernelLaunched)
    assert sum(isinstance(event, KernelLaunched) for event in seen) == 1


def test_an_equal_kernel_in_another_graph_is_not_compiled_again() -> None:
    cache.clear()
    walk([[1, -2, 3], [4, -5, 6]])
    cache.PLANS.clear()
    _, seen = walk([[1, -2, 3], [4, -5, 6]])
    assert stages(seen) == ["schedule"]
