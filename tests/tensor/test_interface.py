"""Tensor is an assembly of sibling families; the declared interface says what they share."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

from glassgrad import Tensor
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.interface import TensorInterface

FAMILIES = Tensor.__bases__[:-1]
DECLARED = [
    name
    for name, value in vars(TensorInterface).items()
    if isinstance(value, (classmethod, property)) or inspect.isfunction(value)
]


@pytest.mark.parametrize("name", DECLARED)
def test_a_declared_method_exists_with_the_declared_signature(name: str) -> None:
    declared = inspect.getattr_static(TensorInterface, name)
    defined = inspect.getattr_static(Tensor, name)
    assert isinstance(defined, type(declared))
    assert inspect.signature(getattr(Tensor, name)) == inspect.signature(
        getattr(TensorInterface, name)
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_derives_from_the_core_alone(family: type) -> None:
    assert family.__bases__ == (TensorCore,)
    assert family.__doc__


def test_no_method_is_defined_in_two_families() -> None:
    names = [
        name
        for family in (Tensor, *FAMILIES, TensorCore)
        for name, value in vars(family).items()
        if callable(value) or isinstance(value, (classmethod, staticmethod, property))
    ]
    assert sorted(names) == sorted(set(names))


def test_the_method_resolution_order_is_the_list_of_families() -> None:
    assert Tensor.__mro__ == (Tensor, *FAMILIES, TensorCore, object)


def test_a_running_program_does_not_import_the_declarations() -> None:
    code = "import sys, glassgrad; print('glassgrad.tensor.interface' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
