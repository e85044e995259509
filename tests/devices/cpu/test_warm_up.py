"""LLVM is loaded in the background of the first imports, where it will be needed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BEGIN = """
import sys
from glassgrad.devices.cpu import warm_up as ahead
print(ahead.start_loading(), len(ahead.THREADS))
"""
CHILD = """
import os
from glassgrad import Tensor
from glassgrad.devices.cpu import warm_up as ahead
assert ahead.start_loading()
child = os.fork()
assert (Tensor([1.0]) + Tensor([2.0])).tolist() == [3.0]
if not child:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print("both")
"""


def run(code: str, folder: Path) -> str:
    environment = {**os.environ, "GLASSGRAD_CACHE": str(folder), "CACHELEVEL": "1"}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True,
        timeout=120,
    ).stdout.strip()  # fmt: skip


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="this system does not tell")
def test_a_known_host_needs_no_llvm(tmp_path: Path) -> None:
    assert run(BEGIN, tmp_path) == "True 1"
    assert run(BEGIN, tmp_path) == "False 0"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_does_not_wait_for_the_loading_thread(tmp_path: Path) -> None:
    assert run(CHILD, tmp_path) == "both"
