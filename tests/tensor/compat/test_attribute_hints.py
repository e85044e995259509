"""Hints for attribute names of other libraries."""

from __future__ import annotations

import copy
import pickle

import pytest

from glassgrad import Tensor, dtypes
from glassgrad.base.errors import DeviceError
from glassgrad.tensor.compat.attribute_hints import SUGGESTIONS


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("argwhere", r"has no attribute 'argwhere'; use nonzero\(\)"),
        ("astype", r"use cast\(dtype\)"),
        ("relu_", r"use assign\(x.relu\(…\)\), which writes in place"),
        ("nonsense", "'Tensor' object has no attribute 'nonsense'$"),
        ("nonsense_", "has no attribute 'nonsense_'$"),
        ("__array_struct__", "has no attribute '__array_struct__'$"),
    ],
)
def test_names_that_are_not_here_are_explained(name: str, words: str) -> None:
    with pytest.raises(AttributeError, match=words) as found:
        getattr(Tensor([1.0]), name)
    assert found.value.name == name


def test_what_is_here_is_not_explained() -> None:
    assert not [name for name in SUGGESTIONS if hasattr(Tensor, name)]


def test_methods_that_are_named_are_here() -> None:
    methods = {text.partition("(")[0] for text in SUGGESTIONS.values() if "(" in text}
    own = {name for name in methods if name.isidentifier()}
    assert len(own) > 5
    assert not [name for name in own if not hasattr(Tensor, name)]


def test_copies_and_pickles_look_for_no_names_in_vain() -> None:
    x = Tensor([1.0, 2.0])
    for again in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert again.tolist() == [1.0, 2.0]


def test_a_dtype_is_no_device() -> None:
    with pytest.raises(DeviceError, match=r"(?s)not dtypes.half.*cast\(\) changes the dtype"):
        Tensor([1.0]).to(dtypes.half)  # type: ignore[arg-type]
