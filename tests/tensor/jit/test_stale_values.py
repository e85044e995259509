"""After a change of anything that it reads, a captured function is correct or raises an error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.stale import MODEL_CHANGES, MUTATIONS, Net

from glassgrad import Context, Tensor, TinyJit
from glassgrad.base.errors import CaptureError
from glassgrad.tensor.jit.guards import Guards

ON_COMPILED_BACKEND = True
REPLAYS_WITH_A_CHECK = 9  # calls after a change: enough to include a checked replay


@pytest.fixture(autouse=True)
def reset_mode() -> Iterator[None]:
    Tensor.manual_seed(1)
    yield
    Tensor.training = False


def inputs() -> Tensor:
    return Tensor(np.array([1.0, 2.0], np.float32)).realize()


def plain(found: Any) -> Any:
    """A result as plain values."""
    if isinstance(found, tuple):
        return [plain(one) for one in found]
    return (found.shape, found.tolist()) if isinstance(found, Tensor) else found


def results(function: Any, change: Any, before: int, after: int) -> list[Any]:
    found = [plain(function(inputs())) for _ in range(before)]
    change()
    return found + [plain(function(inputs())) for _ in range(after)]


def eager_results(name: str, before: int, after: int) -> list[Any]:
    eager = MUTATIONS[name]()
    wanted = results(eager.function, eager.change, before, after)
    assert wanted[-1] != wanted[0], "the mutation changes nothing"
    Tensor.training = False
    Tensor.manual_seed(1)
    return wanted


@pytest.mark.parametrize("name", MUTATIONS)
def test_guards_notice_every_mutation(name: str) -> None:
    """With guards alone."""
    wanted = eager_results(name, 4, 3)
    captured = MUTATIONS[name]()
    with Context(JIT_CHECK=0):
        try:
            found = results(TinyJit(captured.function), captured.change, 4, 3)
        except CaptureError:
            return
    assert found == wanted


@pytest.mark.parametrize("name", MUTATIONS)
def test_checks_find_mutations_that_guards_miss(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change that no guard sees is an error at the next check."""
    wanted = eager_results(name, 4, REPLAYS_WITH_A_CHECK)
    captured = MUTATIONS[name]()
    monkeypatch.setattr(Guards, "are_valid", lambda self: True)
    try:
        found = results(TinyJit(captured.function), captured.change, 4, REPLAYS_WITH_A_CHECK)
    except CaptureError:
        return
    assert found == wanted


@pytest.mark.parametrize("name", MODEL_CHANGES)
def test_attributes_of_explicit_state_are_guarded(name: str) -> None:
    wanted = eager_results(f"a model by name: {name}", 4, 3)
    net = Net()
    function = TinyJit(lambda x: net(x), state=[net])
    with Context(JIT_CHECK=0):
        found = results(function, lambda: MODEL_CHANGES[name](net), 4, 3)
    assert found == wanted


def test_with_explicit_state_other_values_are_constants() -> None:
    net, factor = Net(), 2.0
    function = TinyJit(lambda x: net(x) * factor, state=[net])
    with Context(JIT_CHECK=0):
        before = [plain(function(inputs())) for _ in range(3)]
        factor = 3.0
        assert plain(function(inputs())) == before[0]
        net.scale = 5.0
        assert plain(function(inputs())) != before[0]


def test_there_are_enough_mutations() -> None:
    assert len(MUTATIONS) >= 150
