"""What a recording contains, and that it has no side effects."""

from __future__ import annotations

import gc
import weakref

import numpy as np

from glassgrad import Tensor, TinyJit
from glassgrad.base.events import LISTENERS
from glassgrad.viz import recording
from glassgrad.viz.recording import record


def memory(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.float32)).realize()


def test_a_graph_with_a_cached_plan_is_recorded() -> None:
    x = memory(16)
    (x * 5 + 1).realize()
    with record() as seen:
        (x * 5 + 1).realize()
    assert len(seen.graphs) == 1


def test_every_run_is_counted_and_replays_of_captures_too() -> None:
    @TinyJit
    def step(x: Tensor) -> Tensor:
        return (x * 7 + 2).sum().realize()

    x = memory(4096)
    with record() as seen:
        for _ in range(5):
            step(x)
    (code,) = seen.codes.values()
    assert code.runs == 5
    assert 0 < code.fastest <= code.seconds / 5
    assert len(seen.graphs) == 1


def test_equal_layers_share_their_code() -> None:
    x, weights = memory(512), [memory(512, 512) for _ in range(4)]
    with record() as seen:
        for w in weights:
            x = (w @ x).relu().contiguous()
        x.realize()
    (graph,) = seen.graphs
    assert len(graph["kernels"]) == 4
    assert len({kernel["code"] for kernel in graph["kernels"]}) < 4


def test_recording_keeps_no_memory_alive_and_ends() -> None:
    with record() as seen:
        result = (memory(64) + 3).realize()
        storage = weakref.ref(result.uop.arg.storage)
        del result
        gc.collect()
        assert storage() is None
    assert seen.graphs
    assert seen.notice not in LISTENERS


def test_graphs_beyond_the_limit_are_only_counted(monkeypatch) -> None:
    monkeypatch.setattr(recording, "MAX_GRAPHS", 2)
    with record() as seen:
        for number in range(5):
            (memory(8 + number) + 10.5).realize()
    assert len(seen.graphs) == 2
    assert seen.left_out == 3
