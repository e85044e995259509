"""Runs that stop go on as if they had not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.scripts import training_run

from glassgrad import Tensor
from glassgrad.base.errors import FormatError
from glassgrad.nn.checkpoint import Checkpoints
from glassgrad.nn.files.safetensors import safe_save
from glassgrad.nn.optim import Adam


def start(folder: Path, steps: int) -> subprocess.Popen[str]:
    command = [sys.executable, training_run.__file__, str(folder), str(steps)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_a_killed_run_resumes_bit_for_bit(tmp_path: Path) -> None:
    """Killed after step 17, it goes on from the checkpoint of step 15."""
    with start(tmp_path / "whole", 28) as whole:
        wanted, _ = whole.communicate(timeout=120)
    with start(tmp_path / "killed", 1000) as killed:
        assert killed.stdout is not None
        for line in killed.stdout:
            if line == "step 17\n":
                killed.kill()
                break
    names = sorted(path.name for path in (tmp_path / "killed").glob("step-*"))
    assert names[0] == "step-00000005.safetensors"
    for name in names[3:]:  # it may have run on for a moment
        (tmp_path / "killed" / name).unlink()
    with start(tmp_path / "killed", 28) as again:
        found, _ = again.communicate(timeout=120)
    assert found.startswith("from 15\nstep 16\n")
    assert found.splitlines()[-1].startswith("hash ")
    assert found.splitlines()[-1] == wanted.splitlines()[-1]


def test_parts_are_restored(tmp_path: Path) -> None:
    w = Tensor([1.0, 2.0])
    optimizer = Adam([w], lr=0.1)
    saved = Checkpoints(tmp_path, model={"w": w}, optimizer=optimizer)

    def step() -> None:
        optimizer.zero_grad()
        (w * Tensor.rand(2)).sum().backward()
        optimizer.step()

    step()
    saved.save(1, notes={"loss": 2.5})
    found = []
    for _ in range(2):
        for _ in range(3):
            step()
        found.append([*w.tolist(), *Tensor.rand(2).tolist(), optimizer.count.item()])
        assert saved.resume() == 1
    assert found[0] == found[1]
    assert saved.notes() == {"loss": 2.5}


def test_only_the_newest_checkpoints_are_kept(tmp_path: Path) -> None:
    saved = Checkpoints(tmp_path, keep=2, model=[Tensor([1.0])])
    (tmp_path / ".part-killed").touch()
    (tmp_path / "step-notes.txt").touch()
    for step in (1, 2, 10, 9):  # the last is a run that went on from an earlier one
        saved.save(step)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "step-00000002.safetensors",
        "step-00000009.safetensors",
        "step-notes.txt",
    ]
    assert saved.newest() == tmp_path / "step-00000009.safetensors"


def test_a_new_run_keeps_the_checkpoints_of_another(tmp_path: Path) -> None:
    Checkpoints(tmp_path, model=[Tensor([1.0])]).save(7)
    other = Checkpoints(tmp_path, model=[Tensor([2.0])])
    with pytest.raises(FormatError, match="holds another run's checkpoint, of step 7"):
        other.save(1)
    assert other.resume() == 7
    other.save(8)


def test_a_parameter_is_saved_once(tmp_path: Path) -> None:
    w = Tensor(np.zeros(1000, np.float32))
    path = Checkpoints(tmp_path, model=[w], optimizer=Adam([w])).save(1)
    assert 12_000 < path.stat().st_size < 13_500


def test_an_earlier_checkpoint_can_be_chosen(tmp_path: Path) -> None:
    w = Tensor([1.0])
    saved = Checkpoints(tmp_path, model=[w])
    first = saved.save(1)
    w.assign(w + 1)
    saved.save(2)
    assert (saved.resume(first), w.item()) == (1, 1.0)
    assert (saved.resume(), w.item()) == (2, 2.0)


def test_checkpoints_of_other_models_are_refused(tmp_path: Path) -> None:
    Checkpoints(tmp_path, model=[Tensor([1.0])]).save(1)
    with pytest.raises(FormatError, match=r"missing: model.1; .*model.0 is \(1,\) instead of"):
        Checkpoints(tmp_path, model=[Tensor([1.0, 2.0]), Tensor([1])]).resume()
    safe_save({"model.0": Tensor([1.0])}, tmp_path / "plain")
    with pytest.raises(FormatError, match="is not a checkpoint"):
        Checkpoints(tmp_path, model=[Tensor([1.0])]).resume(tmp_path / "plain")
    with pytest.raises(ValueError, match="keep must be at least 1"):
        Checkpoints(tmp_path, keep=0)


def test_without_a_checkpoint_a_run_starts_at_step_0(tmp_path: Path) -> None:
    saved = Checkpoints(tmp_path / "none", model=[Tensor([1.0])])
    assert (saved.resume(), saved.notes(), saved.newest()) == (0, None, None)


@pytest.mark.parametrize("step", [-1, 1.5, "3", None, True])
def test_an_invalid_step_is_refused_and_removes_nothing(tmp_path: Path, step: Any) -> None:
    saved = Checkpoints(tmp_path, model={"w": Tensor([1.0])})
    saved.save(2)
    with pytest.raises(ValueError, match="step must be an int of at least 0"):
        saved.save(step)
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000002.safetensors"]


def test_a_damaged_checkpoint_names_an_earlier_one(tmp_path: Path) -> None:
    w = Tensor([1.0])
    saved = Checkpoints(tmp_path, model={"w": w})
    saved.save(1)
    w.assign(w + 1)
    newest = saved.save(2)
    newest.write_bytes(newest.read_bytes()[:-2])
    with pytest.raises(FormatError, match=r"step-00000002.*the tensors end at byte") as told:
        saved.resume()
    assert "step-00000001.safetensors" in str(told.value.hint)
    newest.unlink()
    assert (saved.resume(), w.tolist()) == (1, [1.0])


def test_parts_that_differ_from_the_saved_ones_are_named(tmp_path: Path) -> None:
    saved = Checkpoints(tmp_path, model={"w": Tensor([1.0])})
    saved.save(1)
    saved.save(2)  # an older one would not fit either
    with pytest.raises(FormatError, match=r"missing: model.v; unexpected: model.w") as told:
        Checkpoints(tmp_path, model={"v": Tensor([1.0])}).resume()
    assert told.value.hint == "pass the same parts as in the run that saved the checkpoint"
