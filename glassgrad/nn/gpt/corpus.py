"""Texts -> a training folder: a tokenizer, and mapped token files for training and testing.

The default text is the source of Python's standard library, which every machine has.
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

TOKENIZER, TRAIN_TOKENS, TEST_TOKENS = "tokenizer.json", "learn.npy", "test.npy"
TEST_FRACTION = 0.05  # of the text
MAX_TOKENIZER_CHARACTERS = 2_000_000  # more text changes few merges
# Folders of tests, of third-party packages, and of tables.
SKIPPED_FOLDERS = {
    "test",
    "tests",
    "idlelib",
    "site-packages",
    "dist-packages",
    "encodings",
    "pydoc_data",
}


def standard_library(max_characters: int = 4_000_000) -> str:
    """The source of Python's standard library, up to `max_characters`."""
    root = Path(sysconfig.get_paths()["stdlib"])
    parts: list[str] = []
    size = 0
    for file in _sources(root):
        parts.append(file.read_text(encoding="utf-8", errors="replace"))
        size += len(parts[-1])
        if size >= max_characters:
            break
    if not parts:
        raise FormatError(
            f"the source of the standard library is not in {root}",
            hint="pass a text file or a folder",
        )
    return "\n".join(parts)[:max_characters]


def _sources(root: Path) -> Iterator[Path]:
    """Every .py file outside of skipped folders, those of upper folders first."""
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(set(folders) - SKIPPED_FOLDERS)
        yield from (Path(folder, file) for file in sorted(files) if file.endswith(".py"))


def read_texts(paths: Sequence[str | PathLike[str]], pattern: str = "*") -> str:
    """The text of files and folders; without paths, the standard library."""
    return "\n".join(text(path, pattern) for path in paths) if paths else standard_library()


def prepare(
    folder: Path, text_to_learn: str, vocab_size: int, progress: Callable[[], object] = lambda: None
) -> Tokenizer:
    """Train a tokenizer and write the tokens of the text; the last part is the test set."""
    if not text_to_learn.strip():
        raise FormatError("the text is empty")
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer.train(
        [text_to_learn[:MAX_TOKENIZER_CHARACTERS]], vocab_size, progress=progress
    )
    tokenizer.save(folder / TOKENIZER)
    split = len(text_to_learn) - int(len(text_to_learn) * TEST_FRACTION)
    for name, part in ((TRAIN_TOKENS, text_to_learn[:split]), (TEST_TOKENS, text_to_learn[split:])):
        write_tokens(folder / name, [tokenizer.encode(part)], tokenizer.vocab_size)
    return tokenizer
