"""Every setting of a tokenizer.json is honoured, known not to matter, or refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from glassgrad.base.errors import FormatError
from glassgrad.nn.tokenizer import Tokenizer
from glassgrad.nn.tokenizer.pre_tokenizer import GPT2_PATTERN, LLAMA3_PATTERN, QWEN2_PATTERN
from glassgrad.nn.tokenizer.rules import SETTINGS, Rules

Json = dict[str, Any]
TRAINED = Tokenizer.train(["hello 1234 there, here he is: the hero é"] * 2, 290)
NOWHERE = {"ids": [999]}  # no token has this number
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
END = TRAINED.specials["<|endoftext|>"]


def split(pattern: str) -> Json:
    return {
        "type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False,
    }  # fmt: skip


def sequence(*parts: Json) -> Json:
    return {"type": "Sequence", "pretokenizers": list(parts)}


def template(*single: str) -> Json:
    """A frame; $ stands for the text."""
    items = [
        {"Sequence": {"id": "A", "type_id": 0}} if one == "$"
        else {"SpecialToken": {"id": one, "type_id": 0}}
        for one in single
    ]  # fmt: skip
    ids = {"<|endoftext|>": [END], "two": [1, 2]}
    tokens = {name: {"id": name, "ids": numbers, "tokens": []} for name, numbers in ids.items()}
    return {"type": "TemplateProcessing", "single": items, "pair": [], "special_tokens": tokens}


def read(tmp_path: Path, change: Callable[[Json], object]) -> Tokenizer:
    TRAINED.save(tmp_path / "t.json")
    whole = json.loads((tmp_path / "t.json").read_text())
    change(whole)
    (tmp_path / "t.json").write_text(json.dumps(whole))
    found = Tokenizer.load(tmp_path / "t.json")
    if "two" not in str(whole["post_processor"]):  # a name that no token has
        found.save(tmp_path / "again.json")
        assert Tokenizer.load(tmp_path / "again.json").rules == found.rules
    return found


@pytest.mark.parametrize(
    ("single", "first", "last"),
    [
        (("<|endoftext|>", "$"), [END], []),
        (("<|endoftext|>", "$", "<|endoftext|>"), [END], [END]),
        (("$", "two"), [], [1, 2]),
        (("$",), [], []),
    ],
)
@pytest.mark.parametrize("is_inside", [False, True])
def test_a_frame_is_put_around_every_text(
    single: tuple[str, ...], first: list[int], last: list[int], is_inside: bool, tmp_path: Path
) -> None:
    frame = template(*single)
    if is_inside:
        frame = {"type": "Sequence", "processors": [{**BYTES}, frame]}
    found = read(tmp_path, lambda whole: whole.update(post_processor=frame))
    assert found.encode("hello") == [*first, *TRAINED.encode("hello"), *last]
    assert found.encode("hello", add_special=False) == TRAINED.encode("hello")


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
@pytest.mark.parametrize("is_inside", [False, True])
def test_text_is_normalised(form: str, is_inside: bool, tmp_path: Path) -> None:
    rule: Json = {"type": form}
    rule = {"type": "Sequence", "normalizers": [rule]} if is_inside else rule
    found = read(tmp_path, lambda whole: whole.update(normalizer=rule))
    wanted = {"NFC": "é\ufb01", "NFD": "e\u0301\ufb01", "NFKC": "éfi", "NFKD": "e\u0301fi"}
    assert found.decode(found.encode("e\u0301\ufb01")) == wanted[form]
    assert TRAINED.decode(TRAINED.encode("e\u0301\ufb01")) == "e\u0301\ufb01"


@pytest.mark.parametrize(
    ("rule", "patterns"),
    [
        ({**BYTES, "use_regex": True}, (GPT2_PATTERN,)),
        (sequence({**BYTES, "use_regex": True}), (GPT2_PATTERN,)),
        (sequence(split(LLAMA3_PATTERN), BYTES), (LLAMA3_PATTERN,)),
        (sequence(split("x"), {**BYTES, "use_regex": True}), ("x", GPT2_PATTERN)),
        (sequence({"type": "Digits", "individual_digits": True}, BYTES), (r"\p{N}",)),
        (sequence({"type": "Digits", "individual_digits": False}, BYTES), (r"\p{N}+",)),
        (BYTES, ()),
    ],
)
def test_words_are_split_as_the_file_says(
    rule: Json, patterns: tuple[str, ...], tmp_path: Path
) -> None:
    found = read(tmp_path, lambda whole: whole.update(pre_tokenizer=rule))
    assert found.rules == Rules(patterns)
    assert found.decode(found.encode("hello  1234 xyx \n")) == "hello  1234 xyx \n"


def test_a_blank_is_put_before_a_text(tmp_path: Path) -> None:
    rule = {**BYTES, "add_prefix_space": True, "use_regex": True}
    found = read(tmp_path, lambda whole: whole.update(pre_tokenizer=rule))
    assert found.decode(found.encode("the hero")) == " the hero"
    assert found.decode(found.encode(" the hero")) == " the hero"
    assert found.encode("") == []


def test_a_word_that_is_a_token_is_not_merged(tmp_path: Path) -> None:
    def change(whole: Json) -> None:
        whole["model"]["vocab"]["zq"] = 400  # no merge makes it
        whole["model"]["ignore_merges"] = True

    found = read(tmp_path, change)
    assert found.encode("zq") == [400]
    assert found.encode("zqz") == TRAINED.encode("zqz")


def test_added_tokens_that_are_not_special_are_always_found(tmp_path: Path) -> None:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": True}
    token = {"id": 500, "content": "<tool>", **flags, "special": False}
    found = read(tmp_path, lambda whole: whole["added_tokens"].append(token))
    he = TRAINED.encode("he")
    assert found.encode("he<tool>he") == [*he, 500, *he]
    assert END not in found.encode("<|endoftext|>")
    assert found.encode("<tool><|endoftext|>", allow_special=True) == [500, END]
    assert found.decode([500]) == "<tool>"


def set_in(*path: Any) -> Callable[[Json], None]:
    """A change: the value at the end is put where the path leads."""

    def change(whole: Json) -> None:
        *steps, last, value = path
        place: Any = whole
        for step in steps:
            place = place[step]
        place[last] = value

    return change


REFUSED = {
    "a new section": (set_in("alignment", 1), "unknown section 'alignment'"),
    "dropout": (set_in("model", "dropout", 0.1), "'dropout': 0.1, which is not supported"),
    "a prefix": (set_in("model", "continuing_subword_prefix", "##"), "continuing_subword_prefix"),
    "a suffix": (set_in("model", "end_of_word_suffix", "</w>"), "end_of_word_suffix"),
    "bytes as tokens": (set_in("model", "byte_fallback", True), "byte_fallback"),
    "a new setting": (set_in("model", "speed", 1), "a model of the tokenizer says 'speed': 1"),
    "stripped tokens": (set_in("added_tokens", 0, "lstrip", True), "an added token .* 'lstrip'"),
    "lower case": (set_in("normalizer", {"type": "Lowercase"}), "normalised in an unknown way"),
    "a replacement": (
        set_in("normalizer", {"type": "Sequence", "normalizers": [{"type": "Replace"}]}),
        "normalised in an unknown way",
    ),
    "another frame": (set_in("post_processor", {"type": "BertProcessing"}), "framed in an unknown"),
    "a frame of nothing": (set_in("post_processor", template("two")), "framed in an unknown way"),
    "a frame of two": (set_in("post_processor", template("$", "$")), "framed in an unknown way"),
    "an unknown token": (set_in("post_processor", template("$", "x")), "framed in an unknown way"),
    "a token that is not there": (
        set_in("post_processor", template("$", "two") | {"special_tokens": {"two": NOWHERE}}),
        "framed by tokens that are not there",
    ),
    "another decoder": (set_in("decoder", {"type": "Metaspace"}), "decoded in an unknown way"),
    "removed words": (
        set_in("pre_tokenizer", "pretokenizers", 0, "behavior", "Removed"),
        "'behavior': 'Removed', which is not supported",
    ),
    "what does not match": (
        set_in("pre_tokenizer", "pretokenizers", 0, "invert", True), "'invert': True",
    ),
    "a plain pattern": (
        set_in("pre_tokenizer", "pretokenizers", 0, "pattern", {"String": " "}),
        "split in an unknown way",
    ),
    "no bytes": (set_in("pre_tokenizer", sequence(split("x"))), "split in an unknown way"),
    "bytes first": (set_in("pre_tokenizer", sequence(BYTES, split("x"))), "split in an unknown"),
    "blanks before words": (
        set_in("pre_tokenizer", sequence(split("x"), {**BYTES, "add_prefix_space": True})),
        "with blanks before each",
    ),
    "scripts": (
        set_in("pre_tokenizer", "pretokenizers", 0, "pattern", {"Regex": r"\p{Han}"}),
        "cannot split words by",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_supported_is_named(name: str, tmp_path: Path) -> None:
    change, message = REFUSED[name]
    with pytest.raises(FormatError, match=message):
        read(tmp_path, change).encode("hello")


def test_settings_for_batches_do_not_matter(tmp_path: Path) -> None:
    change = {"truncation": {"max_length": 1}, "padding": {"pad_id": 0}}
    found = read(tmp_path, lambda whole: whole.update(change))
    assert found.encode("hello there") == TRAINED.encode("hello there")


def test_every_setting_that_the_package_writes_is_known() -> None:
    """What tokenizers 0.22 writes for BPE."""
    model = {
        "type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
        "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges",
    }  # fmt: skip
    added = {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"}
    assert model == SETTINGS["a model"].keys()
    assert added == SETTINGS["an added token"].keys()


def test_a_folder_without_tokenizer_json_says_whose_words_it_has(tmp_path: Path) -> None:
    TRAINED.save(tmp_path / "t.json")
    model = json.loads((tmp_path / "t.json").read_text())["model"]
    (tmp_path / "vocab.json").write_text(json.dumps(model["vocab"]))
    (tmp_path / "merges.txt").write_text("\n".join(" ".join(pair) for pair in model["merges"]))
    config = tmp_path / "tokenizer_config.json"
    assert Tokenizer.load(tmp_path).rules == Rules()
    config.write_text('{"tokenizer_class": "Qwen2TokenizerFast"}')
    assert Tokenizer.load(tmp_path).rules == Rules((QWEN2_PATTERN,), normal_form="NFC")
    for found in ({"tokenizer_class": "RobertaTokenizer"}, {"add_bos_token": True}):
        config.write_text(json.dumps(found))
        with pytest.raises(FormatError, match=r"nothing says how a '.*Tokenizer' splits words"):
            Tokenizer.load(tmp_path)
