"""sections of a tokenizer.json <-> Rules: how text is prepared, split into words, and framed.

Every setting is honoured, known not to matter, or refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from glassgrad.base.errors import FormatError
from glassgrad.nn.tokenizer.pre_tokenizer import GPT2_PATTERN

HINT = "glassgrad.nn.tokenizer.foreign.ForeignTokenizer reads it through the package tokenizers"
NORMAL_FORMS = ("NFC", "NFD", "NFKC", "NFKD")
SECTIONS = frozenset(
    (
        "version", "truncation", "padding",  # the last two are for batches
        "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder", "model",
    )
)  # fmt: skip
# Settings of a part, and the values that are supported; None: any value.
SETTINGS: dict[str, dict[str, tuple[Any, ...] | None]] = {
    "a model": {
        "type": ("BPE",),
        "vocab": None,
        "merges": None,
        "dropout": (None, 0),
        "unk_token": None,  # never used: there is a token for every byte
        "fuse_unk": None,
        "continuing_subword_prefix": (None, ""),
        "end_of_word_suffix": (None, ""),
        "byte_fallback": (None, False),
        "ignore_merges": (None, False, True),
    },
    "an added token": {
        "id": None,
        "content": None,
        "single_word": (False,),
        "lstrip": (False,),
        "rstrip": (False,),
        "normalized": None,
        "special": None,
    },
    "Split": {"type": None, "pattern": None, "behavior": ("Isolated",), "invert": (False,)},
    "ByteLevel": {"type": None, "add_prefix_space": None, "trim_offsets": None, "use_regex": None},
    "Digits": {"type": None, "individual_digits": None},
    "Sequence": {"type": None, "pretokenizers": None, "processors": None, "normalizers": None},
    "TemplateProcessing": {"type": None, "single": None, "pair": None, "special_tokens": None},
}


class Rules(NamedTuple):
    """How a text becomes words of bytes, and what is added to its tokens."""

    patterns: tuple[str, ...] = (GPT2_PATTERN,)  # each splits what the one before it left
    normal_form: str = ""  # of Unicode
    has_prefix_space: bool = False
    takes_whole_words: bool = False  # a word that is a token is not merged
    first: tuple[int, ...] = ()  # tokens before every text
    last: tuple[int, ...] = ()
    always: frozenset[str] = frozenset()  # added tokens that are no special ones


def check_settings(part: Mapping[str, Any], name: str) -> None:
    """Refuse settings that are unknown, or have values that are not supported."""
    for key, value in part.items():
        allowed = SETTINGS[name].get(key, ())
        if allowed is not None and not any(value is one or value == one for one in allowed):
            raise FormatError(
                f"{name} of the tokenizer says {key!r:.40}: {value!r:.60}, which is not supported",
                hint=HINT,
            )


def read_rules(whole: Mapping[str, Any], always: frozenset[str]) -> Rules:
    """The rules of a tokenizer.json."""
    for key in whole.keys() - SECTIONS:
        raise FormatError(f"the tokenizer has an unknown section {key!r:.40}", hint=HINT)
    patterns, has_prefix_space = _patterns(whole.get("pre_tokenizer"))
    first, last = _frame(whole.get("post_processor"))
    for decoder in _parts(whole.get("decoder"), "decoders"):
        if _kind(decoder) != "ByteLevel":
            raise FormatError(f"tokens are decoded in an unknown way: {decoder!r:.80}", hint=HINT)
    is_whole = whole["model"].get("ignore_merges") is True
    form = _normal_form(whole.get("normalizer"))
    return Rules(patterns, form, has_prefix_space, is_whole, first, last, always)


def _parts(rule: Any, inside: str) -> list[Any]:
    """A part, or the parts of a sequence."""
    if rule is None:
        return []
    if _kind(rule) != "Sequence":
        return [rule]
    parts = rule.get(inside)
    return parts if isinstance(parts, list) else [None]


def _kind(rule: Any) -> Any:
    return rule.get("type") if isinstance(rule, dict) else None


def _normal_form(rule: Any) -> str:
    parts = _parts(rule, "normalizers")
    if len(parts) > 1 or any(_kind(part) not in NORMAL_FORMS for part in parts):
        raise FormatError(f"text is normalised in an unknown way: {rule!r:.80}", hint=HINT)
    return str(parts[0]["type"]) if parts else ""


def _patterns(rule: Any) -> tuple[tuple[str, ...], bool]:
    """How words are split, and whether a blank is put before a text: bytes come last."""
    patterns: list[str] = []
    parts = _parts(rule, "pretokenizers")
    for part in parts:
        kind = _kind(part)
        if kind in ("Split", "ByteLevel", "Digits"):
            check_settings(part, kind)
        pattern = part.get("pattern") if kind == "Split" else None
        if kind == "Split" and isinstance(pattern, dict) and isinstance(pattern.get("Regex"), str):
            patterns.append(pattern["Regex"])
        elif kind == "Digits":
            patterns.append(r"\p{N}" if part.get("individual_digits") else r"\p{N}+")
        elif kind == "ByteLevel" and part is parts[-1]:
            patterns += [GPT2_PATTERN] if part.get("use_regex", True) else []
        else:
            raise FormatError(f"words are split in an unknown way: {part!r:.80}", hint=HINT)
    if not parts or _kind(parts[-1]) != "ByteLevel":
        raise FormatError(f"words are split in an unknown way: {rule!r:.80}", hint=HINT)
    if parts[-1].get("add_prefix_space", True) and len(parts) > 1:  # before each word
        raise FormatError("words are split in an unknown way: with blanks before each", hint=HINT)
    return tuple(patterns), bool(parts[-1].get("add_prefix_space", True))


def _frame(rule: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The tokens that are put before and behind every text."""
    first: tuple[int, ...] = ()
    last: tuple[int, ...] = ()
    for part in _parts(rule, "processors"):
        kind = _kind(part)
        if kind == "ByteLevel":  # where words begin in the text, which nobody asks for here
            continue
        if kind != "TemplateProcessing":
            raise FormatError(f"texts are framed in an unknown way: {part!r:.80}", hint=HINT)
        check_settings(part, kind)
        before, behind = _template(part)
        first, last = before + first, last + behind
    return first, last


