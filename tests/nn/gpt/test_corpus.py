from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from glassgrad.base.errors import FormatError
from glassgrad.nn.gpt.corpus import TEST_TOKENS, TRAIN_TOKENS, prepare, read_texts, standard_library
from glassgrad.nn.tokenizer import Tokenizer


def test_the_standard_library_is_text_that_every_machine_has() -> None:
    text = standard_library(max_characters=200_000)
    assert len(text) == 200_000
    assert text.count("def ") > 100


def test_files_and_folders_are_read(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name, text in (("a.txt", "one"), ("in/b.txt", "two"), ("in/c.bin", "three")):
        (tmp_path / name).write_text(text)
    assert read_texts([tmp_path / "a.txt", tmp_path / "in"], "*.txt") == "one\ntwo"


def test_tokens_of_both_parts_are_the_text(tmp_path: Path) -> None:
    text = "the cat sat on the mat.\n" * 100
    tokenizer = prepare(tmp_path / "run", text, 300)
    learned, tested = (np.load(tmp_path / "run" / name) for name in (TRAIN_TOKENS, TEST_TOKENS))
    assert tokenizer.decode(learned.tolist()) + tokenizer.decode(tested.tolist()) == text
    assert len(tokenizer.decode(tested.tolist())) == len(text) // 20
    assert Tokenizer.load(tmp_path / "run").merges == tokenizer.merges


def test_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="the text is empty"):
        prepare(tmp_path, " \n", 300)
