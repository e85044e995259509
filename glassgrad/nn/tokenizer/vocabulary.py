"""tokenizer.json, or vocab.json and merges.txt <-> tokens, merges, special tokens and a pattern.

These files write bytes as printable characters: those that are printable stand for themselves, the
others are shifted behind the first 256.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from glassgrad.base.errors import FormatError
from glassgrad.nn.files.atomic import written_whole
from glassgrad.nn.tokenizer.pre_tokenizer import QWEN2_PATTERN
from glassgrad.nn.tokenizer.rules import HINT, Rules, check_settings, read_rules, written
from glassgrad.nn.tokenizer.training import Pair

MOST_TOKENS = 10_000_000
MOST_GAPS = 1024  # numbers that no token has
CLASSES = {  # of tokenizer_config.json
    "GPT2Tokenizer": Rules(),
    "Qwen2Tokenizer": Rules((QWEN2_PATTERN,), normal_form="NFC"),
}


class Tables(NamedTuple):
    """All that a tokenizer is made of."""

    tokens: Sequence[bytes]
    merges: Sequence[Pair]
    specials: Mapping[str, int]
    rules: Rules


@cache
def letters() -> tuple[str, ...]:
    """The character that each byte is written as."""
    plain = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    shifted = iter(range(0x100, 0x200))
    return tuple(chr(byte if byte in plain else next(shifted)) for byte in range(0x100))


@cache
def _bytes_of() -> dict[str, int]:
    return {letter: byte for byte, letter in enumerate(letters())}


def read_tables(path: Path) -> Tables:
    """What a file or a folder holds."""
    if path.is_dir():
        if (path / "tokenizer.json").exists():
            path = path / "tokenizer.json"
        elif (path / "vocab.json").exists() and (path / "merges.txt").exists():
            merges = (path / "merges.txt").read_text("utf-8", "replace").split("\n")
            lines = [line for line in merges if line and not line.startswith("#version")]
            return checked(read_json(path / "vocab.json"), lines, {}, _rules_of_class(path))
        else:
            raise FormatError(f"{path} holds no tokenizer.json, and no vocab.json and merges.txt")
    whole = read_json(path)
    model = whole.get("model")
    if not isinstance(model, dict) or model.get("type", "BPE") != "BPE":
        raise FormatError(f"{path.name} is no tokenizer of byte pairs", hint=HINT)
    check_settings(model, "a model")
    specials, always = _added(whole.get("added_tokens") or [], path.name)
    rules = read_rules(whole, always)
    return checked(model.get("vocab"), model.get("merges"), specials, rules)


def _added(rows: Any, name: str) -> tuple[dict[str, int], frozenset[str]]:
    """The numbers of added tokens, and which of them any text may hold."""
    try:
        for row in rows:
            check_settings(row, "an added token")
        specials = {str(row["content"]): int(row["id"]) for row in rows}
        always = frozenset(str(row["content"]) for row in rows if row.get("special") is False)
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{name} has added_tokens without content or id") from None
    return specials, always


def _rules_of_class(folder: Path) -> Rules:
    """vocab.json and merges.txt do not say how words are split; a tokenizer_config.json may."""
    file = folder / "tokenizer_config.json"
    found = read_json(file) if file.exists() else {}
    kind = found.get("tokenizer_class", "GPT2Tokenizer")
    rules = CLASSES.get(str(kind).removesuffix("Fast"))
    if rules is None or found.get("add_prefix_space") or found.get("add_bos_token"):
        raise FormatError(
            f"nothing says how a {kind!r:.40} splits words, or what it adds to them",
            hint="a tokenizer.json would",
        )
    return rules


def read_json(path: Path) -> dict[str, Any]:
    """The object that a JSON file holds."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path.name} is not the JSON it should be: {error}") from None
    if not isinstance(found, dict):
        raise FormatError(f"{path.name} should be an object, and is a {type(found).__name__}")
    return found


def checked(vocab: Any, merges: Any, specials: dict[str, int], rules: Rules) -> Tables:
    """Names -> bytes and numbers, all of them checked."""
    if not isinstance(vocab, dict) or not isinstance(merges, list):
        raise FormatError("a vocabulary is an object, and merges are a list")
    numbers = [*vocab.values(), *specials.values()]
    if not all(type(number) is int and 0 <= number < MOST_TOKENS for number in numbers):
        raise FormatError("a token's number is not what it should be")
    if not {*rules.first, *rules.last} <= set(numbers):
        raise FormatError("texts are framed by tokens that are not there")
    size = max(vocab.values(), default=-1) + 1
    if size > len(set(numbers)) + MOST_GAPS:
        raise FormatError(f"{len(vocab)} tokens have numbers up to {size}")
    tokens = [b""] * size
    for name, number in vocab.items():
        if name in specials:
            continue
        tokens[number] = _as_bytes(name)
        if number in specials.values():
            raise FormatError(f"token {number} is {name!r:.40} and a special one at once")
    pairs = [_pair(rule, vocab) for rule in merges]
    # A special token that GPT-2's files list among the others is found by how it is written.
    for name, number in vocab.items():
        if name.startswith("<|") and name.endswith("|>"):
            specials = {**specials, name: number}
    return Tables(tokens, pairs, specials, rules)


def _as_bytes(name: str) -> bytes:
    known = _bytes_of()
    try:
        return bytes([known[letter] for letter in name])
    except KeyError:
        return name.encode("utf-8", "surrogatepass")  # a token that no merge makes


def _pair(rule: Any, vocab: dict[str, int]) -> Pair:
    parts = rule.split(" ") if isinstance(rule, str) else rule
    if (
        not isinstance(parts, list)
        or len(parts) != 2
        or not all(isinstance(part, str) and part in vocab for part in parts)
    ):
        raise FormatError(f"{rule!r:.60} does not merge two tokens")
    return vocab[parts[0]], vocab[parts[1]]


def write_tables(path: Path, tables: Tables) -> None:
    """One tokenizer.json."""
    named = ["".join(letters()[byte] for byte in token) for token in tables.tokens]
    special = {number: name for name, number in tables.specials.items()}
    vocab = {special.get(number, name): number for number, name in enumerate(named)}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    always = tables.rules.always
    whole = {
        "version": "1.0",
        "added_tokens": [
            {"id": number, "content": name, **flags, "special": name not in always}
            for name, number in tables.specials.items()
        ],
        **written(tables.rules, {**dict(enumerate(named)), **special}),
        "model": {
            "type": "BPE",
            "ignore_merges": tables.rules.takes_whole_words,
            "vocab": vocab,
            "merges": [[named[left], named[right]] for left, right in tables.merges],
        },
    }
    written_whole(path, [json.dumps(whole, ensure_ascii=False).encode()])
