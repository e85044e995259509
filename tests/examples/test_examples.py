"""Every example, as quick as it goes."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"


def output(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    monkeypatch.setattr(sys, "argv", [name, "--quick"])
    runpy.run_path(str(FOLDER / name), run_name="__main__")
    return capsys.readouterr().out.splitlines()


def number_after(word: str, line: str) -> float:
    return float(line.split(word)[1].split()[0].strip("%:"))


def test_digits_are_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = output("mnist.py", capsys, monkeypatch)
    assert lines[0].startswith("3,000 images")
    assert float(lines[-1].split("%")[0]) > 90


def test_noise_becomes_a_heart(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = output("diffusion.py", capsys, monkeypatch)
    assert number_after("noise is ", lines[0]) > 0.3
    assert number_after("points are ", lines[-1]) < 0.2


def test_all_memory_is_shared(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = output("zero_copy.py", capsys, monkeypatch)
    assert sum(line.startswith("one memory") for line in lines) >= 7
    assert not any("A COPY" in line for line in lines)


def test_a_kernel_by_hand_has_a_gradient(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = output("custom_kernel.py", capsys, monkeypatch)
    assert lines[0].split(":")[1].strip() == lines[1].split(":")[1].strip()
    assert number_after("loss ", lines[-1]) < 0.01 * number_after("loss ", lines[3])
