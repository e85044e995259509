"""What `import glassgrad` gives, and what it does not load."""

from __future__ import annotations

import subprocess
import sys

import pytest

import glassgrad


def test_every_public_name_exists_and_is_listed() -> None:
    for name in glassgrad.__all__:
        assert getattr(glassgrad, name) is not None
    listed = {name for name in vars(glassgrad) if not name.startswith("_")}
    classes = {name for name in listed if isinstance(getattr(glassgrad, name), type)}
    assert classes <= {*glassgrad.__all__, "Any"}


def test_dir_lists_what_is_public() -> None:
    assert [name for name in dir(glassgrad) if not name.startswith("__")] == [
        name for name in sorted(glassgrad.__all__) if not name.startswith("__")
    ]


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        glassgrad.nonsense


def test_importing_loads_neither_llvm_nor_numpy_nor_layers() -> None:
    code = (
        "import sys, glassgrad; "
        "print([name for name in ('llvmlite', 'numpy', 'glassgrad.nn') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
