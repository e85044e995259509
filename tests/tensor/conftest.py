"""Tests of the Tensor run on the reference interpreter: they are about what is recorded.

`GLASSGRAD_ROAD=1 pytest tests/tensor` runs the same tests on compiled code.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from interpreted import interpreted


@pytest.fixture(autouse=True)
def on_the_reference() -> Iterator[None]:
    if os.environ.get("GLASSGRAD_ROAD"):
        yield
        return
    with interpreted():
        yield
