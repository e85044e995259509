"""Token files, and windows of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from glassgrad.base.errors import FormatError, ShapeError
from glassgrad.nn.loader import Loader
from glassgrad.nn.tokens import TokenWindows, write_tokens


@pytest.mark.parametrize(("vocabulary", "dtype"), [(65536, np.uint16), (65537, np.uint32)])
def test_tokens_are_a_file_that_numpy_reads(vocabulary: int, dtype: type, tmp_path: Path) -> None:
    path = tmp_path / "t.npy"
    assert write_tokens(path, [[1, 2], [], [65535, 0]], vocabulary) == 4
    found = np.load(path, mmap_mode="r")
    assert found.tolist() == [1, 2, 65535, 0]
    assert found.dtype == dtype


def test_windows_overlap_by_the_target_token(tmp_path: Path) -> None:
    write_tokens(tmp_path / "t.npy", [range(10)], 10)
    windows = TokenWindows(tmp_path / "t.npy", 4)
    assert len(windows) == 2
    assert windows[np.arange(2)].tolist() == [[0, 1, 2, 3, 4], [4, 5, 6, 7, 8]]
    close = TokenWindows(tmp_path / "t.npy", 4, stride=1)
    assert len(close) == 6
    assert close[np.array([5])].tolist() == [[5, 6, 7, 8, 9]]


def test_a_loader_takes_windows(tmp_path: Path) -> None:
    write_tokens(tmp_path / "t.npy", [range(101)], 101)
    batches = list(Loader(TokenWindows(tmp_path / "t.npy", 10), batch_size=4))
    assert [batch.shape for batch in batches] == [(4, 11), (4, 11), (2, 11)]
    assert all((batch[:, 1:] - batch[:, :-1]).numpy().min() == 1 for batch in batches)


def test_other_files_than_token_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.npy"
    with pytest.raises(FormatError, match="not in the vocabulary of size 5"):
        write_tokens(path, [[1, 5]], 5)
    with pytest.raises(TypeError, match="iterated twice"):
        write_tokens(path, iter([[1]]), 5)
    assert not list(tmp_path.iterdir())
    path.write_bytes(b"nonsense")
    with pytest.raises(FormatError, match="is not a token file"):
        TokenWindows(path, 4)
    np.save(path, np.ones(9))
    with pytest.raises(FormatError, match="not tokens"):
        TokenWindows(path, 4)
    write_tokens(path, [[1, 2]], 5)
    with pytest.raises(ShapeError, match="2 tokens, but a window needs 3"):
        TokenWindows(path, 2)
