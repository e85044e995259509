"""What README.md shows is what happens, and what it points to is there."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from glassgrad.cli.arguments import parser

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text()


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)
    assert 0 < float(capsys.readouterr().out) < 10


def test_links_and_pictures_are_there() -> None:
    found = re.findall(r"\]\(([^)]+)\)", TEXT)
    assert len(found) > 5
    for path in found:
        assert (ROOT / path).is_file(), path


def test_the_picture_of_the_visualiser_is_small() -> None:
    picture = (ROOT / "docs" / "viz.png").read_bytes()
    assert len(picture) < 200_000
    width, height = struct.unpack(">II", picture[16:24])
    assert width > 1000
    assert height > 600


def test_every_command_in_the_readme_parses() -> None:
    shown = re.findall(r"(?:^ {4}|`)glassgrad (\w+)", TEXT, re.MULTILINE)
    assert {"train", "generate", "explain", "viz"} <= set(shown)
    for command in shown:
        with pytest.raises(SystemExit) as stop:
            parser().parse_args([command, "--help"])
        assert stop.value.code == 0
