"""ForeignTokenizer: any tokenizer.json, through the package `tokenizers`."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from typing import Any

from glassgrad.base.errors import FormatError


class ForeignTokenizer:
    """A tokenizer of any kind, with the interface of `Tokenizer`."""

    def __init__(self, path: str | PathLike[str]) -> None:
        try:
            from tokenizers import Tokenizer as PackageTokenizer
        except ImportError:
            raise FormatError(
                "this tokenizer needs the package tokenizers",
                hint="pip install 'glassgrad[tokenizers]'",
            ) from None
        try:
            self.inner: Any = PackageTokenizer.from_file(fspath(path))
        except Exception as error:  # noqa: BLE001  the package raises nothing narrower
            raise FormatError(f"{fspath(path)} is not a tokenizer: {error}") from None
        self.inner.no_truncation()  # files may specify truncation and padding, for batches
        self.inner.no_padding()

    @property
    def vocab_size(self) -> int:
        return int(self.inner.get_vocab_size(with_added_tokens=True))

    def encode(self, text: str, add_special: bool = True) -> list[int]:
        """The tokens of a text, with the special tokens that the file adds to every text."""
        return list(self.inner.encode(text, add_special_tokens=add_special).ids)

    def decode(self, ids: Sequence[int]) -> str:
        return str(self.inner.decode(list(ids)))
