"""ForeignTokenizer: any tokenizer.json, through the package `tokenizers`."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from typing import Any

from glassgrad.base.errors import FormatError


class ForeignTokenizer:
    """The same two methods, for tokenizers of other kinds than byte pairs."""

    def __init__(self, path: str | PathLike[str]) -> None:
        try:
            from tokenizers import Tokenizer as Reader
        except ImportError:
            raise FormatError(
                "this tokenizer needs the package tokenizers",
                hint="pip install 'glassgrad[tokenizers]'",
            ) from None
        try:
            self.inner: Any = Reader.from_file(fspath(path))
        except Exception as error:  # noqa: BLE001  the package raises nothing narrower
            raise FormatError(f"{fspath(path)} is no tokenizer: {error}") from None
        self.inner.no_truncation()  # which files may ask for, for batches
        self.inner.no_padding()

    @property
    def vocab_size(self) -> int:
        return int(self.inner.get_vocab_size(with_added_tokens=True))

    def encode(self, text: str, add_special: bool = True) -> list[int]:
        """The tokens of a text, with those that the file adds to every text."""
        return list(self.inner.encode(text, add_special_tokens=add_special).ids)

    def decode(self, ids: Sequence[int]) -> str:
        return str(self.inner.decode(list(ids)))
