"""Tokenizer: byte-pair encoding of text or any bytes, without loss."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from os import PathLike
from pathlib import Path
from typing import Protocol
from unicodedata import normalize

from glassgrad.base.errors import FormatError
from glassgrad.nn.tokenizer.pre_tokenizer import GPT2_PATTERN, split_words, splitter
from glassgrad.nn.tokenizer.rules import Rules
from glassgrad.nn.tokenizer.training import BYTES, Pair, learn_merges
from glassgrad.nn.tokenizer.vocabulary import Vocabulary, read_vocabulary, write_vocabulary

END_OF_TEXT = "<|endoftext|>"
GPT2_RULES = Rules()
MAX_CACHED_WORDS = 1 << 17


class Coder(Protocol):
    """A tokenizer, as generation uses it."""

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: Sequence[int]) -> str: ...


class Tokenizer:
    """Byte-pair encoding: a token is a byte, or two tokens that are often adjacent.

    >>> tokenizer = Tokenizer.train(["low lower lowest"] * 2, vocab_size=260)
    >>> tokenizer.decode(tokenizer.encode("lowly ☃"))
    'lowly ☃'
    """

    def __init__(
        self,
        tokens: Sequence[bytes],
        merges: Sequence[Pair],
        specials: Mapping[str, int] | None = None,
        rules: Rules = GPT2_RULES,
    ) -> None:
        self.tokens = list(tokens)
        self.ids = {token: number for number, token in enumerate(self.tokens)}
        self.specials = dict(specials or {})
        self.rules = rules
        self.merges: dict[Pair, tuple[int, int]] = {}  # pair -> (rank, token)
        for rank, pair in enumerate(merges):
            merged = self.tokens[pair[0]] + self.tokens[pair[1]]
            if merged not in self.ids:
                raise FormatError(f"a merge makes {merged!r:.40}, which is not in the vocabulary")
            self.merges.setdefault(pair, (rank, self.ids[merged]))
        missing = [byte for byte in range(BYTES) if bytes([byte]) not in self.ids]
        if missing:
            raise FormatError(f"{len(missing)} of the 256 bytes are not in the vocabulary")
        self._byte_tokens = [self.ids[bytes([byte])] for byte in range(BYTES)]
        self._cache: dict[str, list[int]] = {}  # word -> tokens
        self._special_pattern = _pattern_of(self.specials)
        self._non_special_pattern = _pattern_of(
            name for name in self.specials if name in rules.non_special
        )

    @property
    def vocab_size(self) -> int:
        """One more than the largest token id."""
        return max(len(self.tokens), *(number + 1 for number in self.specials.values()), 0)

    # ------------------------------------------------------------------ construction

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        vocab_size: int = 1024,
        specials: Sequence[str] = (END_OF_TEXT,),
        progress: Callable[[], object] = lambda: None,
    ) -> Tokenizer:
        """Learn merges from texts; `progress` is called after each merge."""
        merge_count = vocab_size - BYTES - len(specials)
        if merge_count < 0:
            raise FormatError(
                f"vocab_size must be at least {BYTES + len(specials)}, not {vocab_size}"
            )
        split = splitter(GPT2_PATTERN).findall
        words = (_as_bytes(word) for text in texts for word in split(text))
        merges = learn_merges(words, merge_count, progress)
        tokens = [bytes([byte]) for byte in range(BYTES)]
        for left, right in merges:
            tokens.append(tokens[left] + tokens[right])
        return cls(tokens, merges, {name: len(tokens) + i for i, name in enumerate(specials)})

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Tokenizer:
        """Read a tokenizer.json, or a folder that has one or a vocab.json and a merges.txt."""
        return cls(*read_vocabulary(Path(path)))

    def save(self, path: str | PathLike[str]) -> None:
        """Write a tokenizer.json, which other libraries read, too."""
        merges = list(self.merges)
        write_vocabulary(Path(path), Vocabulary(self.tokens, merges, self.specials, self.rules))

    # ------------------------------------------------------------------ use

    def encode(
        self, text: str | bytes, allow_special: bool = False, add_special: bool = True
    ) -> list[int]:
        """The tokens of a text, or of any bytes.

        `allow_special` makes "<|endoftext|>" in the text one token. Some tokenizers add special
        tokens to every text, as Llama 3's does at the start; `add_special=False` omits them.
        """
        if isinstance(text, bytes):
            text = text.decode("utf-8", "surrogateescape")
        tokens: list[int] = list(self.rules.prefix_tokens) if add_special else []
        end = 0
        pattern = self._special_pattern if allow_special else self._non_special_pattern
        for match in pattern.finditer(text) if pattern is not None else ():
            tokens.extend(self._encode_plain(text[end : match.start()]))
            tokens.append(self.specials[match.group()])
            end = match.end()
        tokens.extend(self._encode_plain(text[end:]))
        return [*tokens, *self.rules.suffix_tokens] if add_special else tokens

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """The bytes of tokens."""
        names = {number: name.encode() for name, number in self.specials.items()}
        size = len(self.tokens)
        parts = []
        for number in ids:
            token = names.get(number)
            if token is None:
                if not 0 <= number < size:
                    raise FormatError(
                        f"token {number} is not in the vocabulary of size {self.vocab_size}"
                    )
                token = self.tokens[number]
            parts.append(token)
        return b"".join(parts)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of tokens; bytes that are not valid UTF-8 become �."""
        return self.decode_bytes(ids).decode("utf-8", "replace")

    def _encode_plain(self, text: str) -> Iterator[int]:
        cache, rules = self._cache, self.rules
        if rules.normal_form:
            text = normalize(rules.normal_form, text)  # type: ignore[arg-type]
        if rules.has_prefix_space and text and not text.startswith(" "):
            text = f" {text}"
        for word in split_words(text, rules.patterns):
            tokens = cache.get(word)
            if tokens is None:
                tokens = self._encode_word(_as_bytes(word))
                if len(cache) < MAX_CACHED_WORDS:
                    cache[word] = tokens
            yield from tokens

    def _encode_word(self, word: bytes) -> list[int]:
        token = self.ids.get(word) if self.rules.ignore_merges else None
        return self._merge(word) if token is None else [token]

    def _merge(self, word: bytes) -> list[int]:
        """The tokens of one word: merges are applied in the order of their ranks, leftmost first.

        Tokens are a doubly linked list by index; queue entries whose pair is gone are skipped.
        """
        tokens = [self._byte_tokens[byte] for byte in word]
        following = list(range(1, len(tokens) + 1))
        preceding = list(range(-1, len(tokens) - 1))
        merges, end = self.merges, len(tokens)
        queue = []
        for index in range(end - 1):
            found = merges.get((tokens[index], tokens[index + 1]))
            if found is not None:
                queue.append((found[0], index, found[1], tokens[index], tokens[index + 1]))
        heapify(queue)
        while queue:
            _, index, token, left, right = heappop(queue)
            neighbour = following[index]
            if tokens[index] != left or neighbour == end or tokens[neighbour] != right:
                continue
            tokens[index], tokens[neighbour] = token, -1
            following[index] = following[neighbour]
            if following[index] != end:
                preceding[following[index]] = index
            for first in (preceding[index], index):
                second = following[first] if first >= 0 else end
                if second != end and (found := merges.get((tokens[first], tokens[second]))):
                    heappush(queue, (found[0], first, found[1], tokens[first], tokens[second]))
        return [token for token in tokens if token >= 0]


def _pattern_of(names: Iterable[str]) -> re.Pattern[str] | None:
    """A pattern that matches the longest of these names."""
    longest_first = sorted(names, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first))) if longest_first else None


def _as_bytes(word: str) -> bytes:
    try:
        return word.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise FormatError(
            f"{word!r:.40} has half of a surrogate pair", hint="pass bytes to encode any data"
        ) from None
