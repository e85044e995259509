"""texts -> a folder to train in: a tokenizer, and mapped files of tokens to learn from and to test.

Without texts it is the source text of Python's standard library, which is on every machine.
"""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from pathlib import Path

from glassgrad.base.errors import FormatError
from glassgrad.nn.datasets import text
from glassgrad.nn.tokenizer import Tokenizer
from glassgrad.nn.tokens import write_tokens

TOKENIZER, LEARNED, TESTED = "tokenizer.json", "learn.npy", "test.npy"
TEST_SHARE = 0.05  # of the text
MOST_FOR_TOKENIZER = 2_000_000  # characters; more of them change few merges
# Folders of tests, of other people's packages, and of tables.
LEFT_OUT = {"test", "tests", "idlelib", "site-packages", "dist-packages", "encodings", "pydoc_data"}


def standard_library(most: int = 4_000_000) -> str:
    """The source text of Python's standard library, up to so many characters."""
    root = Path(sysconfig.get_paths()["stdlib"])
    parts: list[str] = []
    size = 0
    for file in _sources(root):
        parts.append(file.read_text(encoding="utf-8", errors="replace"))
        size += len(parts[-1])
        if size >= most:
            break
    if not parts:
        raise FormatError(
            f"{root} holds no source text of the standard library",
            hint="pass a text file or a folder",
        )
    return "\n".join(parts)[:most]


def _sources(root: Path) -> Iterator[Path]:
    """Every .py file; those that lie higher come first, and folders that are left out unseen."""
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(set(folders) - LEFT_OUT)
        yield from (Path(folder, file) for file in sorted(files) if file.endswith(".py"))


def gathered(paths: Sequence[str | PathLike[str]], pattern: str = "*") -> str:
    """The text of files and folders, or without any of the standard library."""
    return "\n".join(text(path, pattern) for path in paths) if paths else standard_library()


def prepare(
    folder: Path, written: str, vocab_size: int, progress: Callable[[], object] = lambda: None
) -> Tokenizer:
    """Train a tokenizer on a text, and write its tokens; the last part is kept for testing."""
    if not written.strip():
        raise FormatError("there is no text to learn from")
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer.train([written[:MOST_FOR_TOKENIZER]], vocab_size, progress=progress)
    tokenizer.save(folder / TOKENIZER)
    border = len(written) - int(len(written) * TEST_SHARE)
    for name, part in ((LEARNED, written[:border]), (TESTED, written[border:])):
        write_tokens(folder / name, [tokenizer.encode(part)], tokenizer.vocab_size)
    return tokenizer
