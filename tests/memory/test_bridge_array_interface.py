"""Array interfaces: dictionaries in, dictionaries out."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassgrad.memory import get
from glassgrad.memory.bridge_array_interface import format_of

KINDS = st.sampled_from(["i1", "<u2", ">i4", "<f2", "<f4", ">f8", "<c8", ">c16", "?", "S4", "<U2"])
FIELDS = st.lists(st.tuples(KINDS, st.sampled_from([(), (), (2,), (2, 3)])), min_size=1, max_size=4)


class OnlyInterface:
    """An array that shows nothing but its dictionary."""

    def __init__(self, array: Any, **changes: Any) -> None:
        self.keep = array
        self.__array_interface__ = array.__array_interface__ | changes


@given(st.one_of(KINDS, FIELDS), st.booleans())
def test_arrays_come_in_and_go_out_unchanged(kind: Any, is_aligned: bool) -> None:
    if isinstance(kind, list):
        fields = [("abcd"[i], one, shape) for i, (one, shape) in enumerate(kind)]
        kind = np.dtype(fields, align=is_aligned)
    array = np.zeros((3, 4), kind)
    raw = array.view(np.uint8)
    raw.reshape(-1)[:] = np.arange(raw.size) % 2
    strided = array[:, ::-2]
    view = get(OnlyInterface(strided))
    assert view.data == strided.__array_interface__["data"][0]
    assert view.strides == strided.strides
    again = np.asarray(OnlyInterface(view))
    assert again.itemsize == array.itemsize
    for name in array.dtype.names or ():  # padding has become a field of its own
        assert again[name].dtype == array[name].dtype
        assert again[name].tobytes() == strided[name].tobytes()
    if array.dtype.names is None:
        assert again.dtype == array.dtype
        assert again.tobytes() == strided.tobytes()
    assert np.shares_memory(again, array)


def test_an_array_keeps_the_memory_behind_a_released_view() -> None:
    view = get(np.arange(5))
    seen = np.asarray(OnlyInterface(view))  # from Python 3.12 on, a view itself is a buffer
    assert view.release()
    del view
    gc.collect()
    assert seen.tolist() == [0, 1, 2, 3, 4]


def test_data_may_be_a_buffer_with_an_offset() -> None:
    array = np.arange(4, dtype=np.int16)
    obj = OnlyInterface(array, data=memoryview(array).cast("B"), offset=2, shape=(3,))
    with get(obj) as view:
        assert [view[i] for i in range(3)] == [1, 2, 3]


def test_gpu_memory_is_described() -> None:
    class OnGpu:
        __cuda_array_interface__ = {
            "shape": (2, 3), "typestr": "<f4", "data": (4096, True), "version": 3, "strides": None,
        }  # fmt: skip

    with get(OnGpu()) as view:
        assert (view.device, view.data, view.shape, view.strides) == ("CUDA", 4096, (2, 3), (12, 4))
        assert view.readonly
        assert view.__dlpack_device__() == (2, 0)
        with pytest.raises(BufferError, match="memory of device CUDA"):
            view[0, 0]


@pytest.mark.parametrize(
    "changes", [{"shape": "x"}, {"typestr": "<"}, {"data": (None,)}, {"strides": 5}]
)
def test_an_invalid_dictionary_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(BufferError, match="has an invalid"):
        get(OnlyInterface(np.zeros(3), **changes))


def test_dates_are_bytes() -> None:
    dates = np.array(["2020-01-01"], "M8[D]")
    assert get(dates)[0] == dates.tobytes()
    assert format_of("<M8[D]") == "8s"
