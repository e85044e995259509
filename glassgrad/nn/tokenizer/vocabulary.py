"""Vocabulary: tokens and merges, read from a tokenizer.json or from vocab.json and merges.txt.

These files write bytes as printable characters: printable ones as themselves, the others as the
characters from 256 on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from glassgrad.base.errors import FormatError
from glassgrad.nn.files.atomic import write_atomically
from glassgrad.nn.tokenizer.pre_tokenizer import QWEN2_PATTERN
from glassgrad.nn.tokenizer.rules import (
    FALLBACK_HINT,
    Rules,
    check_settings,
    read_rules,
    rules_to_json,
)
from glassgrad.nn.tokenizer.training import Pair

MAX_TOKENS = 10_000_000
MAX_UNUSED_IDS = 1024
RULES_BY_CLASS = {  # tokenizer_class of tokenizer_config.json
    "GPT2Tokenizer": Rules(),
    "Qwen2Tokenizer": Rules((QWEN2_PATTERN,), normal_form="NFC"),
}


class Vocabulary(NamedTuple):
    """The tokens, merges, special tokens and rules of a tokenizer."""

    tokens: Sequence[bytes]
    merges: Sequence[Pair]
    specials: Mapping[str, int]
    rules: Rules


@cache
def byte_characters() -> tuple[str, ...]:
    """The character that stands for each byte in these files."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    shifted = iter(range(0x100, 0x200))
    return tuple(chr(byte if byte in printable else next(shifted)) for byte in range(0x100))


@cache
def _bytes_by_character() -> dict[str, int]:
    return {character: byte for byte, character in enumerate(byte_characters())}


def read_vocabulary(path: Path) -> Vocabulary:
    """Read a tokenizer.json, or a folder that has one or a vocab.json and a merges.txt."""
    if path.is_dir():
        if (path / "tokenizer.json").exists():
            path = path / "tokenizer.json"
        elif (path / "vocab.json").exists() and (path / "merges.txt").exists():
            merges = (path / "merges.txt").read_text("utf-8", "replace").split("\n")
            lines = [line for line in merges if line and not line.startswith("#version")]
            return make_vocabulary(read_json(path / "vocab.json"), lines, {}, _rules_of_class(path))
        else:
            raise FormatError(
                f"{path} has neither a tokenizer.json nor a vocab.json and a merges.txt"
            )
    sections = read_json(path)
    model = sections.get("model")
    if not isinstance(model, dict) or model.get("type", "BPE") != "BPE":
        raise FormatError(f"{path.name} is not a byte-pair tokenizer", hint=FALLBACK_HINT)
    check_settings(model, "model")
    specials, non_special = _added_tokens(sections.get("added_tokens") or [], path.name)
    rules = read_rules(sections, non_special)
    return make_vocabulary(model.get("vocab"), model.get("merges"), specials, rules)


def _added_tokens(rows: Any, name: str) -> tuple[dict[str, int], frozenset[str]]:
    """The added tokens, and the names of those that are not special."""
    try:
        for row in rows:
            check_settings(row, "added token")
        specials = {str(row["content"]): int(row["id"]) for row in rows}
        non_special = frozenset(str(row["content"]) for row in rows if row.get("special") is False)
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{name} has an added token without content or id") from None
    return specials, non_special


def _rules_of_class(folder: Path) -> Rules:
    """The rules for a vocab.json and merges.txt, by the class in tokenizer_config.json."""
    file = folder / "tokenizer_config.json"
    settings = read_json(file) if file.exists() else {}
    name = settings.get("tokenizer_class", "GPT2Tokenizer")
    rules = RULES_BY_CLASS.get(str(name).removesuffix("Fast"))
    if rules is None or settings.get("add_prefix_space") or settings.get("add_bos_token"):
        raise FormatError(
            f"the pre-tokenizer of {name!r:.40} in tokenizer_config.json is not supported",
            hint="use the tokenizer.json of the model",
        )
    return rules


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path.name} is not valid JSON: {error}") from None
    if not isinstance(found, dict):
        raise FormatError(f"{path.name} must hold an object, not a {type(found).__name__}")
    return found


def make_vocabulary(vocab: Any, merges: Any, specials: dict[str, int], rules: Rules) -> Vocabulary:
    """Check the contents of a file, and convert names of tokens to bytes and ids."""
    if not isinstance(vocab, dict) or not isinstance(merges, list):
        raise FormatError("the vocabulary must be an object, and the merges a list")
    ids = [*vocab.values(), *specials.values()]
    if not all(type(token) is int and 0 <= token < MAX_TOKENS for token in ids):
        raise FormatError(f"token ids must be ints from 0 to {MAX_TOKENS - 1}")
    if not {*rules.prefix_tokens, *rules.suffix_tokens} <= set(ids):
        raise FormatError("the post_processor adds tokens that are not in the vocabulary")
    size = max(vocab.values(), default=-1) + 1
    if size > len(set(ids)) + MAX_UNUSED_IDS:
        raise FormatError(f"the vocabulary has {len(vocab)} tokens, but ids up to {size - 1}")
    tokens = [b""] * size
    for name, token in vocab.items():
        if name in specials:
            continue
        tokens[token] = _as_bytes(name)
        if token in specials.values():
            raise FormatError(f"{name!r:.40} and a special token have the same id {token}")
    pairs = [_pair(merge, vocab) for merge in merges]
    # GPT-2's files list special tokens among the others: recognise them by their spelling.
    for name, token in vocab.items():
        if name.startswith("<|") and name.endswith("|>"):
            specials = {**specials, name: token}
    return Vocabulary(tokens, pairs, specials, rules)


def _as_bytes(name: str) -> bytes:
    byte_of = _bytes_by_character()
    try:
        return bytes([byte_of[character] for character in name])
    except KeyError:
        return name.encode("utf-8", "surrogatepass")  # a token that no merge makes


def _pair(merge: Any, vocab: dict[str, int]) -> Pair:
    parts = merge.split(" ") if isinstance(merge, str) else merge
    if (
        not isinstance(parts, list)
        or len(parts) != 2
        or not all(isinstance(part, str) and part in vocab for part in parts)
    ):
        raise FormatError(f"the merge {merge!r:.60} is not a pair of tokens of the vocabulary")
    return vocab[parts[0]], vocab[parts[1]]


def write_vocabulary(path: Path, vocabulary: Vocabulary) -> None:
    """Write a tokenizer.json."""
    characters = byte_characters()
    names = ["".join(characters[byte] for byte in token) for token in vocabulary.tokens]
    specials = {token: name for name, token in vocabulary.specials.items()}
    vocab = {specials.get(token, name): token for token, name in enumerate(names)}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    non_special = vocabulary.rules.non_special
    sections = {
        "version": "1.0",
        "added_tokens": [
            {"id": token, "content": name, **flags, "special": name not in non_special}
            for name, token in vocabulary.specials.items()
        ],
        **rules_to_json(vocabulary.rules, {**dict(enumerate(names)), **specials}),
        "model": {
            "type": "BPE",
            "ignore_merges": vocabulary.rules.ignore_merges,
            "vocab": vocab,
            "merges": [[names[left], names[right]] for left, right in vocabulary.merges],
        },
    }
    write_atomically(path, [json.dumps(sections, ensure_ascii=False).encode()])
