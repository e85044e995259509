"""Every way to change a value behind a captured function gives a correct result or an error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.stale import MODEL_CHANGES, WAYS, Net

from glassgrad import Context, Tensor, TinyJit
from glassgrad.base.errors import CaptureError
from glassgrad.tensor.jit.guards import Guards

ON_COMPILED_BACKEND = True
NET_FINDS_LATE = 9  # replays after a change among which one is a check


@pytest.fixture(autouse=True)
def usual_mode() -> Iterator[None]:
    Tensor.manual_seed(1)
    yield
    Tensor.training = False


def inputs() -> Tensor:
    return Tensor(np.array([1.0, 2.0], np.float32)).realize()


def shown(found: Any) -> Any:
    """A result as plain values."""
    if isinstance(found, tuple):
        return [shown(one) for one in found]
    return (found.shape, found.tolist()) if isinstance(found, Tensor) else found


def results(function: Any, change: Any, before: int, after: int) -> list[Any]:
    found = [shown(function(inputs())) for _ in range(before)]
    change()
    return found + [shown(function(inputs())) for _ in range(after)]


def eager_results(name: str, before: int, after: int) -> list[Any]:
    plain = WAYS[name]()
    wanted = results(plain.function, plain.change, before, after)
    assert wanted[-1] != wanted[0], "the way changes nothing"
    Tensor.training = False
    Tensor.manual_seed(1)
    return wanted


@pytest.mark.parametrize("name", WAYS)
def test_a_change_is_noticed_or_refused(name: str) -> None:
    """With guards alone."""
    wanted = eager_results(name, 4, 3)
    captured = WAYS[name]()
    with Context(JIT_CHECK=0):
        try:
            found = results(TinyJit(captured.function), captured.change, 4, 3)
        except CaptureError:
            return
    assert found == wanted


@pytest.mark.parametrize("name", WAYS)
def test_without_guards_checks_find_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change that no guard sees is an error at the next check."""
    wanted = eager_results(name, 4, NET_FINDS_LATE)
    way = WAYS[name]()
    monkeypatch.setattr(Guards, "are_valid", lambda self: True)
    try:
        found = results(TinyJit(way.function), way.change, 4, NET_FINDS_LATE)
    except CaptureError:
        return
    assert found == wanted


@pytest.mark.parametrize("name", MODEL_CHANGES)
def test_with_explicit_state_its_attributes_are_guarded(name: str) -> None:
    wanted = eager_results(f"a model by name: {name}", 4, 3)
    net = Net()
    function = TinyJit(lambda x: net(x), state=[net])
    with Context(JIT_CHECK=0):
        found = results(function, lambda: MODEL_CHANGES[name](net), 4, 3)
    assert found == wanted


def test_with_explicit_state_all_else_is_constant() -> None:
    net, factor = Net(), 2.0
    function = TinyJit(lambda x: net(x) * factor, state=[net])
    with Context(JIT_CHECK=0):
        before = [shown(function(inputs())) for _ in range(3)]
        factor = 3.0
        assert shown(function(inputs())) == before[0]
        net.scale = 5.0
        assert shown(function(inputs())) != before[0]


def test_there_are_enough_ways() -> None:
    assert len(WAYS) >= 150
