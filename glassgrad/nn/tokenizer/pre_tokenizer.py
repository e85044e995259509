"""text -> words, which merges never cross: a pattern of the `regex` package in Python's own `re`.

Published tokenizers write their patterns with \\p{L} and \\p{N}, which `re` lacks; a class of all
such letters takes their place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from unicodedata import category

from glassgrad.base.errors import FormatError

# Endings such as 've, letters, digits, other signs, each with one blank before it; blanks.
GPT2_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
# Llama 3's: up to three digits; also signs before letters, and lines after signs.
LLAMA3_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2_PATTERN = LLAMA3_PATTERN.replace(r"\p{N}{1,3}", r"\p{N}")
# Mistral's: words also begin at capital letters.
TEKKEN_PATTERN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
LAST_LETTER = 0x33480  # behind it no letter or digit is defined,
LAST_MARK = 0xE01F0  # and no mark behind this one
# Unicode's white space; Python's \s has four separators more.
SPACE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
ESCAPE = re.compile(r"\\p\{([A-Z][a-z]?)\}|\\([sS])|\\.|\[\^?|\]", re.DOTALL)


@cache
def splitter(pattern: str) -> re.Pattern[str]:
    """A compiled pattern; its matches are the words.

    >>> splitter(GPT2_PATTERN).findall("it's  22 x_1")
    ['it', "'s", ' ', ' 22', ' x', '_', '1']
    """
    depth = 0
    parts: list[str] = []
    end = 0
    for match in ESCAPE.finditer(pattern):
        found = match.group()
        parts.append(pattern[end : match.start()])
        parts.append(_translated(match, in_class=depth > 0))
        depth += (found[0] == "[") - (found == "]")
        end = match.end()
    try:
        return re.compile("".join([*parts, pattern[end:]]))
    except re.error as error:
        raise FormatError(f"cannot split words by {pattern!r:.80}: {error}") from None


def split_words(text: str, patterns: tuple[str, ...]) -> Iterable[str]:
    """Words by one pattern, each of them split by the next one, and so on.

    What a pattern does not match is a word, too: nothing is lost.

    >>> list(split_words("ab12", (r"\\p{N}", GPT2_PATTERN)))
    ['ab', '1', '2']
    """
    words: Iterable[str] = (text,) if text else ()
    for pattern in patterns:
        words = _split_again(words, splitter(pattern))
    return words


def _split_again(words: Iterable[str], pattern: re.Pattern[str]) -> Iterator[str]:
    for word in words:
        end = 0
        for match in pattern.finditer(word):
            start, stop = match.span()
            if start > end:
                yield word[end:start]
            if stop > start:
                yield word[start:stop]
            end = stop
        if end < len(word):
            yield word[end:]


def _translated(match: re.Match[str], in_class: bool) -> str:
    letter, space = match.group(1), match.group(2)
    if letter is None and space is None:
        return match.group()
    inside = _class_of(letter) if letter else SPACE
    if space == "S":
        return inside if in_class else f"[^{SPACE}]"
    return inside if in_class else f"[{inside}]"


@cache
def _class_of(kind: str) -> str:
    """The characters whose category is this, or begins with this letter, as ranges of a class."""
    ranges: list[list[int]] = []
    for code in range(LAST_LETTER if kind[0] in "LN" else LAST_MARK):
        if category(chr(code)).startswith(kind):
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)
