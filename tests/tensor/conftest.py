"""Tests of Tensor run on the reference interpreter, since they are about what is recorded.

Modules with ON_BOTH_BACKENDS = True run on compiled code as well, those with ON_COMPILED_BACKEND =
True only there. GLASSGRAD_COMPILED=1 runs all of them on compiled code.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from support.compiler.interpreted import interpreted

from glassgrad.engine import pipeline


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    is_compiled = getattr(metafunc.module, "ON_COMPILED_BACKEND", False)
    is_compiled = is_compiled or bool(os.environ.get("GLASSGRAD_COMPILED"))
    backends = ["compiled"] if is_compiled else ["interpreted"]
    if getattr(metafunc.module, "ON_BOTH_BACKENDS", False):
        backends = ["interpreted", "compiled"]
    metafunc.parametrize("backend", backends, indirect=True)


@pytest.fixture(autouse=True)
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
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
