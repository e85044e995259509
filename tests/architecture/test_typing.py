"""Editors can help: every method is documented by an example, and a typed script checks."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import ModuleType

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


def checked(script: Path, text: str) -> list[str]:
    """What mypy prints about a script of a user, line by line."""
    api = pytest.importorskip("mypy.api", reason="mypy is not there to check with")
    script.write_text(text)
    root = Path(glassgrad.__file__).parents[1]
    options = ["--strict", "--follow-imports=silent", "--config-file="]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MYPYPATH", str(root))
        printed, errors, _ = api.run([*options, f"--cache-dir={script.parent}", str(script)])
    assert not errors
    return printed.splitlines()


def test_a_script_of_a_user_checks_and_its_mistakes_are_found(tmp_path: Path) -> None:
    lines = [line for line in checked(tmp_path / "script.py", SCRIPT) if ": error:" in line]
    wrong = [number for number, line in enumerate(SCRIPT.splitlines(), 1) if "# wrong" in line]
    assert [int(line.split(":")[1]) for line in lines] == wrong, lines


REVEALED = {  # expression -> the type that an editor shows for it
    "TinyJit(step)": "TinyJit[[x: Tensor, times: int =], Tensor]",
    "captured(Tensor([1.0]), times=2)": "Tensor",
    "jit(step)(Tensor([1.0]))": "Tensor",
    "loss.item": "def () -> Any",
    "nn.Linear(4, 2)": "Linear",
    "nn.Linear(4, 2)(x)": "Tensor",
    "nn.Linear(4, 2).weight": "Tensor",
    "nn.optim.AdamW(params)": "AdamW",
    "nn.optim.AdamW(params).step()": "None",
    "nn.state.get_parameters(layer)": "list[Tensor]",
    "glassgrad.nn.state.get_state_dict(layer)": "dict[str, Tensor]",
    "Buffer": "def (",
    "x.sum(dim=0, keepdim=True)": "Tensor",
    "x.cat(x, dim=0)": "Tensor",
}

LAZY_NAMES = """
import glassgrad
from glassgrad import Buffer, Tensor, TinyJit, jit, nn


def step(x: Tensor, times: int = 1) -> Tensor:
    return (x * times).sum().backward()


captured = TinyJit(step)
layer = nn.Linear(4, 2)
params = nn.state.get_parameters(layer)
x = Tensor.rand(3, 4)
loss = layer(x).sum()
"""


def test_lazily_imported_names_have_static_types(tmp_path: Path) -> None:
    reveals = "".join(f"reveal_type({expression})\n" for expression in REVEALED)
    text = LAZY_NAMES + reveals
    first = LAZY_NAMES.count("\n") + 1
    lines = checked(tmp_path / "script.py", text)
    assert not [line for line in lines if ": error:" in line]
    notes = {int(line.split(":")[1]): line for line in lines if "Revealed type" in line}
    for number, (expression, shown) in enumerate(REVEALED.items(), first):
        short = re.sub(r"\w+\.", "", notes[number].split("Revealed type is ")[1])
        assert shown in short, f"{expression}: {notes[number]}"


@pytest.mark.parametrize("module", [glassgrad, glassgrad.nn])
def test_lazily_imported_names_are_listed(module: ModuleType) -> None:
    assert set(module.LAZY_IMPORTS) <= set(dir(module))
    for name in module.LAZY_IMPORTS:
        assert getattr(module, name) is not None
