"""Tests of the Tensor run on the reference interpreter: they are about what is recorded.

Modules that say `ON_BOTH_ROADS = True` run on compiled code as well, those that say
`ON_COMPILED_ROAD = True` only there, and `GLASSGRAD_ROAD=1` runs all of them on compiled code.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from support.compiler.interpreted import interpreted

from glassgrad.engine import pipeline


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    is_compiled = getattr(metafunc.module, "ON_COMPILED_ROAD", False)
    is_compiled = is_compiled or bool(os.environ.get("GLASSGRAD_ROAD"))
    roads = ["compiled"] if is_compiled else ["interpreted"]
    if getattr(metafunc.module, "ON_BOTH_ROADS", False):
        roads = ["interpreted", "compiled"]
    metafunc.parametrize("road", roads, indirect=True)


@pytest.fixture(autouse=True)
def road(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "compiled":
        yield request.param
        return
    with interpreted():
        yield request.param


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The kernels that were new."""
    found: list[object] = []
    begin = pipeline.start_compiling

    def counted(kernel, *rest):
        found.append(kernel)
        return begin(kernel, *rest)

    monkeypatch.setattr(pipeline, "start_compiling", counted)
    return found
