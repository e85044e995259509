"""A View is a strided window that copies nothing."""

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.errors import FormatError, ShapeError
from glassgrad.memory.format_dtype import format_dtype
from glassgrad.memory.storage import Storage
from glassgrad.memory.view import View, contiguous_strides

WITH_FORMAT = [dtype for dtype in dtypes.all if dtype.format]


@given(st.lists(st.integers(1, 4), max_size=4), st.data())
def test_a_view_of_any_strided_array_shows_the_same_elements(
    shape: list[int], data: st.DataObject
) -> None:
    array = np.arange(np.prod(shape, dtype=int), dtype=np.int32).reshape(shape)
    order = data.draw(st.permutations(range(len(shape))))
    steps = [data.draw(st.sampled_from([1, -1, 2, -2])) for _ in shape]
    array = array.transpose(order)[(*(slice(None, None, step) for step in steps), ...)]
    view = View.from_host(array)
    assert view.shape == array.shape
    assert view.is_contiguous == array.flags.c_contiguous
    assert np.array_equal(view.numpy(), array)
    if array.size:
        assert view.address == array.__array_interface__["data"][0]


def test_writes_go_through_in_both_directions() -> None:
    array = np.zeros((2, 3), np.float32)
    view = View.from_host(array)
    view.numpy()[1, 2] = 5
    array[0, 0] = 7
    assert array[1, 2] == 5
    assert view.memoryview()[0, 0] == 7


def test_the_exporter_lives_while_the_view_does() -> None:
    array = np.ones(4)
    alive = weakref.ref(array)
    view = View.from_host(array)
    del array
    assert alive() is not None
    seen = view.numpy()
    del view
    assert seen.sum() == 4
    del seen
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("dtype", WITH_FORMAT, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (0,), (2, 0)])
def test_a_memoryview_has_the_format_and_shape(dtype: DType, shape: tuple[int, ...]) -> None:
    view = View.empty("CPU", shape, dtype)
    window = view.memoryview()
    assert format_dtype(window.format, window.itemsize) is dtype
    assert window.shape == shape
    assert bytes(window) == bytes(view.nbytes)


def test_a_memoryview_of_part_of_a_storage_starts_at_its_offset() -> None:
    storage = Storage("CPU", 6, dtypes.int16).copyin(memoryview(np.arange(6, dtype=np.int16)))
    view = View(storage, dtypes.int16, (2, 2), (2, 1), 2)
    assert view.memoryview().tolist() == [[2, 3], [4, 5]]
    assert view.address == storage.address + 4


def test_a_strided_view_has_a_strided_memoryview() -> None:
    array = np.arange(12, dtype=np.int16).reshape(3, 4)[::-1, ::2]
    window = View.from_host(array).memoryview()
    assert window.strides == array.strides
    assert window.tolist() == array.tolist()
    window[0, 0] = 99
    assert array[0, 0] == 99


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_low_precision_floats_are_shared_with_numpy(name: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.array([1.5, -2, 0.25], getattr(ml_dtypes, name))
    view = View.from_host(array)
    assert view.dtype.kind == "float" and view.dtype.itemsize == array.itemsize
    assert view.numpy().dtype == array.dtype
    assert np.array_equal(view.numpy(), array)
    assert bytes(view.memoryview()) == array.tobytes()


def test_bytes_can_be_seen_as_another_dtype_and_shape() -> None:
    numbers = np.arange(6, dtype=np.float32)
    view = View.from_host(numbers.tobytes(), dtypes.float32, (3, 2))
    assert np.array_equal(view.numpy(), numbers.reshape(3, 2))
    assert view.readonly and not view.numpy().flags.writeable
    with pytest.raises(FormatError, match="cannot be read as float32"):
        View.from_host(b"12345", dtypes.float32)
    with pytest.raises(ShapeError, match="6 elements do not fill"):
        View.from_host(numbers, shape=(4,))


def test_strides_that_split_elements_are_refused() -> None:
    records = np.zeros(3, np.dtype([("a", "i1"), ("b", "<f4")]))
    with pytest.raises(FormatError, match="not multiples of 4 bytes"):
        View.from_host(records["b"])


def test_views_are_equal_only_to_themselves() -> None:
    view = View.empty("CPU", (2,), dtypes.float32)
    assert view != view.new_version()
    assert view.new_version().storage is view.storage
    assert len({view, view, view.new_version()}) == 2


def test_size_one_axes_may_have_any_stride() -> None:
    storage = Storage("CPU", 6, dtypes.float32)
    assert View(storage, dtypes.float32, (1, 6), (77, 1)).is_contiguous
    assert not View(storage, dtypes.float32, (2, 3), (4, 1)).is_contiguous
    assert contiguous_strides(()) == ()
