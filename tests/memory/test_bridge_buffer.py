"""Buffers are released, even during interpreter shutdown."""

from __future__ import annotations

import subprocess
import sys

import pytest

from glassgrad.memory import bridge_buffer

AT_EXIT = """
import numpy as np
from glassgrad import Tensor
from glassgrad.memory import bridge_buffer

views = [bridge_buffer.get(bytearray(8), 0), bridge_buffer.get(np.arange(4.0), 0)]
tensor = Tensor(np.arange(4.0))
vars(bridge_buffer).clear()  # as the interpreter does, before it comes to those who use them
"""


def test_a_buffer_is_held_until_its_view_is_released() -> None:
    exporter = bytearray(8)
    view = bridge_buffer.get(exporter, 0)
    with pytest.raises(BufferError):
        exporter.append(1)
    view.release()
    exporter.append(1)


def test_views_alive_at_exit_are_released_silently() -> None:
    done = subprocess.run([sys.executable, "-c", AT_EXIT], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
