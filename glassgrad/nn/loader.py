"""Loader: arrays -> batches of tensors, shuffled by seed, prepared ahead by a thread."""

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

END = object()  # the last item of the queue
MIN_INT64 = 1 << 31  # the smallest magnitude that int32 does not hold
PUT_TIMEOUT_S = 0.05  # how often a thread with a full queue checks that the loop goes on


class Loader:
    """Batches of one or several arrays, as tensors: `for x, y in Loader(images, labels)`.

    Data is anything with a length that takes an array of indices (NumPy arrays, mapped files,
    TokenWindows), a Tensor, or a list of sequences, which are padded to the longest of the batch.
    The seed and the epoch decide the order; `seed=None` keeps the order of the data. `by_length`
    batches sequences of similar length. A thread prepares `prefetch` batches ahead; it ends with
    the loop. Every loop is a new epoch, also if earlier loops were left early; only the first one
    after seek() starts at that position.

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
            raise ShapeError(f"all data must have the same length, not {sorted(counts)}")
        self.count = counts.pop()
        if batch_size < 1:
            raise ShapeError(f"batch_size must be at least 1, not {batch_size}")
        self.batch_size, self.seed, self.drop_last = batch_size, seed, drop_last
        self.prefetch = prefetch
        self.lengths = self._lengths() if by_length else None
        self._newest = self._next = _Position(0, 0)

    def _lengths(self) -> list[int]:
        ragged = next((column for column in self.columns if column.is_ragged), None)
        if ragged is None:
            raise ShapeError(
                "by_length needs a list of sequences",
                hint="rows of an array all have the same length",
            )
        return [len(item) for item in ragged.data]

    def __len__(self) -> int:
        """The number of batches per epoch."""
        rounded = self.count if self.drop_last else self.count + self.batch_size - 1
        return rounded // self.batch_size

    def __iter__(self) -> Generator[Any, None, None]:
        """One epoch, or the rest of the one that seek() chose."""
        position = self._newest = self._next
        self._next = _Position(position.epoch + 1, 0)
        return self._batches(position)

    def _batches(self, position: _Position) -> Generator[Any, None, None]:
        seed = None if self.seed is None else (self.seed, position.epoch)
        order = batch_indices(self.count, self.batch_size, seed, self.drop_last, self.lengths)
        arrays_of_batches = (self._arrays(indices) for indices in order[position.done :])
        source = (
            _prefetched(arrays_of_batches, self.prefetch) if self.prefetch else arrays_of_batches
        )
        with closing(source) as batches:
            for arrays in batches:
                position.done += 1
                tensors = tuple(Tensor(array, requires_grad=False) for array in arrays)
                yield tensors if len(tensors) > 1 else tensors[0]

    def _arrays(self, indices: Any) -> list[np.ndarray[Any, Any]]:
        return [column.batch(indices) for column in self.columns]

    # ------------------------------------------------------------------ for checkpoints

    def position(self) -> dict[str, int]:
        """The epoch of the newest loop, and the number of batches it has produced."""
        epoch, done = self._newest.epoch, self._newest.done
        is_over = done >= len(self)
        return {"epoch": epoch + 1, "place": 0} if is_over else {"epoch": epoch, "place": done}

    def seek(self, position: dict[str, int]) -> None:
        """Start the next loop at this position."""
        self._newest = self._next = _Position(position["epoch"], position["place"])


class _Position:
    """The position of a loop: its epoch and the number of batches done."""

    def __init__(self, epoch: int, done: int) -> None:
        self.epoch, self.done = epoch, done


class _Column:
    """One array of the data; makes batches of it."""

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
        out = np.full(shape, self.pad, _common_dtype([row.dtype for row in rows if row.size]))
        for padded, row in zip(out, rows, strict=True):
            padded[: len(row)] = row
        return out


def _common_dtype(dtypes: list[np.dtype[Any]]) -> np.dtype[Any]:
    """The dtype of a padded batch; int32 and float32 rows give float32, not float64 as in NumPy."""
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
            f"cannot load batches from a {type(data).__name__}",
            hint="data needs a length and indexing by an array of ints: arrays, tensors, lists",
        )
    return data


def _takes_indices(data: Any) -> bool:
    return hasattr(data, "__len__") and hasattr(data, "__getitem__")


def _array(data: Any) -> np.ndarray[Any, Any]:
    """An array; Python numbers get the dtypes that tensors of them have."""
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
        and -MIN_INT64 <= array.min() <= array.max() < MIN_INT64
    ):
        return array.astype(np.int32)
    return array


def _prefetched(items: Iterator[Any], count: int) -> Generator[Any, None, None]:
    """The same items; a thread prepares up to `count` of them ahead."""
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
    """An exception of the thread, to be raised in the consumer."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


def _work(items: Iterator[Any], queue: Queue[Any], is_over: Event) -> None:
    try:
        for item in items:
            if not _put(item, queue, is_over):
                return
        _put(END, queue, is_over)
    except BaseException as error:  # noqa: BLE001  the consumer raises it
        _put(_Failed(error), queue, is_over)


def _put(item: Any, queue: Queue[Any], is_over: Event) -> bool:
    while not is_over.is_set():
        try:
            queue.put(item, timeout=PUT_TIMEOUT_S)
        except Full:
            continue
        return True
    return False
