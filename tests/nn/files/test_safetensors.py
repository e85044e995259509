"""safetensors: round trips, files of other libraries, and damaged files."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.oracle import oracle

from glassgrad import Tensor, dtypes
from glassgrad.base.errors import FormatError
from glassgrad.nn.files.safetensors import DTYPES, safe_load, safe_load_metadata, safe_save


def file(path: Path, header: Any, data: bytes = b"", length: int | None = None) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    size = len(text) if length is None else length
    path.write_bytes(size.to_bytes(8, "little") + text + data)
    return path


def entry(dtype: Any = "F32", shape: Any = (2,), offsets: Any = (0, 8)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def test_every_dtype_round_trips(tmp_path: Path) -> None:
    path = tmp_path / "all.safetensors"
    tensors = {name: Tensor([0, 1, 1]).cast(dtype) for name, dtype in DTYPES.items()}
    tensors |= {
        "scalar": Tensor(2.5),
        "empty": Tensor.empty(0, 3),
        "transposed": Tensor([[1, 2]]).T,
    }
    safe_save(tensors, path)
    found = safe_load(str(path))
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert (found[name].dtype, found[name].shape) == (tensor.dtype, tensor.shape)
        assert found[name].tolist() == tensor.tolist()
        assert not found[name].is_param


def test_tensors_are_views_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    safe_save({"a": Tensor([1.0, 2.0]), "b": Tensor([3], dtype=dtypes.uint8)}, path)
    found = safe_load(path)
    assert {tensor.device for tensor in found.values()} == {f"DISK:{path}"}
    assert found["a"].to("CPU").data().readonly


def test_files_are_exchanged_with_the_library_of_safetensors(tmp_path: Path) -> None:
    theirs = oracle("safetensors.numpy")
    path = tmp_path / "x.safetensors"
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    safe_save({"a": Tensor(array), "b": Tensor([7])}, path, {"step": 3})
    np.testing.assert_array_equal(theirs.load_file(path)["a"], array)
    theirs.save_file({"c": array, "d": np.array([True, False])}, path)
    assert {name: tensor.tolist() for name, tensor in safe_load(path).items()} == {
        "c": array.tolist(),
        "d": [True, False],
    }


def test_metadata_becomes_strings(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    safe_save({"a": Tensor([1])}, path, {"note": "text", "step": 3})
    raw, start, header = safe_load_metadata(path)
    assert header["__metadata__"] == {"note": "text", "step": "3"}
    assert start % 64 == 0
    assert raw.shape == (start + 4,)
    assert safe_load(raw)["a"].tolist() == [1]


def test_unaligned_elements_are_read(tmp_path: Path) -> None:
    header = json.dumps({"x": entry()}).encode()
    header += b" " * ((3 - len(header)) % 4)  # data starts at an odd offset
    path = file(tmp_path / "x", header, np.array([1.5, 2.5], np.float32).tobytes())
    assert safe_load(path)["x"].tolist() == [1.5, 2.5]


BAD: dict[str, tuple[Any, bytes, str]] = {
    "no object": ([1], b"", "must be a JSON object"),
    "no JSON": (b"{", b"", "not valid JSON"),
    "no text": (b"\xff\xfe{}", b"", "not valid JSON"),
    "deep": (b"[" * 100_000, b"", "not valid JSON"),
    "a name twice": (b'{"x": 1, "x": 2}', b"", "two tensors have the same name"),
    "no entry": ({"x": 1}, b"", "x has no dtype"),
    "no dtype": ({"x": {"shape": [], "data_offsets": [0, 4]}}, b"1234", "x has no dtype"),
    "another dtype": ({"x": entry("F31")}, bytes(8), "x has the unknown dtype 'F31'"),
    "a dtype that is a list": ({"x": entry(["F32"])}, bytes(8), "x has the unknown dtype"),
    "a negative size": ({"x": entry(shape=[-2])}, bytes(8), "the invalid shape"),
    "a size that is a float": ({"x": entry(shape=[2.0])}, bytes(8), "the invalid shape"),
    "a size that is true": ({"x": entry(shape=[True, 2])}, bytes(8), "the invalid shape"),
    "a huge size": ({"x": entry(shape=[1 << 70])}, bytes(8), "the invalid shape"),
    "sizes that overflow": ({"x": entry(shape=[1 << 40] * 4)}, bytes(8), "needs .* bytes"),
    "many axes": ({"x": entry(shape=[1] * 100)}, bytes(8), "the invalid shape"),
    "three offsets": ({"x": entry(offsets=[0, 4, 8])}, bytes(8), "invalid data_offsets"),
    "reversed offsets": ({"x": entry(offsets=[8, 0])}, bytes(8), "x needs 8 bytes, but has -8"),
    "past the end": ({"x": entry()}, bytes(4), "the tensors end at byte"),
    "bytes left over": ({"x": entry()}, bytes(12), "the tensors end at byte"),
    "a gap": ({"x": entry(offsets=[4, 12])}, bytes(12), "starts at byte 4 instead of 0"),
    "an overlap": ({"x": entry(), "y": entry(offsets=[4, 12])}, bytes(12), "byte 4 instead of 8"),
}


@pytest.mark.parametrize("case", BAD)
def test_invalid_files_are_refused(case: str, tmp_path: Path) -> None:
    header, data, message = BAD[case]
    with pytest.raises(FormatError, match=message):
        safe_load(file(tmp_path / "x", header, data))


def test_truncated_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"1234")
    with pytest.raises(FormatError, match="4 bytes are too few"):
        safe_load(path)
    with pytest.raises(FormatError, match="should have 1000 bytes"):
        safe_load(file(path, {}, length=1000))
    with pytest.raises(FormatError, match="1-dimensional uint8"):
        safe_load(Tensor([1.0]))


def test_reserved_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="cannot write __metadata__"):
        safe_save({"__metadata__": Tensor([1])}, tmp_path / "x")
    assert not list(tmp_path.iterdir())


def test_damaged_files_are_read_or_raise_format_errors(tmp_path: Path) -> None:
    path = tmp_path / "x"
    safe_save({"a": Tensor([1.0, 2.0]), "b": Tensor([[1, 2]]), "c": Tensor([True])}, path, {"k": 1})
    good = path.read_bytes()
    rng = random.Random(0)
    outcomes = {"read": 0, "refused": 0}
    for _ in range(1500):
        bad = bytearray(good)
        for _ in range(rng.choice((1, 1, 2, 8))):
            bad[rng.randrange(len(bad))] = rng.randrange(256)
        if rng.random() < 0.3:
            del bad[rng.randrange(len(bad)) :]
        path.write_bytes(bad)
        try:
            for tensor in safe_load(path).values():
                assert tensor.nbytes() <= len(bad)
                bytes(tensor.bitcast(dtypes.uint8).numpy() if tensor.shape else b"")
            outcomes["read"] += 1
        except FormatError:
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 20
