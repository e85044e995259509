"""Plans on disk: the next process neither schedules nor lowers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad.schedule
from glassgrad import Tensor, TinyJit, Variable
from glassgrad.base.config import Context
from glassgrad.base.errors import AxisError
from glassgrad.devices.registry import Device
from glassgrad.engine.cache import graph_keys as cache
from glassgrad.engine.cache.plans import plan_key

SCRIPT = """
import sys
from glassgrad import Tensor
x = Tensor([[1.0, 2.0], [3.0, 4.0]])
print(((x @ x).softmax(-1) * 2 + x).tolist())
from glassgrad.devices.cpu.llvm import llvm
names = [name for name in sys.modules if name in (
    "glassgrad.schedule", "glassgrad.loops", "glassgrad.lower", "glassgrad.render")]
print(sorted(names + ["llvm"] * llvm.cache_info().currsize))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """An empty disk cache, and no plans in memory."""
    cache.clear()
    with Context(CACHE=str(tmp_path), CACHELEVEL=2):
        yield tmp_path
    cache.clear()


def refuse(*_: Any) -> Any:
    raise AssertionError("this graph was scheduled before")


def loss(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    a, b = Tensor(x), Tensor(y)
    made = (a @ b).tanh().sum()
    return [made.numpy(), *[g.numpy() for g in made.gradient(a, b)]]


def test_an_equal_graph_of_another_process_is_not_scheduled(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    x, y = [rng.standard_normal((5, 5)).astype(np.float32) for _ in "xy"]
    first = loss(x, y)
    cache.clear()  # simulates another process
    monkeypatch.setattr(glassgrad.schedule, "schedule", refuse)
    for one, two in zip(first, loss(x, y), strict=True):
        np.testing.assert_array_equal(one, two)
    with pytest.raises(AssertionError, match="scheduled before"):
        loss(x[:4], y)


def test_a_start_with_plans_on_disk_imports_no_compiler(tmp_path: Path) -> None:
    where = os.environ | {"GLASSGRAD_CACHE": str(tmp_path), "CACHELEVEL": "2", "SPEC": "0"}
    where["PYTHONPATH"] = os.pathsep.join([str(Path(glassgrad.__file__).parent.parent)])
    runs = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT], env=where, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        for _ in range(2)
    ]
    assert runs[0][0] == runs[1][0]
    assert "glassgrad.schedule" in runs[0][1]
    assert runs[1][1] == "[]"


def test_damaged_and_missing_entries_are_planned_again(folder: Path) -> None:
    x = np.ones((4, 4), np.float32)
    wanted = loss(x, x)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    for path in files:
        kept = path.read_bytes()
        path.write_bytes(kept[: len(kept) // 2])
        cache.clear()
        for one, two in zip(wanted, loss(x, x), strict=True):
            np.testing.assert_array_equal(one, two)
        path.unlink(missing_ok=True)
        cache.clear()
        for one, two in zip(wanted, loss(x, x), strict=True):
            np.testing.assert_array_equal(one, two)


def test_index_errors_of_stored_plans_name_the_line(folder: Path) -> None:
    table = Tensor([[1.0, 2.0], [3.0, 4.0]]).realize()

    def take_rows(rows: Tensor) -> Tensor:
        return (table[rows] * 2).realize()

    for _ in range(2):
        cache.clear()
        with pytest.raises(AxisError, match=r"index 7 is out of range.*of size 2") as caught:
            take_rows(Tensor([0, 7]))
        assert "table[rows]" in str(caught.value)
    cache.clear()
    captured = TinyJit(take_rows)
    for _ in range(3):
        captured(Tensor([0, 1]).realize())
    with pytest.raises(AxisError, match="index 9 is out of range") as caught:
        captured(Tensor([1, 9]).realize())
    assert "table[rows]" in str(caught.value)


def test_other_numbers_shapes_and_layouts_have_other_plans(folder: Path) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for _ in range(2):
        cache.clear()
        a = Tensor(x)
        np.testing.assert_array_equal((a * 2 + 1).numpy(), x * 2 + 1)
        np.testing.assert_array_equal((a * 3 + 1).numpy(), x * 3 + 1)
        np.testing.assert_array_equal((Tensor(x.T) * 2 + 1).numpy(), x.T * 2 + 1)
        np.testing.assert_array_equal((a[:, :2] * 2 + 1).numpy(), x[:, :2] * 2 + 1)
        np.testing.assert_array_equal((a * -0.0).numpy(), x * -0.0)
        assert np.signbit((a * -0.0).numpy()).all()
        assert not np.signbit((a * 0.0).numpy()).any()


def test_in_place_writes_reach_their_buffers(folder: Path) -> None:
    for _ in range(2):
        cache.clear()
        x = Tensor([1.0, 2.0, 3.0]).realize()
        y = x + 1
        x.assign(x * 2)
        x[1:] += 10
        assert (x.tolist(), y.tolist()) == ([2.0, 14.0, 16.0], [2.0, 3.0, 4.0])


def test_graphs_with_local_objects_have_no_key(folder: Path) -> None:
    device = Device["CPU"]
    graph = cache.signature([(Tensor([1.0, 2.0]) * 2).uop])
    assert plan_key(graph, device) is not None
    assert plan_key(graph._replace(key=(object(),)), device) is None
    with Context(CACHELEVEL=1):
        assert plan_key(graph, device) is None
    n = Variable("n", 1, 8).bind(3)
    assert plan_key(cache.signature([Tensor.ones(8)[:n].sum().uop]), device) is None
