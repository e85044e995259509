"""Loader: arrays -> batches of tensors, in an order that a seed decides, made ahead of time."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from queue import Full, Queue
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from glassgrad.base.errors import ShapeError
from glassgrad.nn.batches import batch_indices
from glassgrad.tensor.tensor import Tensor

if TYPE_CHECKING:
    import numpy as np

END = object()
LARGE = 1 << 31  # whole numbers from here on need int64
PAUSE = 0.05  # seconds after which a thread with a full queue looks whether it is still needed


class Loader:
    """Batches of one or several arrays, as tensors: `for x, y in Loader(images, labels)`.

    Data is anything with a length that takes an array of indices (NumPy arrays, mapped files,
    TokenWindows), a Tensor, or a list of sequences, which are padded to the longest of the batch.
    Each epoch has an order of its own, decided by the seed; `seed=None` keeps the order of the
    data. `by_length` puts sequences of about the same length together. Batches are made by a
    thread, `prefetch` ahead; it ends with the loop, however that ends. Every loop is an epoch of
    its own, also if others go on or were left early; only the first one after seek() begins there.

    >>> [x.tolist() for x in Loader([[1], [2, 3]], batch_size=2, seed=None)]
    [[[1, 0], [2, 3]]]
    """

    def __init__(
        self,
        *data: Any,
        batch_size: int = 32,
        seed: int | None = 0,
        drop_last: bool = False,
        by_length: bool = False,
        pad: float = 0,
        multiple: int = 1,
        prefetch: int = 2,
    ) -> None:
        self.columns = [_Column(one, pad, multiple) for one in data]
        counts = {len(column) for column in self.columns}
        if len(counts) != 1:
            raise ShapeError(f"a loader needs data of one length, not {sorted(counts)}")
        self.count = counts.pop()
        if batch_size < 1:
            raise ShapeError(f"a batch has at least one sample, not {batch_size}")
        self.batch_size, self.seed, self.drop_last = batch_size, seed, drop_last
        self.prefetch = prefetch
        self.lengths = self._lengths() if by_length else None
        self._newest = self._next = _Place(0, 0)

    def _lengths(self) -> list[int]:
        ragged = next((column for column in self.columns if column.is_ragged), None)
        if ragged is None:
            raise ShapeError("by_length needs a list of sequences", hint="arrays have one length")
        return [len(item) for item in ragged.data]

    def __len__(self) -> int:
        """How many batches an epoch has."""
        rounded = self.count if self.drop_last else self.count + self.batch_size - 1
        return rounded // self.batch_size

    def __iter__(self) -> Generator[Any, None, None]:
        """One epoch, or the rest of one that seek() found."""
        place = self._newest = self._next
        self._next = _Place(place.epoch + 1, 0)
        return self._batches(place)

    def _batches(self, place: _Place) -> Generator[Any, None, None]:
        seed = None if self.seed is None else (self.seed, place.epoch)
        order = batch_indices(self.count, self.batch_size, seed, self.drop_last, self.lengths)
        made = (self._arrays(indices) for indices in order[place.done :])
        with closing(_ahead(made, self.prefetch) if self.prefetch else made) as batches:
            for arrays in batches:
                place.done += 1
                tensors = tuple(Tensor(array, requires_grad=False) for array in arrays)
                yield tensors if len(tensors) > 1 else tensors[0]

    def _arrays(self, indices: Any) -> list[np.ndarray[Any, Any]]:
        return [column.batch(indices) for column in self.columns]

    # ------------------------------------------------------------------ for checkpoints

    def position(self) -> dict[str, int]:
        """The epoch of the newest loop, and how many of its batches were handed out."""
        epoch, done = self._newest.epoch, self._newest.done
        is_over = done >= len(self)
        return {"epoch": epoch + 1, "place": 0} if is_over else {"epoch": epoch, "place": done}

    def seek(self, position: dict[str, int]) -> None:
        """Let the next loop go on from there."""
        self._newest = self._next = _Place(position["epoch"], position["place"])


class _Place:
    """How far a loop is."""

    def __init__(self, epoch: int, done: int) -> None:
        self.epoch, self.done = epoch, done  # batches


class _Column:
    """One array of the data, and how a batch of it is made."""

    def __init__(self, data: Any, pad: float, multiple: int) -> None:
        self.is_ragged = isinstance(data, (list, tuple)) and bool(data) and _has_length(data[0])
        self.pad, self.multiple = pad, multiple
        self.data = data if self.is_ragged else _indexable(data)

    def __len__(self) -> int:
        return len(self.data)

    def batch(self, indices: Any) -> np.ndarray[Any, Any]:
        import numpy as np

        if not self.is_ragged:
            return np.asarray(self.data[indices])
        rows = [_array(self.data[index]) for index in indices]
        longest = -(-max(map(len, rows)) // self.multiple) * self.multiple
        shape = (len(rows), longest, *rows[0].shape[1:])
        out = np.full(shape, self.pad, _common([row.dtype for row in rows if row.size]))
        for place, row in zip(out, rows, strict=True):
            place[: len(row)] = row
        return out


def _common(dtypes: list[np.dtype[Any]]) -> np.dtype[Any]:
    """A dtype for all rows that hold something; NumPy's for int32 and float32 is float64."""
    import numpy as np

    wide = np.result_type(*dtypes) if dtypes else np.dtype(np.float32)
    return wide if wide in dtypes or wide != np.float64 else np.dtype(np.float32)


