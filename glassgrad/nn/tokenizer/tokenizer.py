"""Tokenizer: any bytes -> numbers of tokens, and back to the very same bytes."""

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
from glassgrad.nn.tokenizer.training import BYTES, Pair, learned_merges
from glassgrad.nn.tokenizer.vocabulary import Tables, read_tables, write_tables

END_OF_TEXT = "<|endoftext|>"
USUAL = Rules()  # GPT-2's
MOST_REMEMBERED = 1 << 17  # words whose tokens are kept


class Coder(Protocol):
    """What a model needs to read and to write text."""

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: Sequence[int]) -> str: ...


class Tokenizer:
    """Byte pairs: a token is a byte, or two tokens that often stand side by side.

    >>> tokenizer = Tokenizer.train(["low lower lowest"] * 2, vocab_size=260)
    >>> tokenizer.decode(tokenizer.encode("lowly ☃"))
    'lowly ☃'
    """

    def __init__(
        self,
        tokens: Sequence[bytes],
        merges: Sequence[Pair],
        specials: Mapping[str, int] | None = None,
        rules: Rules = USUAL,
    ) -> None:
        self.tokens = list(tokens)
        self.numbers = {token: number for number, token in enumerate(self.tokens)}
        self.specials = dict(specials or {})
        self.rules = rules
        self.merges: dict[Pair, tuple[int, int]] = {}  # pair -> (rank, token)
        for rank, pair in enumerate(merges):
            whole = self.tokens[pair[0]] + self.tokens[pair[1]]
            if whole not in self.numbers:
                raise FormatError(f"a merge makes {whole!r:.40}, which is no token")
            self.merges.setdefault(pair, (rank, self.numbers[whole]))
        missing = [byte for byte in range(BYTES) if bytes([byte]) not in self.numbers]
        if missing:
            raise FormatError(f"a vocabulary of bytes lacks {len(missing)} of the 256 bytes")
        self._byte_tokens = [self.numbers[bytes([byte])] for byte in range(BYTES)]
        self._known: dict[str, list[int]] = {}
        self._added = _finder(self.specials)
        self._always = _finder(name for name in self.specials if name in rules.always)

    @property
    def vocab_size(self) -> int:
        """One more than the largest number of a token."""
        return max(len(self.tokens), *(number + 1 for number in self.specials.values()), 0)

    # ------------------------------------------------------------------ making one

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        vocab_size: int = 1024,
        specials: Sequence[str] = (END_OF_TEXT,),
        progress: Callable[[], object] = lambda: None,
    ) -> Tokenizer:
        """Learn the pairs of these texts; `progress` is called after each."""
        room = vocab_size - BYTES - len(specials)
        if room < 0:
            raise FormatError(f"a vocabulary has at least {BYTES + len(specials)} tokens")
        split = splitter(GPT2_PATTERN).findall
        words = (_as_bytes(word) for text in texts for word in split(text))
        merges = learned_merges(words, room, progress)
        tokens = [bytes([byte]) for byte in range(BYTES)]
        for left, right in merges:
            tokens.append(tokens[left] + tokens[right])
        return cls(tokens, merges, {name: len(tokens) + i for i, name in enumerate(specials)})

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Tokenizer:
        """From a tokenizer.json, or a folder with one or with a vocab.json and a merges.txt."""
        return cls(*read_tables(Path(path)))

    def save(self, path: str | PathLike[str]) -> None:
        """As a tokenizer.json, which other libraries read, too."""
        merges = list(self.merges)
        write_tables(Path(path), Tables(self.tokens, merges, self.specials, self.rules))

    # ------------------------------------------------------------------ using it

    def encode(
        self, text: str | bytes, allow_special: bool = False, add_special: bool = True
    ) -> list[int]:
        """The tokens of a text or of any bytes; `allow_special` reads "<|endoftext|>" as one.

        Some tokenizers frame every text, as Llama 3's begins it with a token of its own;
        `add_special=False` leaves that out.
        """
        if isinstance(text, bytes):
            text = text.decode("utf-8", "surrogateescape")
        found: list[int] = list(self.rules.first) if add_special else []
        end = 0
        finder = self._added if allow_special else self._always
        for match in finder.finditer(text) if finder is not None else ():
            found.extend(self._plain(text[end : match.start()]))
            found.append(self.specials[match.group()])
            end = match.end()
        found.extend(self._plain(text[end:]))
        return [*found, *self.rules.last] if add_special else found

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """The bytes that tokens stand for."""
        names = {number: name.encode() for name, number in self.specials.items()}
        size = len(self.tokens)
        parts = []
        for number in ids:
            token = names.get(number)
            if token is None:
                if not 0 <= number < size:
                    raise FormatError(f"there is no token {number} among {self.vocab_size}")
                token = self.tokens[number]
            parts.append(token)
        return b"".join(parts)

    def decode(self, ids: Iterable[int]) -> str:
        """The text that tokens stand for; bytes that are no text become �."""
        return self.decode_bytes(ids).decode("utf-8", "replace")

    def _plain(self, text: str) -> Iterator[int]:
        known, rules = self._known, self.rules
        if rules.normal_form:
            text = normalize(rules.normal_form, text)  # type: ignore[arg-type]
        if rules.has_prefix_space and text and not text.startswith(" "):
            text = f" {text}"
        for word in split_words(text, rules.patterns):
            tokens = known.get(word)
            if tokens is None:
                tokens = self._tokens_of(_as_bytes(word))
                if len(known) < MOST_REMEMBERED:
                    known[word] = tokens
            yield from tokens

    def _tokens_of(self, word: bytes) -> list[int]:
        whole = self.numbers.get(word) if self.rules.takes_whole_words else None
        return self._merged(word) if whole is None else [whole]

    def _merged(self, word: bytes) -> list[int]:
        """The tokens of one word: the merge that was learned first is made first, leftmost first.

        Tokens are a list linked by `after`; a pair that is no longer there is skipped.
        """
        tokens = [self._byte_tokens[byte] for byte in word]
        after = list(range(1, len(tokens) + 1))
        before = list(range(-1, len(tokens) - 1))
        merges, end = self.merges, len(tokens)
        queue = []
        for place in range(end - 1):
            found = merges.get((tokens[place], tokens[place + 1]))
            if found is not None:
                queue.append((found[0], place, found[1], tokens[place], tokens[place + 1]))
        heapify(queue)
        while queue:
            _, place, token, left, right = heappop(queue)
            other = after[place]
            if tokens[place] != left or other == end or tokens[other] != right:
                continue
            tokens[place], tokens[other] = token, -1
            after[place] = after[other]
            if after[place] != end:
                before[after[place]] = place
            for first in (before[place], place):
                second = after[first] if first >= 0 else end
                if second != end and (found := merges.get((tokens[first], tokens[second]))):
                    heappush(queue, (found[0], first, found[1], tokens[first], tokens[second]))
        return [token for token in tokens if token >= 0]


def _finder(names: Iterable[str]) -> re.Pattern[str] | None:
    """Finds the longest of these names at a place."""
    longest_first = sorted(names, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first))) if longest_first else None


def _as_bytes(word: str) -> bytes:
    try:
        return word.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise FormatError(
            f"{word!r:.40} holds half of a character", hint="pass bytes to encode anything"
        ) from None
