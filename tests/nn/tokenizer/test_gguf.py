"""Tokenizers in GGUF files: every fact is honoured, known not to matter, or refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from glassgrad.base.errors import FormatError
from glassgrad.nn.tokenizer.gguf import HONOURED, IGNORED, PRE, gguf_stop_tokens, gguf_tokenizer
from glassgrad.nn.tokenizer.vocabulary import letters

NAMES = [*letters(), "12", "34", "123", "th", "the", "Ġ=", "<|end|>", "<tool>", "zq"]
FACTS: dict[str, Any] = {
    "general.architecture": "llama",
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "gpt-2",
    "tokenizer.ggml.tokens": NAMES,
    "tokenizer.ggml.token_type": np.array([1] * 262 + [3, 4, 1], np.int32),
    "tokenizer.ggml.merges": ["1 2", "3 4", "12 3", "t h", "th e"],
    "tokenizer.ggml.bos_token_id": 262,
    "tokenizer.ggml.eos_token_id": 262,
}


def words(text: str, **changes: Any) -> list[str]:
    """The tokens of a text, with some facts changed."""
    tokenizer = gguf_tokenizer(FACTS | {f"tokenizer.ggml.{key}": v for key, v in changes.items()})
    return [tokenizer.decode([number]) for number in tokenizer.encode(text)]


@pytest.mark.parametrize(
    ("pre", "text", "wanted"),
    [
        ("gpt-2", "1234", ["12", "34"]),
        ("llama-bpe", "1234", ["<|end|>", "123", "4"]),
        ("llama3", "the zq", ["<|end|>", "the", " ", "z", "q"]),
        ("llama3", "zq", ["<|end|>", "zq"]),  # a whole word is not merged
        ("gpt-2", "zq", ["z", "q"]),
        ("qwen2", "1234", ["1", "2", "3", "4"]),
        ("smollm", "12the", ["1", "2", "the"]),
        ("tekken", "Thethe", ["<|end|>", "T", "h", "e", "the"]),
    ],
)
def test_words_are_split_as_the_file_says(pre: str, text: str, wanted: list[str]) -> None:
    assert words(text, pre=pre) == wanted


def test_qwen_normalises() -> None:
    assert words("e\u0301", pre="qwen2") == words("é", pre="qwen2")
    assert words("e\u0301", pre="gpt-2") != words("é", pre="gpt-2")


def test_texts_begin_and_end_as_the_file_says() -> None:
    assert words("the", add_bos_token=True) == ["<|end|>", "the"]
    assert words("the", add_eos_token=True) == ["the", "<|end|>"]
    assert words("the", pre="llama-bpe", add_bos_token=False) == ["the"]


def test_tokens_of_users_are_always_found() -> None:
    assert words("the<tool>the") == ["the", "<tool>", "the"]
    assert words("<|end|>") != ["<|end|>"]


def test_ends_of_texts_and_turns_are_ends() -> None:
    assert gguf_stop_tokens(FACTS) == (262,)
    ids = {"tokenizer.ggml.eot_token_id": 5, "tokenizer.ggml.eom_token_id": 262}
    assert gguf_stop_tokens(FACTS | ids) == (262, 5)
    assert gguf_stop_tokens({}) == ()


def test_old_files_of_gpt2_do_not_say_how_words_are_split() -> None:
    old = {name: value for name, value in FACTS.items() if not name.endswith(".pre")}
    assert gguf_tokenizer(old | {"general.architecture": "gpt2"}).encode("the") == [260]
    with pytest.raises(FormatError, match=r"tokenizer\.ggml\.pre: None"):
        gguf_tokenizer(old)


# What llama.cpp's gguf package writes, behind "tokenizer.ggml.".
KEYS = """
    model pre tokens token_type token_type_count scores merges bos_token_id eos_token_id
    eot_token_id eom_token_id unknown_token_id seperator_token_id padding_token_id mask_token_id
    add_bos_token add_eos_token add_sep_token add_space_prefix remove_extra_whitespaces
    precompiled_charsmap fim_pre_token_id fim_suf_token_id fim_mid_token_id fim_pad_token_id
    fim_rep_token_id fim_sep_token_id prefix_token_id suffix_token_id middle_token_id
""".split()  # noqa: SIM905


@pytest.mark.parametrize("key", KEYS)
def test_every_fact_is_known(key: str) -> None:
    assert (key in HONOURED) != (key in IGNORED)


def test_facts_that_do_not_matter_change_nothing() -> None:
    more = {f"tokenizer.ggml.{key}": 3 for key in IGNORED}
    more |= {"tokenizer.chat_template": "x", "tokenizer.chat_template.tool": "x"}
    assert gguf_tokenizer(FACTS | more).encode("the 12") == gguf_tokenizer(FACTS).encode("the 12")


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"tokenizer.ggml.something": 1}, r"tokenizer\.ggml\.something: 1, which is not"),
        ({"tokenizer.rwkv.world": "x"}, r"tokenizer\.rwkv\.world"),
        ({"tokenizer.ggml.pre": "deepseek-llm"}, "unknown way, .*'deepseek-llm'"),
        ({"tokenizer.ggml.pre": "default"}, "unknown way, .*'default'"),
        ({"tokenizer.ggml.model": "llama"}, "no tokenizer of byte pairs"),
        ({"tokenizer.ggml.tokens": [1]}, "is no text"),
        (
            {"tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.bos_token_id": 999},
            "texts shall have a bos token",
        ),
    ],
)
def test_what_is_not_supported_is_named(facts: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        gguf_tokenizer(FACTS | facts)


@pytest.mark.parametrize("pre", PRE)
def test_every_way_of_splitting_keeps_the_text(pre: str) -> None:
    text = "The 1234 cat's HATS ☃ naïve\n\n  x=1"
    tokenizer = gguf_tokenizer(FACTS | {"tokenizer.ggml.pre": pre})
    assert tokenizer.decode(tokenizer.encode(text, add_special=False)) == text


@pytest.mark.parametrize("key", KEYS)
def test_odd_values_are_refused_or_read(key: str) -> None:
    for value in ("x", -1, 1 << 40, True, [], ["x"], np.zeros(0), np.array([1, 2])):
        try:
            gguf_tokenizer(FACTS | {f"tokenizer.ggml.{key}": value}).encode("the")
        except FormatError:
            pass
