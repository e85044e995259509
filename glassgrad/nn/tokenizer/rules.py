"""Rules: the normalizer, pre-tokenizer and template of a tokenizer, read from a tokenizer.json.

Every setting is used, ignored or an error that names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from glassgrad.base.errors import FormatError
from glassgrad.nn.tokenizer.pre_tokenizer import GPT2_PATTERN

FALLBACK_HINT = (
    "glassgrad.nn.tokenizer.foreign.ForeignTokenizer reads it through the package tokenizers"
)
NORMAL_FORMS = ("NFC", "NFD", "NFKC", "NFKD")
SECTIONS = frozenset(
    (
        "version", "truncation", "padding",  # ignored; the last two are for batches
        "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder", "model",
    )
)  # fmt: skip
# Supported values of each setting; None: any value.
SUPPORTED_SETTINGS: dict[str, dict[str, tuple[Any, ...] | None]] = {
    "model": {
        "type": ("BPE",),
        "vocab": None,
        "merges": None,
        "dropout": (None, 0),
        "unk_token": None,  # unused: every byte has a token
        "fuse_unk": None,
        "continuing_subword_prefix": (None, ""),
        "end_of_word_suffix": (None, ""),
        "byte_fallback": (None, False),
        "ignore_merges": (None, False, True),
    },
    "added token": {
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
    """How a text becomes words of bytes, and which special tokens are added to it."""

    patterns: tuple[str, ...] = (GPT2_PATTERN,)  # of the pre-tokenizer, applied one after another
    normal_form: str = ""  # Unicode normalization form; "": none
    has_prefix_space: bool = False
    ignore_merges: bool = False  # a word that is a token is not merged
    prefix_tokens: tuple[int, ...] = ()  # before every text
    suffix_tokens: tuple[int, ...] = ()  # after every text
    non_special: frozenset[str] = frozenset()  # added tokens that are recognised in any text


def check_settings(part: Mapping[str, Any], name: str) -> None:
    """Refuse unknown settings and unsupported values."""
    for key, value in part.items():
        allowed = SUPPORTED_SETTINGS[name].get(key, ())
        if allowed is not None and not any(value is one or value == one for one in allowed):
            raise FormatError(
                f"{name} of tokenizer.json has {key!r:.40}: {value!r:.60}, which is not supported",
                hint=FALLBACK_HINT,
            )


def read_rules(sections: Mapping[str, Any], non_special: frozenset[str]) -> Rules:
    """The rules of a tokenizer.json."""
    for key in sections.keys() - SECTIONS:
        raise FormatError(f"unknown section {key!r:.40} of tokenizer.json", hint=FALLBACK_HINT)
    patterns, has_prefix_space = _patterns(sections.get("pre_tokenizer"))
    prefix, suffix = _special_tokens(sections.get("post_processor"))
    for decoder in _parts(sections.get("decoder"), "decoders"):
        if _type(decoder) != "ByteLevel":
            raise _unsupported("decoder", decoder)
    ignore_merges = sections["model"].get("ignore_merges") is True
    form = _normal_form(sections.get("normalizer"))
    return Rules(patterns, form, has_prefix_space, ignore_merges, prefix, suffix, non_special)


def _unsupported(section: str, value: Any) -> FormatError:
    return FormatError(f"unsupported {section} in tokenizer.json: {value!r:.80}", FALLBACK_HINT)


def _parts(section: Any, key: str) -> list[Any]:
    """The items of a Sequence under `key`; a section of another type is the only item."""
    if section is None:
        return []
    if _type(section) != "Sequence":
        return [section]
    parts = section.get(key)
    return parts if isinstance(parts, list) else [None]


def _type(section: Any) -> Any:
    return section.get("type") if isinstance(section, dict) else None


def _normal_form(section: Any) -> str:
    parts = _parts(section, "normalizers")
    if len(parts) > 1 or any(_type(part) not in NORMAL_FORMS for part in parts):
        raise _unsupported("normalizer", section)
    return str(parts[0]["type"]) if parts else ""


def _patterns(section: Any) -> tuple[tuple[str, ...], bool]:
    """The patterns of a pre-tokenizer ending in ByteLevel, and whether it adds a prefix space."""
    patterns: list[str] = []
    parts = _parts(section, "pretokenizers")
    for part in parts:
        kind = _type(part)
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
            raise _unsupported("pre_tokenizer", part)
    if not parts or _type(parts[-1]) != "ByteLevel":
        raise _unsupported("pre_tokenizer", section)
    if parts[-1].get("add_prefix_space", True) and len(parts) > 1:
        raise FormatError(
            "unsupported pre_tokenizer in tokenizer.json: it adds a space before every word",
            hint=FALLBACK_HINT,
        )
    return tuple(patterns), bool(parts[-1].get("add_prefix_space", True))


def _special_tokens(section: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The tokens that a post-processor adds before and after every text."""
    prefix: tuple[int, ...] = ()
    suffix: tuple[int, ...] = ()
    for part in _parts(section, "processors"):
        kind = _type(part)
        if kind == "ByteLevel":  # it only adjusts offsets of words, which are not used here
            continue
        if kind != "TemplateProcessing":
            raise _unsupported("post_processor", part)
        check_settings(part, kind)
        before, after = _template(part)
        prefix, suffix = before + prefix, suffix + after
    return prefix, suffix


def _template(part: Mapping[str, Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    sides: list[list[int]] = [[]]
    try:
        for item in part["single"]:
            if "Sequence" in item:
                sides.append([])
            else:
                special = part["special_tokens"][item["SpecialToken"]["id"]]
                sides[-1].extend(int(token) for token in special["ids"])
        before, after = sides
    except (KeyError, TypeError, ValueError, AttributeError):
        raise _unsupported("post_processor", part) from None
    return tuple(before), tuple(after)


def rules_to_json(rules: Rules, names: Mapping[int, str]) -> dict[str, Any]:
    """The sections of a tokenizer.json; `names` has the names of tokens."""
    bytes_only = {"type": "ByteLevel", "trim_offsets": True, "use_regex": False}
    splits = [
        {"type": "Split", "pattern": {"Regex": one}, "behavior": "Isolated", "invert": False}
        for one in rules.patterns
    ]
    if rules.has_prefix_space:  # ByteLevel adds it, so ByteLevel must be the only part
        bytes_only["use_regex"] = rules.patterns == (GPT2_PATTERN,)
        splits = []
    byte_level = {**bytes_only, "add_prefix_space": rules.has_prefix_space}
    ids = sorted({*rules.prefix_tokens, *rules.suffix_tokens})
    single = [
        *({"SpecialToken": {"id": names[token], "type_id": 0}} for token in rules.prefix_tokens),
        {"Sequence": {"id": "A", "type_id": 0}},
        *({"SpecialToken": {"id": names[token], "type_id": 0}} for token in rules.suffix_tokens),
    ]
    tokens = {names[i]: {"id": names[i], "ids": [i], "tokens": [names[i]]} for i in ids}
    pair = [*single, {"Sequence": {"id": "B", "type_id": 1}}]
    return {
        "normalizer": {"type": rules.normal_form} if rules.normal_form else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*splits, byte_level]},
        "post_processor": {
            "type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": tokens,
        } if ids else None,
        "decoder": {**bytes_only, "add_prefix_space": False},
    }  # fmt: skip
