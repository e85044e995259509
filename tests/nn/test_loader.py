"""Batches of tensors, and a thread that ends."""

from __future__ import annotations

import gc
import itertools
import threading
from typing import Any

import numpy as np
import pytest

from glassgrad import Tensor, dtypes
from glassgrad.base.errors import ShapeError
from glassgrad.nn.loader import Loader

X = np.arange(40, dtype=np.float32).reshape(10, 4)
Y = np.arange(10)


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "loader"]


@pytest.mark.parametrize("prefetch", [0, 1, 5])
def test_rows_stay_together(prefetch: int) -> None:
    seen = []
    for x, y in Loader(X, Tensor(Y), batch_size=4, prefetch=prefetch):
        assert isinstance(x, Tensor)
        np.testing.assert_array_equal(x.numpy(), X[y.numpy()])
        seen += y.tolist()
    assert sorted(seen) == Y.tolist()
    assert seen != sorted(seen)
    assert not threads()


def test_one_array_gives_tensors_not_tuples() -> None:
    assert [x.tolist() for x in Loader([1, 2, 3], batch_size=2, seed=None)] == [[1, 2], [3]]


def test_a_loader_has_a_length() -> None:
    assert len(Loader(Y, batch_size=4)) == 3
    assert len(Loader(Y, batch_size=4, drop_last=True)) == 2
    assert len(list(Loader(Y, batch_size=4, drop_last=True))) == 2


def test_epochs_differ_and_a_new_loader_repeats_them() -> None:
    def epochs() -> list[list[int]]:
        loader = Loader(Y, batch_size=10, seed=5)
        return [next(iter(loader)).tolist() for _ in range(3)]

    first = epochs()
    assert first == epochs()
    assert len(set(map(tuple, first))) == 3


def test_the_thread_ends_with_the_loop() -> None:
    for _ in Loader(Y, batch_size=1):
        assert threads() == ["loader"]
        break
    gc.collect()
    assert not threads()
    left = iter(Loader(Y, batch_size=1))
    next(left)
    del left
    gc.collect()
    assert not threads()


def test_an_error_in_the_thread_is_raised_in_the_loop() -> None:
    class Broken:
        def __len__(self) -> int:
            return 4

        def __getitem__(self, indices: Any) -> Any:
            raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        list(Loader(Broken()))
    assert not threads()


def test_sequences_are_padded_to_the_longest_of_a_batch() -> None:
    data = [[1], [1, 2, 3], [1, 2]]
    found = [x.tolist() for x in Loader(data, batch_size=2, seed=None, pad=-1)]
    assert found == [[[1, -1, -1], [1, 2, 3]], [[1, 2]]]
    even = next(iter(Loader([np.ones((3, 2))], seed=None, multiple=4)))
    assert even.shape == (1, 4, 2)


def test_rows_of_several_dtypes_lose_nothing() -> None:
    data = [[1], [], [1.5, 2.5]]
    (found,) = Loader(data, batch_size=3, seed=None)
    assert found.tolist() == [[1.0, 0.0], [0.0, 0.0], [1.5, 2.5]]
    assert found.dtype is dtypes.float32


def test_python_numbers_get_default_dtypes() -> None:
    def dtype_of(data: Any) -> Any:
        return next(iter(Loader(data))).dtype

    assert dtype_of([1.0, 2.0]) is dtype_of([[1.0], [2.0, 3]]) is dtypes.float32
    assert dtype_of([1, 2]) is dtype_of([[1], [], [2, 3]]) is dtypes.int32
    assert dtype_of([1, 1 << 40]) is dtypes.int64
    assert dtype_of([True]) is dtypes.bool
    assert dtype_of([np.float64(1)]) is dtype_of(np.ones(3)) is dtypes.float64
    assert dtype_of([np.ones(3, np.int64)]) is dtypes.int64


@pytest.mark.parametrize(
    "data",
    [(x for x in [1]), itertools.count(), None, np.float32(1), "abc", {1: 2}, {1, 2}],
    ids=lambda data: type(data).__name__,
)
def test_data_without_samples_is_refused(data: Any) -> None:
    with pytest.raises(ShapeError, match=f"cannot load batches from a {type(data).__name__}"):
        Loader(data)


def test_batches_by_length_need_little_padding() -> None:
    draw = np.random.default_rng(0)
    data = [[1] * int(n) for n in draw.integers(1, 200, 500)]
    sizes = {}
    for by_length in (False, True):
        loader = Loader(data, batch_size=10, by_length=by_length)
        sizes[by_length] = sum(x.numel() for x in loader)
    assert sum(map(len, data)) <= sizes[True] < 0.6 * sizes[False]


def test_a_loader_continues_at_the_position_of_another() -> None:
    first, second = (Loader(Y, batch_size=3, seed=1) for _ in range(2))
    list(first)
    rest = []
    for number, x in enumerate(first):
        if number == 1:
            second.seek(first.position())
        if number > 1:
            rest.append(x.tolist())
    assert [x.tolist() for x in second] == rest
    assert [x.tolist() for x in second] == [x.tolist() for x in first]


def test_the_end_of_an_epoch_is_the_beginning_of_the_next() -> None:
    first, second = (Loader(Y, batch_size=5, seed=1) for _ in range(2))
    for _ in first:
        second.seek(first.position())
    assert second.position() == first.position() == {"epoch": 1, "place": 0}


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_loop_that_ends_early_does_not_shorten_the_next(prefetch: int) -> None:
    first, second = (list(map(Tensor.tolist, one)) for one in epochs(2))
    loader = Loader(Y, batch_size=3, seed=1, prefetch=prefetch)
    assert next(iter(loader)).tolist() == first[0]
    assert [x.tolist() for x in loader] == second


def epochs(count: int) -> list[list[Tensor]]:
    loader = Loader(Y, batch_size=3, seed=1)
    return [list(loader) for _ in range(count)]


def test_loops_over_one_loader_are_independent() -> None:
    outer, *inner = ([x.tolist() for x in one] for one in epochs(5))
    loader = Loader(Y, batch_size=3, seed=1)
    found = [(x.tolist(), [y.tolist() for y in loader]) for x in loader]
    assert found == list(zip(outer, inner, strict=True))
    both = Loader(Y, batch_size=3, seed=1)
    pairs = [(x.tolist(), y.tolist()) for x, y in zip(both, both, strict=True)]
    assert pairs == list(zip(outer, inner[0], strict=True))


def test_position_is_that_of_the_newest_loop_even_if_it_ended() -> None:
    first, _ = epochs(2)
    loader = Loader(Y, batch_size=3, seed=1)
    for number, _ in enumerate(loader):
        if number == 1:
            break
    assert loader.position() == {"epoch": 0, "place": 2}
    again = Loader(Y, batch_size=3, seed=1)
    again.seek(loader.position())
    assert [x.tolist() for x in again] == [x.tolist() for x in first[2:]]
    assert again.position() == {"epoch": 1, "place": 0}


def test_breaking_at_the_last_batch_ends_the_epoch() -> None:
    loader = Loader(Y, batch_size=len(Y), seed=1)
    first = next(iter(loader)).tolist()
    assert loader.position() == {"epoch": 1, "place": 0}
    assert next(iter(loader)).tolist() != first


def test_values_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"the same length, not \[9, 10\]"):
        Loader(X, Y[1:])
    with pytest.raises(ShapeError, match="at least 1, not 0"):
        Loader(X, batch_size=0)
    with pytest.raises(ShapeError, match="by_length needs a list of sequences"):
        Loader(X, by_length=True)
    with pytest.raises(ShapeError, match="must have the same length"):
        Loader()
