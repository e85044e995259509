"""Every setting of a tokenizer.json is used, ignored or an error that names it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from glassgrad.base.errors import FormatError
from glassgrad.nn.tokenizer import Tokenizer
from glassgrad.nn.tokenizer.pre_tokenizer import GPT2_PATTERN, LLAMA3_PATTERN, QWEN2_PATTERN
from glassgrad.nn.tokenizer.rules import SUPPORTED_SETTINGS, Rules

Json = dict[str, Any]
TRAINED = Tokenizer.train(["hello 1234 there, here he is: the hero é"] * 2, 290)
UNKNOWN = {"ids": [999]}  # not in the vocabulary
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
END = TRAINED.specials["<|endoftext|>"]


def split(pattern: str) -> Json:
    return {
        "type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False,
    }  # fmt: skip


def sequence(*parts: Json) -> Json:
    return {"type": "Sequence", "pretokenizers": list(parts)}


def template(*single: str) -> Json:
    """A post-processor; $ stands for the text."""
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
    sections = json.loads((tmp_path / "t.json").read_text())
    change(sections)
    (tmp_path / "t.json").write_text(json.dumps(sections))
    found = Tokenizer.load(tmp_path / "t.json")
    if "two" not in str(sections["post_processor"]):  # the name is not in the vocabulary
        found.save(tmp_path / "saved.json")
        assert Tokenizer.load(tmp_path / "saved.json").rules == found.rules
    return found


@pytest.mark.parametrize(
    ("single", "prefix", "suffix"),
    [
        (("<|endoftext|>", "$"), [END], []),
        (("<|endoftext|>", "$", "<|endoftext|>"), [END], [END]),
        (("$", "two"), [], [1, 2]),
        (("$",), [], []),
    ],
)
@pytest.mark.parametrize("is_nested", [False, True])
def test_special_tokens_are_added_to_every_text(
    single: tuple[str, ...], prefix: list[int], suffix: list[int], is_nested: bool, tmp_path: Path
) -> None:
    processor = template(*single)
    if is_nested:
        processor = {"type": "Sequence", "processors": [{**BYTES}, processor]}
    found = read(tmp_path, lambda sections: sections.update(post_processor=processor))
    assert found.encode("hello") == [*prefix, *TRAINED.encode("hello"), *suffix]
    assert found.encode("hello", add_special=False) == TRAINED.encode("hello")


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
@pytest.mark.parametrize("is_nested", [False, True])
def test_text_is_normalised(form: str, is_nested: bool, tmp_path: Path) -> None:
    rule: Json = {"type": form}
    rule = {"type": "Sequence", "normalizers": [rule]} if is_nested else rule
    found = read(tmp_path, lambda sections: sections.update(normalizer=rule))
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
def test_words_are_split_by_the_patterns_of_the_file(
    rule: Json, patterns: tuple[str, ...], tmp_path: Path
) -> None:
    found = read(tmp_path, lambda sections: sections.update(pre_tokenizer=rule))
    assert found.rules == Rules(patterns)
    assert found.decode(found.encode("hello  1234 xyx \n")) == "hello  1234 xyx \n"


def test_a_prefix_space_is_added(tmp_path: Path) -> None:
    rule = {**BYTES, "add_prefix_space": True, "use_regex": True}
    found = read(tmp_path, lambda sections: sections.update(pre_tokenizer=rule))
    assert found.decode(found.encode("the hero")) == " the hero"
    assert found.decode(found.encode(" the hero")) == " the hero"
    assert found.encode("") == []


def test_ignore_merges_encodes_a_word_that_is_a_token_as_one(tmp_path: Path) -> None:
    def change(sections: Json) -> None:
        sections["model"]["vocab"]["zq"] = 400  # no merge makes it
        sections["model"]["ignore_merges"] = True

    found = read(tmp_path, change)
    assert found.encode("zq") == [400]
    assert found.encode("zqz") == TRAINED.encode("zqz")


def test_added_tokens_that_are_not_special_are_recognised_in_any_text(tmp_path: Path) -> None:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": True}
    token = {"id": 500, "content": "<tool>", **flags, "special": False}
    found = read(tmp_path, lambda sections: sections["added_tokens"].append(token))
    he = TRAINED.encode("he")
    assert found.encode("he<tool>he") == [*he, 500, *he]
    assert END not in found.encode("<|endoftext|>")
    assert found.encode("<tool><|endoftext|>", allow_special=True) == [500, END]
    assert found.decode([500]) == "<tool>"


def set_in(*path: Any) -> Callable[[Json], None]:
    """A change that sets the item at a path of keys to the last argument."""

    def change(sections: Json) -> None:
        *parents, last, value = path
        section: Any = sections
        for key in parents:
            section = section[key]
        section[last] = value

    return change


POST_PROCESSOR, PRE_TOKENIZER = "unsupported post_processor", "unsupported pre_tokenizer"
REFUSED = {
    "a new section": (set_in("alignment", 1), "unknown section 'alignment'"),
    "dropout": (set_in("model", "dropout", 0.1), "'dropout': 0.1, which is not supported"),
    "a prefix": (set_in("model", "continuing_subword_prefix", "##"), "continuing_subword_prefix"),
    "a suffix": (set_in("model", "end_of_word_suffix", "</w>"), "end_of_word_suffix"),
    "byte fallback": (set_in("model", "byte_fallback", True), "byte_fallback"),
    "a new setting": (set_in("model", "speed", 1), "model of tokenizer.json has 'speed': 1"),
    "stripped tokens": (set_in("added_tokens", 0, "lstrip", True), "added token .* 'lstrip'"),
    "lower case": (set_in("normalizer", {"type": "Lowercase"}), "unsupported normalizer"),
    "a replacement": (
        set_in("normalizer", {"type": "Sequence", "normalizers": [{"type": "Replace"}]}),
        "unsupported normalizer",
    ),
    "BertProcessing": (set_in("post_processor", {"type": "BertProcessing"}), POST_PROCESSOR),
    "a template without the text": (set_in("post_processor", template("two")), POST_PROCESSOR),
    "a template of two texts": (set_in("post_processor", template("$", "$")), POST_PROCESSOR),
    "an unknown special token": (set_in("post_processor", template("$", "x")), POST_PROCESSOR),
    "a special token outside of the vocabulary": (
        set_in("post_processor", template("$", "two") | {"special_tokens": {"two": UNKNOWN}}),
        "adds tokens that are not in the vocabulary",
    ),
    "another decoder": (set_in("decoder", {"type": "Metaspace"}), "unsupported decoder"),
    "removed matches": (
        set_in("pre_tokenizer", "pretokenizers", 0, "behavior", "Removed"),
        "'behavior': 'Removed', which is not supported",
    ),
    "inverted matches": (
        set_in("pre_tokenizer", "pretokenizers", 0, "invert", True), "'invert': True",
    ),
    "a plain pattern": (
        set_in("pre_tokenizer", "pretokenizers", 0, "pattern", {"String": " "}),
        PRE_TOKENIZER,
    ),
    "no ByteLevel": (set_in("pre_tokenizer", sequence(split("x"))), PRE_TOKENIZER),
    "ByteLevel first": (set_in("pre_tokenizer", sequence(BYTES, split("x"))), PRE_TOKENIZER),
    "spaces before words": (
        set_in("pre_tokenizer", sequence(split("x"), {**BYTES, "add_prefix_space": True})),
        "adds a space before every word",
    ),
    "a script in a pattern": (
        set_in("pre_tokenizer", "pretokenizers", 0, "pattern", {"Regex": r"\p{Han}"}),
        "cannot compile the pre-tokenizer pattern",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_unsupported_settings_are_named(name: str, tmp_path: Path) -> None:
    change, message = REFUSED[name]
    with pytest.raises(FormatError, match=message):
        read(tmp_path, change).encode("hello")


def test_settings_for_batches_are_ignored(tmp_path: Path) -> None:
    change = {"truncation": {"max_length": 1}, "padding": {"pad_id": 0}}
    found = read(tmp_path, lambda sections: sections.update(change))
    assert found.encode("hello there") == TRAINED.encode("hello there")


def test_every_setting_of_the_package_is_listed() -> None:
    """What tokenizers 0.22 writes for BPE."""
    model = {
        "type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
        "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges",
    }  # fmt: skip
    added = {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"}
    assert model == SUPPORTED_SETTINGS["model"].keys()
    assert added == SUPPORTED_SETTINGS["added token"].keys()


def test_rules_follow_from_the_class_in_tokenizer_config(tmp_path: Path) -> None:
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
        with pytest.raises(
            FormatError, match=r"the pre-tokenizer of '.*Tokenizer' in tokenizer_config.json is not"
        ):
            Tokenizer.load(tmp_path)
