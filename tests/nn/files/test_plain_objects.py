"""Plain objects that training loops save beside their tensors, and pickles that imitate them."""

from __future__ import annotations

import argparse
import collections
import pickle
import sys
from pathlib import Path, PurePosixPath, PureWindowsPath
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.files.torch import Named, torch_file
from support.oracle import oracle

from glassgrad import Tensor
from glassgrad.base.errors import FormatError
from glassgrad.nn.files.pytorch import torch_load
from glassgrad.nn.files.storages import Builder
from glassgrad.nn.files.unpickler import unpickle


def find_nothing(key: str, *rest: Any) -> Any:
    raise FormatError(f"there is no storage {key}")


def read(value: Any, protocol: int = 2) -> Any:
    return unpickle(pickle.dumps(value, protocol), Builder(find_nothing))


@pytest.mark.parametrize(
    "value",
    [
        b"",
        bytearray(b"\xff\0"),
        range(3, 9, 2),
        1 - 2j,
        collections.OrderedDict(a=1),
        PurePosixPath("/a/b"),
        PureWindowsPath("c:/a"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("protocol", [2, 4])
def test_objects_of_python_round_trip(value: Any, protocol: int) -> None:
    assert read(value, protocol) == value


def test_sets_round_trip() -> None:
    for value in ({1, "a"}, set(), frozenset({2.5, (1, 2)})):
        assert read(value) == value


def test_some_classes_become_plainer_ones() -> None:
    assert read(collections.Counter("aab")) == {"a": 2, "b": 1}
    assert read(collections.defaultdict(list, a=[1])) == {"a": [1]}
    assert read(argparse.Namespace(lr=0.1, layers=[1])) == SimpleNamespace(lr=0.1, layers=[1])
    assert str(read(Path("a") / "b")) == str(Path("a") / "b")


@pytest.mark.parametrize("dtype", ["float32", ">i4", "bool", "uint8", "complex64", "<U3", "S2"])
@pytest.mark.parametrize("protocol", [2, 4])
def test_scalars_and_arrays_of_numpy_round_trip(dtype: str, protocol: int) -> None:
    array = np.arange(6).reshape(2, 3).astype(dtype)
    one = array[1, 2]
    found = read([array, one, array.T, np.zeros((0, 3), dtype), array], protocol)
    for got, wanted in zip(found, (array, one, array.T, np.zeros((0, 3)), array), strict=True):
        np.testing.assert_array_equal(got, wanted)
    assert found[0].dtype == array.dtype
    assert found[0] is found[4]
    found[0][0] = found[0][1]  # it is writable
    assert isinstance(found[1], np.generic)


def test_arrays_beside_tensors(tmp_path: Path) -> None:
    torch = oracle("torch")
    state = np.random.default_rng(3).standard_normal(4)
    given = {"x": torch.ones(2), "loss": np.float32(0.5), "random": state}
    for is_zip in (True, False):
        torch.save(given, tmp_path / "x.pt", _use_new_zipfile_serialization=is_zip)
        found = torch_load(tmp_path / "x.pt")
        assert found["x"].tolist() == [1, 1]
        assert found["loss"] == 0.5
        np.testing.assert_array_equal(found["random"], state)


def test_tensors_of_subclasses_become_tensors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = oracle("torch")

    class Derived(torch.Tensor):
        pass

    # Pickles find a class by its name.
    Derived.__qualname__, Derived.__module__ = "Derived", __name__
    monkeypatch.setitem(sys.modules, __name__, SimpleNamespace(Derived=Derived))
    x = torch.arange(4.0).as_subclass(Derived)
    torch.save({"x": x, "w": torch.nn.Parameter(x)}, tmp_path / "x.pt")
    found = torch_load(tmp_path / "x.pt")
    assert isinstance(found["x"], Tensor)
    assert found["x"].tolist() == found["w"].tolist() == [0, 1, 2, 3]


INVALID = {
    "a date": np.datetime64("2020-01-01"),
    "a dtype of a record": Named("numpy", "dtype", "f4,(1000000,1000000)f8", False, True),
    "a scalar without a dtype": Named("numpy.core.multiarray", "scalar", "f4", b"1234"),
    "a set of lists": Named("builtins", "set", [[1]]),
    "a range of texts": Named("builtins", "range", "a"),
    "a path of numbers": Named("pathlib", "PosixPath", 3),
    "bytes of a length": Named("builtins", "bytearray", 1 << 40),
    "a tensor by another way": Named(
        "torch._tensor", "_rebuild_from_type_v2", Named("os", "system"), 0, ("true",), {}
    ),
}


@pytest.mark.parametrize("name", INVALID)
def test_invalid_objects_are_refused(name: str) -> None:
    with pytest.raises(FormatError):
        torch_load(Tensor(torch_file({"x": INVALID[name]})))


@pytest.mark.parametrize(
    "array", [np.array([1, "a"], object), np.zeros(2, [("a", "i4")])], ids=["objects", "records"]
)
def test_arrays_of_other_dtypes_are_refused(array: Any) -> None:
    with pytest.raises(FormatError, match=r"unsupported NumPy dtype '[OV]8?4?'"):
        read(array)


@pytest.mark.parametrize("change", [b"\x09", b"\x01"], ids=["too large", "too small"])
def test_arrays_of_a_wrong_size_are_refused(change: bytes) -> None:
    raw = pickle.dumps(np.arange(5, dtype=np.uint8), 3)
    assert raw.count(b"K\x05\x85") == 1
    with pytest.raises(FormatError, match=r"an array of shape \(\d,\) has 5 bytes"):
        unpickle(raw.replace(b"K\x05\x85", b"K" + change + b"\x85"), Builder(find_nothing))
