"""Tokenizers in GGUF files: every key is used, ignored or an error that names it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from glassgrad.base.errors import FormatError
from glassgrad.nn.tokenizer.gguf import (
    IGNORED_KEYS,
    PRE_TOKENIZERS,
    USED_KEYS,
    gguf_stop_tokens,
    gguf_tokenizer,
)
from glassgrad.nn.tokenizer.vocabulary import byte_characters

NAMES = [*byte_characters(), "12", "34", "123", "th", "the", "Ġ=", "<|end|>", "<tool>", "zq"]
METADATA: dict[str, Any] = {
    "general.architecture": "llama",
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "gpt-2",
    "tokenizer.ggml.tokens": NAMES,
    "tokenizer.ggml.token_type": np.array([1] * 262 + [3, 4, 1], np.int32),
    "tokenizer.ggml.merges": ["1 2", "3 4", "12 3", "t h", "th e"],
    "tokenizer.ggml.bos_token_id": 262,
    "tokenizer.ggml.eos_token_id": 262,
}


def encoded(text: str, **changes: Any) -> list[str]:
    """The tokens of a text as strings, with some metadata changed."""
    tokenizer = gguf_tokenizer(
        METADATA | {f"tokenizer.ggml.{key}": v for key, v in changes.items()}
    )
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
def test_words_are_split_by_the_pre_tokenizer_of_the_file(
    pre: str, text: str, wanted: list[str]
) -> None:
    assert encoded(text, pre=pre) == wanted


def test_qwen_normalises_to_nfc() -> None:
    assert encoded("e\u0301", pre="qwen2") == encoded("é", pre="qwen2")
    assert encoded("e\u0301", pre="gpt-2") != encoded("é", pre="gpt-2")


def test_bos_and_eos_tokens_are_added() -> None:
    assert encoded("the", add_bos_token=True) == ["<|end|>", "the"]
    assert encoded("the", add_eos_token=True) == ["the", "<|end|>"]
    assert encoded("the", pre="llama-bpe", add_bos_token=False) == ["the"]


def test_user_defined_tokens_are_recognised_in_any_text() -> None:
    assert encoded("the<tool>the") == ["the", "<tool>", "the"]
    assert encoded("<|end|>") != ["<|end|>"]


def test_stop_tokens_end_a_text_or_a_turn() -> None:
    assert gguf_stop_tokens(METADATA) == (262,)
    ids = {"tokenizer.ggml.eot_token_id": 5, "tokenizer.ggml.eom_token_id": 262}
    assert gguf_stop_tokens(METADATA | ids) == (262, 5)
    assert gguf_stop_tokens({}) == ()


def test_old_files_of_gpt2_have_no_pre_tokenizer() -> None:
    old = {name: value for name, value in METADATA.items() if not name.endswith(".pre")}
    assert gguf_tokenizer(old | {"general.architecture": "gpt2"}).encode("the") == [260]
    with pytest.raises(FormatError, match=r"unknown pre-tokenizer None in tokenizer\.ggml\.pre"):
        gguf_tokenizer(old)


# Keys of llama.cpp's gguf package, without the prefix "tokenizer.ggml.".
KEYS = """
    model pre tokens token_type token_type_count scores merges bos_token_id eos_token_id
    eot_token_id eom_token_id unknown_token_id seperator_token_id padding_token_id mask_token_id
    add_bos_token add_eos_token add_sep_token add_space_prefix remove_extra_whitespaces
    precompiled_charsmap fim_pre_token_id fim_suf_token_id fim_mid_token_id fim_pad_token_id
    fim_rep_token_id fim_sep_token_id prefix_token_id suffix_token_id middle_token_id
""".split()  # noqa: SIM905


@pytest.mark.parametrize("key", KEYS)
def test_every_key_is_used_or_ignored(key: str) -> None:
    assert (key in USED_KEYS) != (key in IGNORED_KEYS)


def test_ignored_keys_change_nothing() -> None:
    more = {f"tokenizer.ggml.{key}": 3 for key in IGNORED_KEYS}
    more |= {"tokenizer.chat_template": "x", "tokenizer.chat_template.tool": "x"}
    assert gguf_tokenizer(METADATA | more).encode("the 12") == gguf_tokenizer(METADATA).encode(
        "the 12"
    )


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"tokenizer.ggml.something": 1}, r"tokenizer\.ggml\.something: 1, which is not"),
        ({"tokenizer.rwkv.world": "x"}, r"tokenizer\.rwkv\.world"),
        ({"tokenizer.ggml.pre": "deepseek-llm"}, "unknown pre-tokenizer 'deepseek-llm'"),
        ({"tokenizer.ggml.pre": "default"}, "unknown pre-tokenizer 'default'"),
        ({"tokenizer.ggml.model": "llama"}, "no byte-pair tokenizer"),
        ({"tokenizer.ggml.tokens": [1]}, "is not a string"),
        (
            {"tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.bos_token_id": 999},
            "texts need a bos token",
        ),
    ],
)
def test_unsupported_metadata_is_named(metadata: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        gguf_tokenizer(METADATA | metadata)


@pytest.mark.parametrize("pre", PRE_TOKENIZERS)
def test_every_pre_tokenizer_preserves_the_text(pre: str) -> None:
    text = "The 1234 cat's HATS ☃ naïve\n\n  x=1"
    tokenizer = gguf_tokenizer(METADATA | {"tokenizer.ggml.pre": pre})
    assert tokenizer.decode(tokenizer.encode(text, add_special=False)) == text


@pytest.mark.parametrize("key", KEYS)
def test_invalid_values_raise_nothing_but_format_errors(key: str) -> None:
    for value in ("x", -1, 1 << 40, True, [], ["x"], np.zeros(0), np.array([1, 2])):
        try:
            gguf_tokenizer(METADATA | {f"tokenizer.ggml.{key}": value}).encode("the")
        except FormatError:
            pass
