from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassgrad.base.errors import FormatError
from glassgrad.nn.tokenizer import Tokenizer
from glassgrad.nn.tokenizer.vocabulary import byte_characters

TRAINED = Tokenizer.train(["hello there, here he is: the hero"] * 2, 280)


def test_bytes_are_written_as_256_printable_characters() -> None:
    assert len(set(byte_characters())) == 256
    assert byte_characters()[ord("A")] == "A"
    assert byte_characters()[ord(" ")] == "Ġ"
    assert all(character.isprintable() for character in byte_characters())


def test_save_and_load(tmp_path: Path) -> None:
    TRAINED.save(tmp_path / "tokenizer.json")
    for path in (tmp_path, tmp_path / "tokenizer.json"):
        found = Tokenizer.load(path)
        assert (found.tokens, found.merges) == (TRAINED.tokens, TRAINED.merges)
        assert (found.specials, found.rules) == (TRAINED.specials, TRAINED.rules)


def gpt2_files(folder: Path) -> None:
    """Files of GPT-2: bytes in another order, "Ġ" for a space, a special token at the end."""
    names = sorted(byte_characters())
    merges = [("h", "e"), ("Ġ", "t"), ("Ġt", "he")]
    vocab = {name: number for number, name in enumerate(names)}
    for left, right in merges:
        vocab[left + right] = len(vocab)
    vocab["<|endoftext|>"] = len(vocab)
    (folder / "vocab.json").write_text(json.dumps(vocab))
    lines = ["#version: 0.2", *(" ".join(merge) for merge in merges), ""]
    (folder / "merges.txt").write_text("\n".join(lines), "utf-8")


def test_the_files_of_gpt2_are_read(tmp_path: Path) -> None:
    gpt2_files(tmp_path)
    found = Tokenizer.load(tmp_path)
    assert found.vocab_size == 260
    assert found.encode(" the") == [258]
    assert found.encode("<|endoftext|>", allow_special=True) == [259]
    assert found.decode([258, 259]) == " the<|endoftext|>"


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"has neither a tokenizer\.json"):
        Tokenizer.load(tmp_path)


def saved(tmp_path: Path) -> dict[str, Any]:
    TRAINED.save(tmp_path / "t.json")
    return json.loads((tmp_path / "t.json").read_text())


CHANGES = {
    "no byte pairs": (lambda t: t["model"].update(type="Unigram"), "not a byte-pair tokenizer"),
    "no vocabulary": (lambda t: t["model"].update(vocab=[]), "vocabulary must be an object"),
    "a huge id": (lambda t: t["model"]["vocab"].update(zz=9_000_000), "ids up to"),
    "an id that is a string": (
        lambda t: t["model"]["vocab"].update(zz="1"),
        "token ids must be ints",
    ),
    "an id that is a list": (
        lambda t: t["model"]["vocab"].update(zz=[1]),
        "token ids must be ints",
    ),
    "a bad merge": (lambda t: t["model"]["merges"].append(["a"]), "is not a pair of tokens"),
    "an unknown merge": (lambda t: t["model"]["merges"].append("q z"), "is not in the vocabulary"),
    "a missing byte": (lambda t: t["model"]["vocab"].pop("Q"), "1 of the 256 bytes are not"),
    "another pre-tokenizer": (
        lambda t: t.update(pre_tokenizer={"type": "Whitespace"}),
        "unsupported pre_tokenizer",
    ),
    "no pre-tokenizer": (lambda t: t.update(pre_tokenizer=None), "unsupported pre_tokenizer"),
    "bad added tokens": (lambda t: t.update(added_tokens=[{}]), "without content or id"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_invalid_files_are_refused(name: str, tmp_path: Path) -> None:
    change, message = CHANGES[name]
    table = saved(tmp_path)
    change(table)
    (tmp_path / "t.json").write_text(json.dumps(table))
    with pytest.raises(FormatError, match=message):
        Tokenizer.load(tmp_path / "t.json")


@given(st.data())
@settings(max_examples=200)
def test_damaged_files_raise_nothing_but_format_errors(
    tmp_path_factory: Any, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("t", numbered=True)
    TRAINED.save(folder / "t.json")
    raw = bytearray((folder / "t.json").read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    (folder / "t.json").write_bytes(raw[: data.draw(st.integers(0, len(raw)))])
    try:
        assert Tokenizer.load(folder / "t.json").decode_bytes([0])
    except FormatError:
        pass
