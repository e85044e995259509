"""safetensors: what was written is read, by us and by others; what is wrong is refused."""

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


def test_every_dtype_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "all.safetensors"
    tensors = {name: Tensor([0, 1, 1]).cast(dtype) for name, dtype in DTYPES.items()}
    tensors |= {"scalar": Tensor(2.5), "empty": Tensor.empty(0, 3), "turned": Tensor([[1, 2]]).T}
    safe_save(tensors, path)
    found = safe_load(str(path))
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert (found[name].dtype, found[name].shape) == (tensor.dtype, tensor.shape)
        assert found[name].tolist() == tensor.tolist()
        assert not found[name].is_param


def test_tensors_are_windows_on_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    safe_save({"a": Tensor([1.0, 2.0]), "b": Tensor([3], dtype=dtypes.uint8)}, path)
    found = safe_load(path)
    assert {tensor.device for tensor in found.values()} == {f"DISK:{path}"}
    assert found["a"].to("CPU").data().readonly


def test_others_read_what_we_write_and_the_other_way_round(tmp_path: Path) -> None:
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


def test_metadata_is_text(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    safe_save({"a": Tensor([1])}, path, {"note": "text", "step": 3})
    raw, start, header = safe_load_metadata(path)
    assert header["__metadata__"] == {"note": "text", "step": "3"}
    assert start % 64 == 0
    assert raw.shape == (start + 4,)
    assert safe_load(raw)["a"].tolist() == [1]


def test_elements_that_lie_across_words_are_read(tmp_path: Path) -> None:
    header = json.dumps({"x": entry()}).encode()
    header += b" " * ((3 - len(header)) % 4)  # data begins at an odd place
    path = file(tmp_path / "x", header, np.array([1.5, 2.5], np.float32).tobytes())
    assert safe_load(path)["x"].tolist() == [1.5, 2.5]


BAD: dict[str, tuple[Any, bytes, str]] = {
    "no object": ([1], b"", "is an object"),
    "no JSON": (b"{", b"", "not what a safetensors file has"),
    "no text": (b"\xff\xfe{}", b"", "not what a safetensors file has"),
    "deep": (b"[" * 100_000, b"", "not what a safetensors file has"),
    "a name twice": (b'{"x": 1, "x": 2}', b"", "a name stands twice"),
    "no entry": ({"x": 1}, b"", "x lacks a dtype"),
    "no dtype": ({"x": {"shape": [], "data_offsets": [0, 4]}}, b"1234", "x lacks a dtype"),
    "another dtype": ({"x": entry("F31")}, bytes(8), "x has dtype 'F31'"),
    "a dtype that is a list": ({"x": entry(["F32"])}, bytes(8), "x has dtype"),
    "a negative size": ({"x": entry(shape=[-2])}, bytes(8), "a shape that is none"),
    "a size that is a float": ({"x": entry(shape=[2.0])}, bytes(8), "a shape that is none"),
    "a size that is true": ({"x": entry(shape=[True, 2])}, bytes(8), "a shape that is none"),
    "a huge size": ({"x": entry(shape=[1 << 70])}, bytes(8), "a shape that is none"),
    "sizes that overflow": ({"x": entry(shape=[1 << 40] * 4)}, bytes(8), "needs .* bytes"),
    "many axes": ({"x": entry(shape=[1] * 100)}, bytes(8), "a shape that is none"),
    "three offsets": ({"x": entry(offsets=[0, 4, 8])}, bytes(8), "offsets that are none"),
    "turned offsets": ({"x": entry(offsets=[8, 0])}, bytes(8), "x needs 8 bytes and has -8"),
    "past the end": ({"x": entry()}, bytes(4), "the tensors end at byte"),
    "bytes left over": ({"x": entry()}, bytes(12), "the tensors end at byte"),
    "a hole": ({"x": entry(offsets=[4, 12])}, bytes(12), "begins at byte 4 instead of 0"),
    "an overlap": ({"x": entry(), "y": entry(offsets=[4, 12])}, bytes(12), "byte 4 instead of 8"),
}


@pytest.mark.parametrize("case", BAD)
def test_files_that_lie_are_refused(case: str, tmp_path: Path) -> None:
    header, data, message = BAD[case]
    with pytest.raises(FormatError, match=message):
        safe_load(file(tmp_path / "x", header, data))


def test_files_that_are_cut_short_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"1234")
    with pytest.raises(FormatError, match="4 bytes are too few"):
        safe_load(path)
    with pytest.raises(FormatError, match="said to have 1000 bytes"):
        safe_load(file(path, {}, length=1000))
    with pytest.raises(FormatError, match="one axis of uint8"):
        safe_load(Tensor([1.0]))


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="cannot write __metadata__"):
        safe_save({"__metadata__": Tensor([1])}, tmp_path / "x")
    assert not list(tmp_path.iterdir())


def test_any_damage_is_an_error_or_other_values_but_nothing_worse(tmp_path: Path) -> None:
    path = tmp_path / "x"
    safe_save({"a": Tensor([1.0, 2.0]), "b": Tensor([[1, 2]]), "c": Tensor([True])}, path, {"k": 1})
    good = path.read_bytes()
    draw = random.Random(0)
    outcomes = {"read": 0, "refused": 0}
    for _ in range(1500):
        bad = bytearray(good)
        for _ in range(draw.choice((1, 1, 2, 8))):
            bad[draw.randrange(len(bad))] = draw.randrange(256)
        if draw.random() < 0.3:
            del bad[draw.randrange(len(bad)) :]
        path.write_bytes(bad)
        try:
            for tensor in safe_load(path).values():
                assert tensor.nbytes() <= len(bad)
                bytes(tensor.bitcast(dtypes.uint8).numpy() if tensor.shape else b"")
            outcomes["read"] += 1
        except FormatError:
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 20
