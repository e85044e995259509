"""Pre-tokenizer: text -> words, within which byte pairs are merged.

The patterns of published tokenizers use the syntax of the package `regex`. Python's `re` does not
have \\p{L} and \\p{N}, so they are replaced by the characters of these categories.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from unicodedata import category

from glassgrad.base.errors import FormatError

# Contractions such as 've; letters, digits or other characters, with one space before; white space.
GPT2_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
# Llama 3: at most three digits; one other character before letters; line breaks after punctuation.
LLAMA3_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2_PATTERN = LLAMA3_PATTERN.replace(r"\p{N}{1,3}", r"\p{N}")
# Mistral: words also start at capital letters.
TEKKEN_PATTERN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
MAX_LETTER = 0x33480  # above every letter and digit of Unicode
MAX_MARK = 0xE01F0  # above every combining mark
# White space of Unicode; \s of Python has four more separators.
WHITE_SPACE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
ESCAPE = re.compile(r"\\p\{([A-Z][a-z]?)\}|\\([sS])|\\.|\[\^?|\]", re.DOTALL)


@cache
def splitter(pattern: str) -> re.Pattern[str]:
    """Compile a pattern whose matches are the words.

    >>> splitter(GPT2_PATTERN).findall("it's  22 x_1")
    ['it', "'s", ' ', ' 22', ' x', '_', '1']
    """
    depth = 0
    parts: list[str] = []
    end = 0
    for match in ESCAPE.finditer(pattern):
        found = match.group()
        parts.append(pattern[end : match.start()])
        parts.append(_translate(match, in_class=depth > 0))
        depth += (found[0] == "[") - (found == "]")
        end = match.end()
    try:
        return re.compile("".join([*parts, pattern[end:]]))
    except re.error as error:
        raise FormatError(
            f"cannot compile the pre-tokenizer pattern {pattern!r:.80}: {error}"
        ) from None


def split_words(text: str, patterns: tuple[str, ...]) -> Iterable[str]:
    """Split by the first pattern, the words by the second one, and so on.

    Text between matches is a word, too, so that no text is lost.

    >>> list(split_words("ab12", (r"\\p{N}", GPT2_PATTERN)))
    ['ab', '1', '2']
    """
    words: Iterable[str] = (text,) if text else ()
    for pattern in patterns:
        words = _split_each(words, splitter(pattern))
    return words


def _split_each(words: Iterable[str], pattern: re.Pattern[str]) -> Iterator[str]:
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


def _translate(match: re.Match[str], in_class: bool) -> str:
    letter, space = match.group(1), match.group(2)
    if letter is None and space is None:
        return match.group()
    inside = _characters_of(letter) if letter else WHITE_SPACE
    if space == "S":
        return inside if in_class else f"[^{WHITE_SPACE}]"
    return inside if in_class else f"[{inside}]"


@cache
def _characters_of(category_name: str) -> str:
    """The characters of a category such as L or Lu, as ranges of a character class."""
    ranges: list[list[int]] = []
    for code in range(MAX_LETTER if category_name[0] in "LN" else MAX_MARK):
        if category(chr(code)).startswith(category_name):
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)
