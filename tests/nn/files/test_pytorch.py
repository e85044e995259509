from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.files.torch import Named, archive_of, torch_file
from support.oracle import needs_oracle

from glassgrad import Tensor, dtypes
from glassgrad.base.errors import FormatError
from glassgrad.nn.files.pytorch import torch_load

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def without_tensors(found: Any) -> Any:
    if isinstance(found, Tensor):
        return found.tolist()
    if isinstance(found, dict):
        return {key: without_tensors(value) for key, value in found.items()}
    return [without_tensors(item) for item in found] if isinstance(found, list) else found


def test_tensors_numbers_strings_lists_and_dicts_are_read() -> None:
    given = {
        "x": X,
        "transposed": X.T,
        "step": 7,
        "rate": 0.5,
        "name": "naïve",
        "all": [X[0], None],
    }
    found = torch_load(Tensor(torch_file(given)))
    assert without_tensors(found) == {
        "x": X.tolist(), "transposed": X.T.tolist(), "step": 7, "rate": 0.5, "name": "naïve",
        "all": [X[0].tolist(), None],
    }  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "float16", "int64", "uint8", "bool"])
def test_every_dtype_keeps_its_values(dtype: str) -> None:
    found = torch_load(Tensor(torch_file(X.astype(dtype))))
    assert np.array_equal(found.numpy(), X.astype(dtype))
    assert found.dtype.name == dtype


@needs_oracle("torch")
@pytest.mark.parametrize("is_zip", [True, False])
def test_dtypes_without_a_storage_class_are_read(tmp_path: Path, is_zip: bool) -> None:
    import torch

    x = torch.tensor([[1.5, -2.0, 448.0], [0.0, 0.25, 3.0]])
    given = {
        "e4m3": x.to(torch.float8_e4m3fn), "e5m2": x.to(torch.float8_e5m2).t(),
        "u16": torch.tensor([1, 65535], dtype=torch.uint16),
        "u32": torch.tensor([2**32 - 1], dtype=torch.uint32),
        "dtype": torch.bfloat16, "tags": {"a", "b"}, "raw": b"\xff\0",
    }  # fmt: skip
    torch.save(given, tmp_path / "x.pt", _use_new_zipfile_serialization=is_zip)
    found = torch_load(tmp_path / "x.pt")
    assert found["e4m3"].dtype is dtypes.fp8e4m3
    assert found["e4m3"].tolist() == x.tolist()
    assert found["e5m2"].tolist() == x.to(torch.float8_e5m2).float().t().tolist()
    assert found["u16"].tolist() == [1, 65535]
    assert found["u32"].tolist() == [2**32 - 1]
    assert found["dtype"] is dtypes.bfloat16
    assert (found["tags"], found["raw"]) == ({"a", "b"}, b"\xff\0")


@needs_oracle("torch")
@pytest.mark.parametrize("is_zip", [True, False])
def test_unsupported_objects_and_dtypes_are_named(tmp_path: Path, is_zip: bool) -> None:
    import torch

    path = tmp_path / "x.pt"
    torch.save(torch.nn.Linear(2, 2), path, _use_new_zipfile_serialization=is_zip)
    with pytest.raises(
        FormatError, match=r"an object of the class torch\.nn\.modules\.linear\.Linear"
    ):
        torch_load(path)
    torch.save(torch.ones(2) * 1j, path, _use_new_zipfile_serialization=is_zip)
    with pytest.raises(FormatError, match=r"elements of a 'torch\.Complex"):
        torch_load(path)
    torch.save(torch.ones(2).to(torch.float8_e4m3fnuz), path)
    with pytest.raises(FormatError, match=r"no dtype for 'torch\.float8_e4m3fnuz'"):
        torch_load(path)


@needs_oracle("torch")
def test_files_of_pytorch_are_read(tmp_path: Path) -> None:
    import torch

    layer = torch.nn.Linear(3, 2)
    big = torch.arange(24.0).reshape(2, 3, 4)
    given = {
        "model": layer.state_dict(), "part": big[:, 1:, ::2], "transposed": big.permute(2, 0, 1),
        "bfloat16": big.bfloat16(), "parameter": layer.weight, "shape": big.shape,
        "half": big.half(), "empty": torch.zeros(0, 3), "scalar": torch.tensor(3),
    }  # fmt: skip
    torch.save(given, tmp_path / "x.pt")
    found = torch_load(tmp_path / "x.pt")
    assert found["model"].keys() == given["model"].keys()
    assert found["shape"] == (2, 3, 4)
    for name in given.keys() - {"model", "shape"}:
        assert found[name].shape == tuple(given[name].shape)
        assert np.array_equal(found[name].float().numpy(), given[name].detach().float().numpy())


class Evil:
    """Runs a command when Python's own reader loads it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_a_pickle_with_calls_is_refused_and_nothing_is_called(tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    raw = archive_of(pickle.dumps({"x": Evil(touched)}, 2), [])
    with pytest.raises(FormatError, match="the file asks to call"):
        torch_load(Tensor(raw))
    assert not touched.exists()


BAD = {
    "system": (Named("os", "system", "true"), "asks to call os.system"),
    "eval": (Named("builtins", "eval", "1"), "asks to call builtins.eval"),
    "no storage": (
        Named("torch._utils", "_rebuild_tensor_v2", 1, 0, (2,), (1,)),
        "has no valid storage",
    ),
    "too few": (Named("torch._utils", "_rebuild_tensor_v2", 1), "asks to call"),
    "a parameter of nothing": (Named("torch._utils", "_rebuild_parameter", 3), "asks to call"),
}


@pytest.mark.parametrize("name", BAD)
def test_other_calls_are_refused(name: str) -> None:
    obj, message = BAD[name]
    with pytest.raises(FormatError, match=message):
        torch_load(Tensor(torch_file({"x": obj})))


def test_other_files_and_archives_are_refused() -> None:
    with pytest.raises(FormatError, match=r"not written by torch\.save"):
        torch_load(Tensor(b"GGUF"))
    with pytest.raises(FormatError, match=r"must have one data\.pkl"):
        torch_load(Tensor(archive_of(b"", []).replace(b"data.pkl", b"data.pkx")))


def test_a_missing_storage_is_refused() -> None:
    raw = torch_file(X).replace(b"archive/data/0", b"archive/data/9")
    with pytest.raises(FormatError, match="there is no storage '0'"):
        torch_load(Tensor(raw))
