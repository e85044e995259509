"""Schedules against PyTorch's, and inside of a captured step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.oracle import oracle

from glassgrad import Tensor, TinyJit
from glassgrad.nn.optim import (
    SGD,
    CosineSchedule,
    OneCycleSchedule,
    OptimizerGroup,
    PlateauSchedule,
    Schedule,
    StepSchedule,
)


def rates_here(make: Callable[[SGD], Any], steps: int, losses: Any = None) -> list[float]:
    optimizer = SGD([Tensor([1.0])], lr=0.5)
    schedule = make(optimizer)
    found = [optimizer.lr.item()]
    for number in range(steps):
        schedule.step() if losses is None else schedule.step(losses[number])
        found.append(optimizer.lr.item())
    return found


def rates_torch(make: Callable[[Any, Any], Any], steps: int, losses: Any = None) -> list[float]:
    torch = oracle("torch")
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.5)
    schedule = make(optimizer, torch.optim.lr_scheduler)
    found = [optimizer.param_groups[0]["lr"]]
    for number in range(steps):
        optimizer.step()
        schedule.step() if losses is None else schedule.step(losses[number])
        found.append(optimizer.param_groups[0]["lr"])
    return found


def test_step_schedules_equal_pytorch() -> None:
    found = rates_here(lambda o: StepSchedule(o, 3, gamma=0.5), 10)
    np.testing.assert_allclose(found, rates_torch(lambda o, s: s.StepLR(o, 3, 0.5), 10), rtol=1e-6)


def test_a_cosine_schedule_equals_pytorch() -> None:
    found = rates_here(lambda o: CosineSchedule(o, 20, least=0.1), 20)
    wanted = rates_torch(lambda o, s: s.CosineAnnealingLR(o, 20, eta_min=0.05), 20)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_a_cosine_has_all_its_digits_to_the_end() -> None:
    found = rates_here(lambda o: CosineSchedule(o, 200), 199)
    wanted = rates_torch(lambda o, s: s.CosineAnnealingLR(o, 200), 199)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_one_cycle_equals_pytorch() -> None:
    found = rates_here(lambda o: OneCycleSchedule(o, 40), 39)
    wanted = rates_torch(lambda o, s: s.OneCycleLR(o, 0.5, total_steps=40), 39)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_a_plateau_schedule_equals_pytorch() -> None:
    losses = [3, 2, 2, 2, 2, 1, 1, 1.5, 1, 0.5, 0.6, 0.7, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4]
    found = rates_here(lambda o: PlateauSchedule(o, 0.5, patience=2), len(losses), losses)
    wanted = rates_torch(
        lambda o, s: s.ReduceLROnPlateau(o, factor=0.5, patience=2), len(losses), losses
    )
    assert found[-1] < 0.2
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_a_plateau_schedule_of_a_maximized_value_equals_pytorch() -> None:
    shares = [0.1, 0.5, 0.5, 0.5, 0.5, 0.50001, 0.6, 0.6, 0.6, 0.6, 0.6, 0.9, 0.9, 0.9, 0.9]
    found = rates_here(
        lambda o: PlateauSchedule(o, 0.5, patience=2, mode="max"), len(shares), shares
    )
    wanted = rates_torch(
        lambda o, s: s.ReduceLROnPlateau(o, "max", factor=0.5, patience=2), len(shares), shares
    )
    assert found[-1] < 0.2
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_a_warm_up_rises_along_a_line_and_the_end_stays() -> None:
    found = rates_here(lambda o: CosineSchedule(o, 10, warmup=4, least=0.2), 14)
    np.testing.assert_allclose(found[:5], [0.1, 0.2, 0.3, 0.4, 0.5], rtol=1e-6)
    assert found[5:11] == sorted(found[5:11], reverse=True)
    np.testing.assert_allclose(found[10:], 0.1, rtol=1e-6)


def test_every_learning_rate_of_a_group_follows() -> None:
    group = OptimizerGroup(SGD([Tensor([1.0])], lr=1.0), SGD([Tensor([1.0])], lr=0.1))
    schedule = Schedule(group, lambda count: 0.5**count)
    schedule.step()
    np.testing.assert_allclose([one.lr.item() for one in group.optimizers], [0.5, 0.05])


def test_a_captured_step_sees_the_learning_rate_change() -> None:
    w = Tensor([0.0])
    optimizer = SGD([w], lr=1.0)
    schedule = Schedule(optimizer, lambda count: 0.5**count)

    @TinyJit
    def step() -> Tensor:
        optimizer.zero_grad()
        loss = (-w).sum().backward()
        return loss.realize(*optimizer.schedule_step(), *schedule.schedule_step())

    found = []
    for _ in range(5):
        step()
        found.append(w.item())
    assert found == [1.0, 1.5, 1.75, 1.875, 1.9375]


def test_invalid_schedules_are_refused() -> None:
    optimizer = SGD([Tensor([1.0])])
    with pytest.raises(ValueError, match="less than 10 steps, not 10"):
        CosineSchedule(optimizer, 10, warmup=10)
    with pytest.raises(ValueError, match="no more than one step"):
        OneCycleSchedule(optimizer, 3)
    with pytest.raises(ValueError, match="mode is min or max, not 'best'"):
        PlateauSchedule(optimizer, mode="best")