def _has_length(item: Any) -> bool:
    return isinstance(item, (list, tuple)) or bool(getattr(item, "shape", ()))


def _indexable(data: Any) -> Any:
    if isinstance(data, Tensor):
        return data.numpy()
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _array(data)
    if isinstance(data, (str, bytes, Mapping)) or not _takes_indices(data):
        raise ShapeError(
            f"a loader cannot draw samples from a {type(data).__name__}",
            hint="it needs a length, and takes an array of indices: arrays, tensors, lists",
        )
    return data


def _takes_indices(data: Any) -> bool:
    return hasattr(data, "__len__") and hasattr(data, "__getitem__")


def _array(data: Any) -> np.ndarray[Any, Any]:
    """Python's numbers with the dtypes that tensors of them have, others with their own."""
    import numpy as np

    array = np.asarray(data)
    leaf = data
    while isinstance(leaf, (list, tuple)) and leaf:
        leaf = leaf[0]
    if type(leaf) is float or (type(leaf) is int and array.dtype.kind == "f"):
        return array.astype(np.float32)
    if (
        type(leaf) is int
        and array.dtype == np.int64
        and -LARGE <= array.min() <= array.max() < LARGE
    ):
        return array.astype(np.int32)
    return array


def _ahead(items: Iterator[Any], count: int) -> Generator[Any, None, None]:
    """The same items, up to `count` of them made by a thread before they are asked for."""
    queue: Queue[Any] = Queue(count)
    is_over = Event()
    worker = Thread(target=_work, args=(items, queue, is_over), daemon=True, name="loader")
    worker.start()
    try:
        while (item := queue.get()) is not END:
            if isinstance(item, _Failed):
                raise item.error
            yield item
    finally:
        is_over.set()
        worker.join()


class _Failed:
    """What went wrong in the thread, to be raised where the batch is asked for."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


def _work(items: Iterator[Any], queue: Queue[Any], is_over: Event) -> None:
    try:
        for item in items:
            if not _put(item, queue, is_over):
                return
        _put(END, queue, is_over)
    except BaseException as error:  # noqa: BLE001  it is raised in the other thread
        _put(_Failed(error), queue, is_over)


def _put(item: Any, queue: Queue[Any], is_over: Event) -> bool:
    while not is_over.is_set():
        try:
            queue.put(item, timeout=PAUSE)
        except Full:
            continue
        return True
    return False
