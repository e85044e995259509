"""facts of a GGUF file -> its tokenizer, if it has byte pairs, and the tokens that end a text.

Every fact under "tokenizer." is honoured, known not to matter, or refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from glassgrad.base.errors import FormatError
from glassgrad.nn.tokenizer.pre_tokenizer import (
    GPT2_PATTERN,
    LLAMA3_PATTERN,
    QWEN2_PATTERN,
    TEKKEN_PATTERN,
)
from glassgrad.nn.tokenizer.rules import Rules
from glassgrad.nn.tokenizer.tokenizer import Tokenizer
from glassgrad.nn.tokenizer.vocabulary import checked

Facts = Mapping[str, Any]
CONTROL, USER_DEFINED = 3, 4  # types of tokens: special ones, and ones that any text may hold
HONOURED = frozenset(
    (
        "add_bos_token", "add_eos_token", "bos_token_id", "eom_token_id", "eos_token_id",
        "eot_token_id", "merges", "model", "pre", "token_type", "tokens",
    )
)  # fmt: skip
# Tokens that nobody asks for here, and what tokenizers of other kinds need.
IGNORED = frozenset(
    (
        "add_sep_token", "add_space_prefix", "cls_token_id", "fim_mid_token_id",
        "fim_pad_token_id", "fim_pre_token_id", "fim_rep_token_id", "fim_sep_token_id",
        "fim_suf_token_id", "mask_token_id", "middle_token_id", "padding_token_id",
        "precompiled_charsmap", "prefix_token_id", "remove_extra_whitespaces", "scores",
        "seperator_token_id", "suffix_token_id", "token_type_count", "unknown_token_id",
    )
)  # fmt: skip
OTHER_TEXTS = ("tokenizer.chat_template", "tokenizer.huggingface.json")
GPT2 = Rules((GPT2_PATTERN,))
DIGITS = Rules((r"\p{N}", GPT2_PATTERN))
QWEN2 = Rules((QWEN2_PATTERN,), normal_form="NFC")
PLAIN_QWEN2 = Rules((QWEN2_PATTERN,))
LLAMA3 = Rules((LLAMA3_PATTERN,), takes_whole_words=True)
TEKKEN = Rules((TEKKEN_PATTERN,), takes_whole_words=True)
# How words are split, by the names of llama.cpp.
PRE = {
    "gpt-2": GPT2, "phi-2": GPT2, "mpt": GPT2, "olmo": GPT2, "jais": GPT2,
    "smollm": DIGITS, "starcoder": DIGITS, "refact": DIGITS, "command-r": DIGITS,
    "codeshell": DIGITS,
    "qwen2": QWEN2, "deepseek-r1-qwen": QWEN2, "stablelm2": PLAIN_QWEN2,
    "llama-bpe": LLAMA3, "llama3": LLAMA3, "llama-v3": LLAMA3,
    "tekken": TEKKEN,
}  # fmt: skip
BEGIN_WITH_BOS = (LLAMA3, TEKKEN)  # unless the file says otherwise


def gguf_tokenizer(facts: Facts) -> Tokenizer:
    """The tokenizer inside of a file."""
    names, merges = facts.get("tokenizer.ggml.tokens"), facts.get("tokenizer.ggml.merges")
    kind = facts.get("tokenizer.ggml.model")
    is_known = isinstance(kind, str) and kind == "gpt2"
    if not is_known or not isinstance(names, list) or not isinstance(merges, list):
        raise FormatError(
            "the file has no tokenizer of byte pairs", hint="pass one with --tokenizer"
        )
    if not all(isinstance(name, str) for name in names):
        raise FormatError("a token of this file is no text")
    _check_facts(facts)
    kinds = facts.get("tokenizer.ggml.token_type")
    kinds = kinds.tolist() if isinstance(kinds, np.ndarray) else []
    added = {
        name: (number, kind)
        for number, (name, kind) in enumerate(zip(names, kinds, strict=False))
        if kind in (CONTROL, USER_DEFINED)
    }
    rules = _rules(facts, len(names))
    rules = rules._replace(always=frozenset(n for n, (_, k) in added.items() if k == USER_DEFINED))
    vocab = {name: number for number, name in enumerate(names)}
    return Tokenizer(*checked(vocab, merges, {name: i for name, (i, _) in added.items()}, rules))


def gguf_stop_tokens(facts: Facts) -> tuple[int, ...]:
    """The tokens that end a text, or a turn."""
    found = [facts.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot", "eom")]
    return tuple(dict.fromkeys(number for number in found if type(number) is int))


def _check_facts(facts: Facts) -> None:
    for name, value in facts.items():
        if not name.startswith("tokenizer.") or name.startswith(OTHER_TEXTS):
            continue
        key = name.removeprefix("tokenizer.ggml.")
        if key not in HONOURED and key not in IGNORED:
            raise FormatError(
                f"the file says {name:.60}: {value!r:.40}, which is not understood here",
                hint="pass a tokenizer with --tokenizer",
            )


def _rules(facts: Facts, count: int) -> Rules:
    kind = facts.get("tokenizer.ggml.pre")
    if kind is None and facts.get("general.architecture") == "gpt2":
        kind = "gpt-2"  # files that are older than the fact
    rules = PRE.get(kind) if isinstance(kind, str) else None
    if rules is None:
        raise FormatError(
            f"the file splits words in an unknown way, tokenizer.ggml.pre: {kind!r:.40}",
            hint="pass a tokenizer with --tokenizer",
        )
    frame = []
    for name, usual in (("bos", rules in BEGIN_WITH_BOS), ("eos", False)):
        is_added = facts.get(f"tokenizer.ggml.add_{name}_token", usual)
        if type(is_added) is not bool:
            raise FormatError(f"tokenizer.ggml.add_{name}_token is true or false")
        number = facts.get(f"tokenizer.ggml.{name}_token_id")
        if is_added and (type(number) is not int or not 0 <= number < count):
            raise FormatError(f"texts shall have a {name} token, and the file does not say which")
        frame.append((number,) if is_added and type(number) is int else ())
    return rules._replace(first=frame[0], last=frame[1])
