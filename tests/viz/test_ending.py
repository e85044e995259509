"""VIZ=1 writes a page at exit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = "from glassgrad import Tensor\nprint(int((Tensor([1.0, 2.0]) * 3).sum().item()))\n"


def run(tmp_path: Path, text: str, viz: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "program.py").write_text(text)
    environment = os.environ | {"VIZ": viz, "TMPDIR": str(tmp_path)}
    command = [sys.executable, str(tmp_path / "program.py")]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env=environment
    )


def test_a_program_ends_with_a_page_that_shows_its_lines(tmp_path: Path) -> None:
    done = run(tmp_path, PROGRAM, "1")
    assert done.stdout == "9\n"
    (page,) = tmp_path.glob("glassgrad-program-*.html")
    assert done.stderr == f"open {page} in a browser\n"
    assert "Tensor([1.0, 2.0]) * 3" in page.read_text()


def test_without_the_setting_or_work_there_is_no_page(tmp_path: Path) -> None:
    assert run(tmp_path, PROGRAM, "0").stderr == ""
    assert run(tmp_path, "import glassgrad\n", "1").stderr == ""
    assert not list(tmp_path.glob("*.html"))
