"""metadata of a GGUF file -> its tokenizer, if it is byte-pair encoding, and its stop tokens.

Every key under "tokenizer." is used, ignored or an error that names it.
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
from glassgrad.nn.tokenizer.vocabulary import make_vocabulary

Metadata = Mapping[str, Any]
CONTROL, USER_DEFINED = 3, 4  # token types: special ones, and ones that occur in plain text
USED_KEYS = frozenset(
    (
        "add_bos_token", "add_eos_token", "bos_token_id", "eom_token_id", "eos_token_id",
        "eot_token_id", "merges", "model", "pre", "token_type", "tokens",
    )
)  # fmt: skip
# Special tokens that nothing here uses, and settings of other kinds of tokenizers.
IGNORED_KEYS = frozenset(
    (
        "add_sep_token", "add_space_prefix", "cls_token_id", "fim_mid_token_id",
        "fim_pad_token_id", "fim_pre_token_id", "fim_rep_token_id", "fim_sep_token_id",
        "fim_suf_token_id", "mask_token_id", "middle_token_id", "padding_token_id",
        "precompiled_charsmap", "prefix_token_id", "remove_extra_whitespaces", "scores",
        "seperator_token_id", "suffix_token_id", "token_type_count", "unknown_token_id",
    )
)  # fmt: skip
IGNORED_PREFIXES = ("tokenizer.chat_template", "tokenizer.huggingface.json")
GPT2 = Rules((GPT2_PATTERN,))
DIGITS = Rules((r"\p{N}", GPT2_PATTERN))
QWEN2 = Rules((QWEN2_PATTERN,), normal_form="NFC")
QWEN2_WITHOUT_NFC = Rules((QWEN2_PATTERN,))
LLAMA3 = Rules((LLAMA3_PATTERN,), ignore_merges=True)
TEKKEN = Rules((TEKKEN_PATTERN,), ignore_merges=True)
# By the names of llama.cpp, in tokenizer.ggml.pre.
PRE_TOKENIZERS = {
    "gpt-2": GPT2, "phi-2": GPT2, "mpt": GPT2, "olmo": GPT2, "jais": GPT2,
    "smollm": DIGITS, "starcoder": DIGITS, "refact": DIGITS, "command-r": DIGITS,
    "codeshell": DIGITS,
    "qwen2": QWEN2, "deepseek-r1-qwen": QWEN2, "stablelm2": QWEN2_WITHOUT_NFC,
    "llama-bpe": LLAMA3, "llama3": LLAMA3, "llama-v3": LLAMA3,
    "tekken": TEKKEN,
}  # fmt: skip
ADD_BOS = (LLAMA3, TEKKEN)  # if the file does not specify add_bos_token


def gguf_tokenizer(metadata: Metadata) -> Tokenizer:
    """The tokenizer in a GGUF file."""
    names, merges = metadata.get("tokenizer.ggml.tokens"), metadata.get("tokenizer.ggml.merges")
    model = metadata.get("tokenizer.ggml.model")
    is_bpe = isinstance(model, str) and model == "gpt2"
    if not is_bpe or not isinstance(names, list) or not isinstance(merges, list):
        raise FormatError(
            f"the file has no byte-pair tokenizer; tokenizer.ggml.model is {model!r:.40}",
            hint="pass a tokenizer with --tokenizer",
        )
    if not all(isinstance(name, str) for name in names):
        raise FormatError("a token in tokenizer.ggml.tokens is not a string")
    _check_metadata(metadata)
    types = metadata.get("tokenizer.ggml.token_type")
    types = types.tolist() if isinstance(types, np.ndarray) else []
    added = {
        name: (token, token_type)
        for token, (name, token_type) in enumerate(zip(names, types, strict=False))
        if token_type in (CONTROL, USER_DEFINED)
    }
    non_special = frozenset(name for name, (_, kind) in added.items() if kind == USER_DEFINED)
    rules = _rules(metadata, len(names))._replace(non_special=non_special)
    vocab = {name: token for token, name in enumerate(names)}
    specials = {name: token for name, (token, _) in added.items()}
    return Tokenizer(*make_vocabulary(vocab, merges, specials, rules))


def gguf_stop_tokens(metadata: Metadata) -> tuple[int, ...]:
    """The tokens that end a text or a turn of a chat."""
    tokens = [metadata.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot", "eom")]
    return tuple(dict.fromkeys(token for token in tokens if type(token) is int))


def _check_metadata(metadata: Metadata) -> None:
    for name, value in metadata.items():
        if not name.startswith("tokenizer.") or name.startswith(IGNORED_PREFIXES):
            continue
        key = name.removeprefix("tokenizer.ggml.")
        if key not in USED_KEYS and key not in IGNORED_KEYS:
            raise FormatError(
                f"the file has {name:.60}: {value!r:.40}, which is not supported",
                hint="pass a tokenizer with --tokenizer",
            )


def _rules(metadata: Metadata, vocab_size: int) -> Rules:
    name = metadata.get("tokenizer.ggml.pre")
    if name is None and metadata.get("general.architecture") == "gpt2":
        name = "gpt-2"  # older files do not have the key
    rules = PRE_TOKENIZERS.get(name) if isinstance(name, str) else None
    if rules is None:
        raise FormatError(
            f"unknown pre-tokenizer {name!r:.40} in tokenizer.ggml.pre",
            hint="pass a tokenizer with --tokenizer",
        )
    template = []
    for kind, default in (("bos", rules in ADD_BOS), ("eos", False)):
        is_added = metadata.get(f"tokenizer.ggml.add_{kind}_token", default)
        if type(is_added) is not bool:
            raise FormatError(
                f"tokenizer.ggml.add_{kind}_token must be a bool, not {is_added!r:.40}"
            )
        token = metadata.get(f"tokenizer.ggml.{kind}_token_id")
        if is_added and (type(token) is not int or not 0 <= token < vocab_size):
            raise FormatError(
                f"texts need a {kind} token, but tokenizer.ggml.{kind}_token_id is {token!r:.40}"
            )
        template.append((token,) if is_added and type(token) is int else ())
    return rules._replace(prefix_tokens=template[0], suffix_tokens=template[1])
