"""Files of PyTorch before 1.6."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from support.files.torch import Named, old_torch_file
from support.oracle import oracle

from glassgrad import Tensor
from glassgrad.base.errors import FormatError
from glassgrad.nn.files.pytorch import torch_load

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_tensors_numbers_and_strings_of_old_files_are_read() -> None:
    found = torch_load(
        Tensor(old_torch_file({"x": X, "transposed": X.T, "more": [X[1], 7, "naïve"]}))
    )
    assert found["x"].tolist() == X.tolist()
    assert found["transposed"].tolist() == X.T.tolist()
    assert found["more"][0].tolist() == X[1].tolist()
    assert found["more"][1:] == [7, "naïve"]


def test_files_of_pytorch_without_zip_are_read(tmp_path: Path) -> None:
    torch = oracle("torch")
    layer = torch.nn.Linear(3, 2)
    big = torch.arange(24.0).reshape(2, 3, 4)
    given = {
        "weights": layer.state_dict(), "transposed": big.permute(2, 0, 1),
        "bfloat16": big.bfloat16(), "shared": [big, big[1]], "whole": torch.arange(5),
        "parameter": layer.weight,
    }  # fmt: skip
    torch.save(given, tmp_path / "x.pt", _use_new_zipfile_serialization=False)
    found = torch_load(tmp_path / "x.pt")
    assert found["weights"]["weight"].tolist() == layer.weight.tolist()
    assert found["parameter"].tolist() == layer.weight.tolist()
    assert found["transposed"].tolist() == given["transposed"].tolist()
    assert found["bfloat16"].float().tolist() == big.tolist()
    assert found["shared"][1].tolist() == big[1].tolist()
    assert found["whole"].tolist() == [0, 1, 2, 3, 4]


def test_old_pickles_with_calls_are_refused() -> None:
    raw = old_torch_file({"x": X, "bad": Named("os", "system", "true")})
    with pytest.raises(FormatError, match=r"asks to call os\.system"):
        torch_load(Tensor(raw))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda raw: raw[:-4], "the file is truncated"),
        (lambda raw: raw.replace(b"little_endian", b"middle_endian"), "big-endian"),
        (lambda raw: raw[:40], "is damaged"),
        (lambda raw: pickle.dumps([1], 2) + raw, "not written by torch.save"),
        (lambda raw: raw.replace(b"FloatStorage", b"BloatStorage"), "there is no dtype"),
    ],
)
def test_damaged_old_files_are_refused(change, message: str) -> None:
    with pytest.raises(FormatError) as error:
        torch_load(Tensor(change(old_torch_file({"x": X}))))
    assert message in str(error.value)


def test_a_storage_that_claims_to_be_huge_is_refused() -> None:
    raw = bytearray(old_torch_file(X))
    count = len(raw) - X.nbytes - 8
    raw[count : count + 8] = (1 << 60).to_bytes(8, "little")
    with pytest.raises(FormatError, match="storage 0 should be bytes"):
        torch_load(Tensor(bytes(raw)))