def _template(part: Mapping[str, Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    sides: list[list[int]] = [[]]
    try:
        for item in part["single"]:
            if "Sequence" in item:
                sides.append([])
            else:
                known = part["special_tokens"][item["SpecialToken"]["id"]]
                sides[-1].extend(int(number) for number in known["ids"])
        before, behind = sides
    except (KeyError, TypeError, ValueError, AttributeError):
        raise FormatError(f"texts are framed in an unknown way: {part!r:.80}", hint=HINT) from None
    return tuple(before), tuple(behind)


def written(rules: Rules, names: Mapping[int, str]) -> dict[str, Any]:
    """The sections of a tokenizer.json; names are those of special tokens."""
    bytes_only = {"type": "ByteLevel", "trim_offsets": True, "use_regex": False}
    splits = [
        {"type": "Split", "pattern": {"Regex": one}, "behavior": "Isolated", "invert": False}
        for one in rules.patterns
    ]
    if rules.has_prefix_space:  # which is put before a text, so the blank must come first
        bytes_only["use_regex"] = rules.patterns == (GPT2_PATTERN,)
        splits = []
    found = {**bytes_only, "add_prefix_space": rules.has_prefix_space}
    ids = sorted({*rules.first, *rules.last})
    frame = [
        *({"SpecialToken": {"id": names[number], "type_id": 0}} for number in rules.first),
        {"Sequence": {"id": "A", "type_id": 0}},
        *({"SpecialToken": {"id": names[number], "type_id": 0}} for number in rules.last),
    ]
    tokens = {names[i]: {"id": names[i], "ids": [i], "tokens": [names[i]]} for i in ids}
    pair = [*frame, {"Sequence": {"id": "B", "type_id": 1}}]
    return {
        "normalizer": {"type": rules.normal_form} if rules.normal_form else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*splits, found]},
        "post_processor": {
            "type": "TemplateProcessing", "single": frame, "pair": pair, "special_tokens": tokens,
        } if ids else None,
        "decoder": {**bytes_only, "add_prefix_space": False},
    }  # fmt: skip
