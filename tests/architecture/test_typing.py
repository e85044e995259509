"""Editors can help: every method is documented by an example, and a typed script checks."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import glassgrad
from glassgrad import Tensor

PUBLIC = sorted(name for name in dir(Tensor) if not name.startswith("_"))
STATE = {"grad", "is_param", "uop"}  # attributes of an instance
FACTS = {"shape", "dtype", "ndim", "requires_grad"}  # known by their names


@pytest.mark.parametrize("name", [name for name in PUBLIC if name not in STATE | FACTS])
def test_help_shows_what_a_method_does_and_an_example_that_runs(name: str) -> None:
    """The examples themselves run because pytest collects the doctests of the package."""
    text = inspect.getdoc(inspect.getattr_static(Tensor, name)) or ""
    assert text, f"Tensor.{name} has no docstring"
    assert ">>> " in text, f"Tensor.{name} has no example"


@pytest.mark.parametrize("name", [name for name in PUBLIC if callable(getattr(Tensor, name))])
def test_arguments_and_results_have_types(name: str) -> None:
    signature = inspect.signature(getattr(Tensor, name))
    assert signature.return_annotation is not inspect.Signature.empty
    for parameter in signature.parameters.values():
        assert parameter.name == "self" or parameter.annotation is not inspect.Parameter.empty


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(glassgrad.__file__).parent / "py.typed").is_file()


SCRIPT = """
from glassgrad import Tensor, TinyJit, dtypes


def forward(x: Tensor, weight: Tensor) -> Tensor:
    hidden = (x @ weight + 1).relu().layernorm()
    values, places = hidden.sort(-1)
    parts: tuple[Tensor, ...] = values.split(2)
    total: Tensor = Tensor.cat(*parts).softmax(-1).sum() * 2.0
    picked: Tensor = hidden[0, ..., ::2]
    return total + picked.mean() + places.cast(dtypes.float32).max()


x: Tensor = Tensor.rand(4, 3)
loss = forward(x, Tensor.eye(3)).backward()
size: int = x.numel()
shape: tuple[int, ...] = x.shape
x.conv2d(weight="none")  # wrong
x.no_such_method()  # wrong
"""


def test_a_script_of_a_user_checks_and_its_mistakes_are_found(tmp_path: Path) -> None:
    api = pytest.importorskip("mypy.api", reason="mypy is not there to check with")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    root = Path(glassgrad.__file__).parents[1]
    options = ["--strict", "--follow-imports=silent", "--config-file=", f"--cache-dir={tmp_path}"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MYPYPATH", str(root))
        found, errors, _ = api.run([*options, str(script)])
    wrong = [number for number, line in enumerate(SCRIPT.splitlines(), 1) if "# wrong" in line]
    lines = [line for line in found.splitlines() if ": error:" in line]
    assert [int(line.split(":")[1]) for line in lines] == wrong, found + errors
