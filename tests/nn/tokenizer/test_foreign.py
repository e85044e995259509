from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from glassgrad.base.errors import FormatError
from glassgrad.nn.tokenizer import Tokenizer
from glassgrad.nn.tokenizer.foreign import ForeignTokenizer

HAS_TOKENIZERS = importlib.util.find_spec("tokenizers") is not None


@pytest.mark.skipif(HAS_TOKENIZERS, reason="the package tokenizers is installed")
def test_without_the_package_the_error_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"pip install 'glassgrad\[tokenizers\]'"):
        ForeignTokenizer(tmp_path / "tokenizer.json")


@pytest.mark.skipif(not HAS_TOKENIZERS, reason="the package tokenizers is not installed")
def test_the_package_agrees_on_a_file_that_we_wrote(tmp_path: Path) -> None:
    text = "the cat's hat isn't naïve ☃  22\n\n   x"
    ours = Tokenizer.train([text * 3], 300)
    ours.save(tmp_path / "tokenizer.json")
    theirs = ForeignTokenizer(tmp_path / "tokenizer.json")
    assert theirs.encode(text) == ours.encode(text)
    assert theirs.decode(ours.encode(text)) == text
    assert theirs.vocab_size == ours.vocab_size


@pytest.mark.skipif(not HAS_TOKENIZERS, reason="the package tokenizers is not installed")
def test_a_file_that_is_no_tokenizer_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(FormatError, match="is not a tokenizer"):
        ForeignTokenizer(tmp_path / "tokenizer.json")
