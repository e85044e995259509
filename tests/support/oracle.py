"""Other libraries that results are compared with: skipped if missing, required by test-oracle."""

from __future__ import annotations

import importlib
import os
from importlib.util import find_spec
from typing import Any

import pytest

# `make test-oracle` installs all of them and sets this: a missing one is then an error.
ARE_REQUIRED = os.environ.get("REQUIRE_ORACLES") == "1"


def oracle(name: str) -> Any:
    """The module with this name; the test is skipped if it is not installed."""
    if ARE_REQUIRED:
        return importlib.import_module(name)
    return pytest.importorskip(name, reason=_reason(name))


def needs_oracle(name: str) -> pytest.MarkDecorator:
    """Marks a test that is skipped unless the module is installed."""
    is_missing = not ARE_REQUIRED and find_spec(name) is None
    return pytest.mark.skipif(is_missing, reason=_reason(name))


def _reason(name: str) -> str:
    return f"{name} is not installed; `make test-oracle` installs it"
