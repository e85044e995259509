"""The demo with fewer steps."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest


def test_the_demo_trains_and_shows_a_kernel(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(__file__).parents[2] / "examples" / "demo.py"
    spec = importlib.util.spec_from_file_location("demo", path)
    assert spec is not None
    assert spec.loader is not None
    demo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo)
    monkeypatch.setattr(demo, "STEPS", 100)
    demo.main()
    lines = capsys.readouterr().out.splitlines()
    first, later = (float(line.split("loss ")[1].split()[0]) for line in lines[1:3])
    assert first == pytest.approx(1.1, abs=0.1)
    assert later < 0.3 * first
    assert any("steps/s" in line for line in lines)
    assert any("define void" in line for line in lines)
