"""What `glassgrad.nn` offers."""

from __future__ import annotations

import subprocess
import sys

import pytest

from glassgrad import nn


def test_every_layer_is_listed_and_exists() -> None:
    listed = {name for name, value in vars(nn).items() if isinstance(value, type)}
    assert listed - {"ModuleType"} == set(nn.__all__)


def test_modules_are_imported_on_first_use() -> None:
    code = (
        "import sys; from glassgrad import nn; "
        "assert 'glassgrad.nn.optim' not in sys.modules; "
        "print(*(f.__name__ for f in (nn.optim.Adam, nn.state.safe_save, nn.datasets.mnist)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["Adam", "safe_save", "mnist"]
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        nn.nonsense
