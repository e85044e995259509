"""Tensors over files: slices are windows, computation happens in memory."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from glassgrad import GlobalCounters, Tensor, dtypes
from glassgrad.base.errors import DTypeError
from glassgrad.memory.hub import get
from glassgrad.tensor.lazy.realize import realized_view

ON_COMPILED_BACKEND = True  # the reference knows of no devices


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of the bytes 0 to 15; its name has letters of both kinds."""
    made = tmp_path / "Weights.bin"
    made.write_bytes(bytes(range(16)))
    return made


def file_of(path: Path, count: int = 16, dtype: str = "uint8") -> Tensor:
    return Tensor.empty(count, dtype=dtype, device=f"disk:{path}")


def address_of(tensor: Tensor) -> int:
    with get(tensor) as view:
        return view.data


def test_a_file_is_a_device(path: Path) -> None:
    tensor = file_of(path)
    assert (tensor.device, tensor.tolist()) == (f"DISK:{path}", list(range(16)))


def test_a_file_is_made_when_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "made.bin"
    tensor = file_of(path, 3, "float32")
    assert not path.exists()
    tensor.assign([1.0, 2.0, 3.0])  # others read files when they like, so this does not wait
    assert np.fromfile(path, np.float32).tolist() == [1, 2, 3]
    assert tensor.tolist() == [1, 2, 3]


def test_data_goes_to_a_file(tmp_path: Path) -> None:
    one, two = tmp_path / "one.bin", tmp_path / "two.bin"
    x = Tensor([1.0, 2.0], device=f"DISK:{one}")
    assert x.device == f"DISK:{one}"
    assert x.realize().device == f"DISK:{one}"
    assert np.fromfile(one, np.float32).tolist() == [1, 2]
    y = (x * 2).to(f"DISK:{two}").realize()
    assert (y.device, y.tolist()) == (f"DISK:{two}", [2, 4])
    assert np.fromfile(two, np.float32).tolist() == [2, 4]
    assert Tensor.full((2,), 7, device=f"DISK:{one}").realize().tolist() == [7, 7]


def test_parts_of_a_file_are_windows_on_it(path: Path) -> None:
    tensor = file_of(path)
    start = address_of(tensor)
    GlobalCounters.reset()
    part = tensor[4:12].reshape(2, 4)[:, 1:3]
    assert part.device == part.realize().device == f"DISK:{path}"
    assert GlobalCounters.kernel_count == 0
    assert part.tolist() == [[5, 6], [9, 10]]
    assert realized_view(tensor[4:12]).address == start + 4
    assert tensor.numpy().ctypes.data == start


def test_moving_to_the_cpu_copies_nothing(path: Path) -> None:
    tensor = file_of(path)
    part = tensor[4:8].to("CPU")
    assert part.device == "CPU"
    assert address_of(part) == address_of(tensor) + 4
    assert not part.numpy().flags.writeable


def test_what_was_moved_to_the_cpu_is_a_value_of_its_own(path: Path) -> None:
    tensor = file_of(path)
    seen, unseen, written = (tensor[:4].to("CPU") for _ in range(3))
    assert seen.tolist() == [0, 1, 2, 3]
    written[1] = 50
    tensor.assign(7)
    assert written.tolist() == [0, 50, 2, 3]
    assert seen.tolist() == unseen.tolist() == [0, 1, 2, 3]
    assert path.read_bytes() == bytes([7] * 16)


def test_bytes_are_read_as_other_items_where_they_are(path: Path) -> None:
    tensor = file_of(path)
    numbers = tensor[3:11].bitcast(dtypes.float32)  # at an odd place, as behind a header
    wanted = np.frombuffer(path.read_bytes()[3:11], np.float32)
    assert numbers.device == f"DISK:{path}"
    assert address_of(numbers) == address_of(tensor) + 3
    np.testing.assert_array_equal(numbers.to("CPU").numpy(), wanted)
    np.testing.assert_array_equal((numbers * 2).numpy(), wanted * 2)
    assert tensor.reshape(2, 8).bitcast("uint64").shape == (2, 1)
    with pytest.raises(DTypeError, match="whole items"):
        tensor[:3].bitcast("float32")


def test_computing_with_a_file_happens_on_the_default_device(path: Path) -> None:
    tensor = file_of(path)
    more = tensor[:3] + Tensor([1, 2, 3], dtype="uint8")
    assert more.device == more.realize().device == "CPU"
    assert more.tolist() == [1, 3, 5]
    assert tensor.max().item() == 15


def test_writes_reach_the_file_at_once(path: Path) -> None:
    tensor = file_of(path)
    tensor[0] = 99
    tensor[2:4] = tensor[:2]
    assert path.read_bytes()[:4] == bytes([99, 1, 99, 1])
    tensor[4:8].assign(Tensor([4, 3, 2, 1], dtype="uint8"))
    tensor[8:16].bitcast("float32").assign([1.5, 2.5])
    assert path.read_bytes()[4:8] == bytes([4, 3, 2, 1])
    assert np.fromfile(path, np.float32).tolist()[2:] == [1.5, 2.5]
    assert tensor[4:8].tolist() == [4, 3, 2, 1]


def test_parts_see_writes_and_values_made_before_do_not(path: Path) -> None:
    tensor = file_of(path)
    part, looked_at, value = tensor[:2], tensor[1:3], tensor[:2] * 10
    assert looked_at.tolist() == [1, 2]
    tensor.assign(tensor + 1)
    assert (part.tolist(), looked_at.tolist()) == ([1, 2], [2, 3])
    assert value.tolist() == [0, 10]


def test_a_path_is_a_tensor_of_its_bytes(path: Path) -> None:
    tensor = Tensor(path)
    assert (tensor.device, tensor.shape, tensor.dtype) == (f"DISK:{path}", (16,), dtypes.uint8)
    assert Tensor(path, device="CPU").device == "CPU"
    assert Tensor(path, dtype="uint32").shape == (4,)
    with pytest.raises(FileNotFoundError):
        Tensor(path.with_name("missing"))


def test_writing_to_a_tensor_of_a_path_leaves_the_file_alone(path: Path) -> None:
    one, two = Tensor(path), Tensor(path)
    one.assign(one + 1)
    two[0] = 99
    assert one.tolist() == [number + 1 for number in range(16)]
    assert two.tolist() == [99, *range(1, 16)]
    assert path.read_bytes() == bytes(range(16))


def test_a_file_is_found_again_wherever_the_process_goes(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    tensor = Tensor.empty(2, dtype="uint8", device=f"DISK:{path.name}")
    monkeypatch.chdir(os.sep)
    assert tensor.tolist() == [0, 1]
