"""A file is a device: mapped, shared, extended on demand."""

from __future__ import annotations

import errno
import gc
import os
from pathlib import Path

import numpy as np
import pytest

from glassgrad.base.counters import GlobalCounters
from glassgrad.base.dtype import dtypes
from glassgrad.base.errors import DeviceError, FormatError
from glassgrad.memory import get
from glassgrad.memory.disk import file_size
from glassgrad.memory.storage import Storage
from glassgrad.memory.view import View


def test_a_file_is_read_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "weights.bin"
    numbers = np.arange(1000, dtype=np.float32)
    path.write_bytes(numbers.tobytes())
    before = GlobalCounters.mem_used
    storage = Storage(f"DISK:{path}", 1000, dtypes.float32)
    view = View(storage.part(10, dtypes.float32, 40), dtypes.float32, (10,), (1,))
    assert np.array_equal(view.numpy(), numbers[10:20])
    assert GlobalCounters.mem_used == before
    assert file_size(f"DISK:{path}") == 4000


def test_writes_reach_the_file_and_other_maps_of_it(tmp_path: Path) -> None:
    path = tmp_path / "out.bin"
    device = f"DISK:{path}"
    assert file_size(device) == 0
    first = Storage(device, 4, dtypes.uint8).copyin(memoryview(b"abcd"))
    second = Storage(device, 6, dtypes.uint8)
    assert bytes(second.as_buffer()) == b"abcd\0\0"
    second.as_buffer()[0] = ord("x")
    assert bytes(first.as_buffer()) == b"xbcd"
    del first, second
    gc.collect()
    assert path.read_bytes() == b"xbcd\0\0"


@pytest.mark.skipif(getattr(os, "geteuid", int)() == 0, reason="root may write every file")
def test_a_file_without_write_permission_is_read_only(tmp_path: Path) -> None:
    path = tmp_path / "frozen.bin"
    path.write_bytes(b"abcd")
    path.chmod(0o444)
    storage = Storage(f"DISK:{path}", 4, dtypes.uint8)
    assert storage.as_buffer().readonly
    with pytest.raises(FormatError, match="read-only"):
        storage.copyin(memoryview(b"efgh"))
    with pytest.raises(DeviceError, match="is read-only, but 5 are wanted"):
        Storage(f"DISK:{path}", 5, dtypes.uint8).allocate()


def test_read_only_maps_are_exported_read_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "frozen.bin"
    path.write_bytes(b"abcd")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    storage = Storage(f"DISK:{path}", 4, dtypes.uint8)
    with get(storage.as_buffer()) as view:
        assert view.readonly and view[3] == ord("d")
    with pytest.raises(DeviceError, match="but 5 are wanted"):
        Storage(f"DISK:{path}", 5, dtypes.uint8).allocate()


def test_a_window_outlives_its_storage(tmp_path: Path) -> None:
    path = tmp_path / "data.bin"
    path.write_bytes(b"hello")
    window = Storage(f"DISK:{path}", 5, dtypes.uint8).as_buffer()
    gc.collect()
    assert bytes(window) == b"hello"


def test_empty_and_impossible_files(tmp_path: Path) -> None:
    assert bytes(Storage(f"DISK:{tmp_path / 'empty'}", 0, dtypes.uint8).as_buffer()) == b""
    with pytest.raises(DeviceError, match="cannot open"):
        Storage(f"DISK:{tmp_path / 'no' / 'such'}", 4, dtypes.uint8).allocate()
    with pytest.raises(DeviceError, match="has no file name"):
        Storage("DISK", 4, dtypes.uint8)


def refuse(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="a system that cannot reserve space")
def test_a_full_disk_is_an_error_and_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = tmp_path / "old.bin", tmp_path / "new.bin"
    old.write_bytes(b"abc")
    monkeypatch.setattr(os, "posix_fallocate", refuse)
    for path in (old, new):
        storage = Storage(f"DISK:{path}", 1000, dtypes.uint8)
        with pytest.raises(DeviceError, match=r"allocate 1,000 bytes in .*No space left"):
            storage.allocate()
        assert not storage.is_allocated()
    assert old.read_bytes() == b"abc"
    assert not new.exists()


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="a system that cannot reserve space")
def test_every_byte_of_a_file_is_allocated_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "sparse.bin"
    Storage(f"DISK:{path}", 1 << 20, dtypes.uint8).allocate()
    assert path.stat().st_blocks * 512 >= 1 << 20
    with path.open("r+b") as file:
        file.truncate(0)
        file.truncate(1 << 20)  # a hole
    Storage(f"DISK:{path}", 1 << 20, dtypes.uint8).allocate()
    assert path.stat().st_blocks * 512 >= 1 << 20


def test_systems_that_cannot_reserve_space_are_supported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(os, "posix_fallocate", unsupported, raising=False)
    storage = Storage(f"DISK:{tmp_path / 'x'}", 4, dtypes.uint8).copyin(memoryview(b"abcd"))
    assert bytes(storage.as_buffer()) == b"abcd"
