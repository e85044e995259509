"""Errors about files name the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from glassgrad import Tensor
from glassgrad.base.errors import FormatError
from glassgrad.nn import state

READERS = ["safe_load", "safe_load_metadata", "torch_load", "npy_load", "npz_load", "gguf_load"]


@pytest.mark.parametrize("reader", [*READERS, "zip_extract", "tar_extract"])
def test_a_damaged_file_is_named(reader: str, tmp_path: Path) -> None:
    path = tmp_path / "weights.bin"
    path.write_bytes(b"no such thing" * 50)
    with pytest.raises(FormatError, match=r"weights\.bin: ") as found:
        getattr(state, reader)(path)
    assert found.value.message.count(str(path)) == 1
    assert found.value.origin is not None
    assert "test_error_paths.py" in str(found.value.origin)


def test_bytes_in_memory_have_no_name() -> None:
    with pytest.raises(FormatError) as found:
        state.safe_load(Tensor(b"no"))
    assert "Tensor" not in found.value.message
