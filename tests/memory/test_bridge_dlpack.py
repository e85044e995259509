"""DLPack in both directions: NumPy, PyTorch, JAX; threads; pending exceptions; shutdown."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from support.oracle import oracle

from glassgrad.base.dtype import dtypes
from glassgrad.memory import MemoryView, export_count, from_dlpack, get
from glassgrad.memory.bridge_dlpack import Managed, ManagedVersioned, device_pair
from glassgrad.memory.capsules import EXPORTED, sweep


class OnlyDLPack:
    """An array that speaks nothing else, in the old way or the new."""

    def __init__(self, array: Any, is_old: bool = False) -> None:
        self.array = array
        self.is_old = is_old

    def __dlpack__(self, **options: Any) -> Any:
        if self.is_old and options:
            raise TypeError("no options here")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def settled() -> None:
    gc.collect()
    sweep()


KINDS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16", "?"]


@pytest.mark.parametrize("is_old", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_exports_of_numpy_are_imported(kind: str, is_old: bool) -> None:
    array = np.arange(12).reshape(3, 4).astype(kind)[::-1, 1::2].T
    owner = OnlyDLPack(array, is_old)
    with get(owner) as view:
        assert view.data == array.__array_interface__["data"][0]
        assert (view.shape, view.strides, view.item_size) == (
            array.shape, array.strides, array.itemsize,
        )  # fmt: skip
        assert not view.readonly
        assert [view[i] for i in np.ndindex(array.shape)] == array.ravel().tolist()
        assert export_count(owner) == 1
    assert export_count(owner) == 0


@pytest.mark.parametrize("version", [None, (0, 8), (1, 0), (1, 1), (2, 0)])
@pytest.mark.parametrize("kind", KINDS)
def test_numpy_imports_our_exports(kind: str, version: Any) -> None:
    array = np.arange(6).reshape(2, 3).astype(kind)[:, ::-1]

    class Exporter:
        def __dlpack__(self, **_: Any) -> Any:
            return view.__dlpack__(max_version=version)

        def __dlpack_device__(self) -> tuple[int, int]:
            return view.__dlpack_device__()

    view = get(array)
    seen = np.from_dlpack(Exporter())
    assert seen.__array_interface__["data"][0] == array.__array_interface__["data"][0]
    assert np.array_equal(seen, array)
    with pytest.raises(BufferError, match="still in use"):
        view.release()
    del seen
    assert view.release()


def test_strides_are_always_filled_in() -> None:
    view = get(np.zeros((2, 3), np.float32))
    address = 0
    capsule = view.__dlpack__()
    (address,) = [place for place, lent in EXPORTED.items() if lent.view is view]
    tensor = Managed.from_address(address).tensor
    assert list((ctypes.c_int64 * 2).from_address(tensor.strides)) == [3, 1]
    capsule = view.__dlpack__(max_version=(1, 0))
    places = [
        place for place, lent in EXPORTED.items() if lent.view is view and lent.capsule is capsule
    ]
    managed = ManagedVersioned.from_address(places[0])
    assert (managed.major, managed.flags) == (1, 0)


def test_read_only_memory_is_exported_with_a_flag_or_not_at_all() -> None:
    view = get(b"abcdefgh")
    assert not np.from_dlpack(view).flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        view.__dlpack__()
    again = get(OnlyDLPack(np.from_dlpack(view)))
    assert again.readonly


def test_a_copy_is_flagged_as_a_copy() -> None:
    array = np.arange(6, dtype=np.int32).reshape(2, 3)[:, ::-1]
    view = get(array)
    seen = np.from_dlpack(view, copy=True)
    assert np.array_equal(seen, array)
    assert not np.shares_memory(seen, array)
    assert view.release()
    capsule = get(b"abcd").__dlpack__(max_version=(1, 0), copy=True)
    place = next(place for place, lent in EXPORTED.items() if lent.capsule is capsule)
    assert ManagedVersioned.from_address(place).flags == 2


def test_layouts_that_dlpack_lacks_are_refused() -> None:
    for array in (
        np.zeros(2, ">f4"),
        np.zeros(2, "S3"),
        np.zeros(2, [("a", "i1"), ("b", "f4")]),
        np.zeros(2, [("a", "i1"), ("b", "f4")])["b"],
    ):
        with pytest.raises(BufferError, match="DLPack"):
            get(array).__dlpack__()
    with pytest.raises(BufferError, match="not on device"):
        get(bytearray(3)).__dlpack__(dl_device=(2, 0))
    with pytest.raises(TypeError, match="does not support DLPack"):
        from_dlpack(b"abc")


def test_devices_have_dlpack_types() -> None:
    assert device_pair("CPU") == device_pair("PYTHON") == (1, 0)
    assert device_pair("METAL") == (8, 0)
    with pytest.raises(BufferError, match="no device type for TPU"):
        device_pair("TPU")


def test_a_capsule_can_be_imported_once() -> None:
    view = get(np.arange(4.0))
    capsule = view.__dlpack__()
    taken = from_dlpack(capsule)
    assert taken[3] == 3.0
    with pytest.raises(BufferError, match="can be imported once"):
        from_dlpack(capsule)
    with pytest.raises(BufferError, match="still in use"):
        view.release()
    taken.release()
    assert view.release()


def test_an_unused_capsule_is_released() -> None:
    raw = bytearray(8)
    before = sys.getrefcount(raw)
    view = get(raw)
    capsule = view.__dlpack__()
    with pytest.raises(BufferError):
        view.release()
    del capsule
    assert view.release()
    for _ in range(100):
        get(raw).__dlpack__()
    settled()
    assert sys.getrefcount(raw) == before
    assert export_count(raw) == 0


def test_ten_thousand_tensors_leak_nothing() -> None:
    array = np.arange(4.0)
    before = sys.getrefcount(array)
    for _ in range(10_000):
        np.from_dlpack(get(array))
    settled()
    assert sys.getrefcount(array) == before
    assert not [lent for lent in EXPORTED.values() if lent.view and lent.view.obj is array]


def test_many_deleted_tensors_are_all_found() -> None:
    array = np.arange(4.0)
    view = get(array)
    kept = [np.from_dlpack(view) for _ in range(300)]
    del kept[::2]
    settled()
    with pytest.raises(BufferError, match="150 exports"):
        view.release()
    kept.clear()
    assert view.release()


def test_tensors_may_be_dropped_by_other_threads() -> None:
    array = np.arange(64.0)
    view = get(array)
    kept: list[Any] = [np.from_dlpack(view) for _ in range(200)]

    def work() -> None:
        while kept:
            try:
                kept.pop()
            except IndexError:
                return

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert view.release()


def test_torch_shares_memory_both_ways() -> None:
    torch = oracle("torch")
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    view = get(array[:, ::2])
    seen = torch.from_dlpack(view)
    assert seen.data_ptr() == array.ctypes.data and seen.stride() == (4, 2)
    seen[1, 1] = 99
    assert array[1, 2] == 99
    tensor = torch.arange(6).reshape(2, 3).t()
    with get(tensor) as back:
        assert (back.data, back.shape, back.strides) == (tensor.data_ptr(), (3, 2), (8, 24))
        back[2, 1] = -5
        assert tensor[2, 1] == -5
    with pytest.raises(BufferError):
        get(torch.zeros(2, requires_grad=True))


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_low_precision_tensors_of_torch_keep_their_dtype(name: str) -> None:
    torch = oracle("torch")
    tensor = torch.tensor([1.5, -2.0]).to(getattr(torch, name))
    view = get(tensor)
    assert view.dtype in (dtypes.bfloat16, *dtypes.fp8s)
    assert view[0] == tensor.view(torch.uint8).numpy().tobytes()[: view.item_size]
    again = torch.from_dlpack(view)
    assert again.dtype is tensor.dtype and again.data_ptr() == tensor.data_ptr()


def test_a_pending_exception_survives_the_release_of_a_tensor() -> None:
    torch = oracle("torch")
    view = get(np.arange(4.0))

    def fail() -> None:
        [torch.from_dlpack(view), 1 / 0]

    with pytest.raises(ZeroDivisionError):
        fail()
    assert view.release()


def test_jax_shares_memory_both_ways() -> None:
    jax = oracle("jax")
    numbers = jax.numpy.arange(4.0)
    with from_dlpack(numbers) as view:
        assert view.data == numbers.unsafe_buffer_pointer()
        assert [view[i] for i in range(4)] == [0, 1, 2, 3]
    array = np.arange(64, dtype=np.float32)
    assert jax.dlpack.from_dlpack(get(array)).sum() == array.sum()


EXIT = """
import numpy as np
from glassgrad.memory import MemoryView, from_dlpack, get
owner = np.arange(8.0)
view = get(owner)
array = np.from_dlpack(view)
capsule = view.__dlpack__()
window = view.memoryview()[1:]
other = from_dlpack(get(owner))
inner = np.asarray(get(owner))
capsules = get(owner).__arrow_c_array__()
import builtins
try:
    import pyarrow
    builtins.column = pyarrow.array(get(owner))
except ImportError:
    pass
try:
    import torch
    tensor = torch.from_dlpack(get(owner))
    builtins.kept = torch.from_dlpack(get(owner))
except ImportError:
    pass
import sys
sys.kept = (np.from_dlpack(get(owner)), get(owner).memoryview(), get(owner))
print("end")
"""


def test_exports_that_outlive_python_do_no_harm() -> None:
    done = subprocess.run([sys.executable, "-c", EXIT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


def test_a_view_over_dlpack_is_a_memory_view() -> None:
    assert isinstance(from_dlpack(np.arange(3)), MemoryView)
