"""words -> merges: the pair of neighbours that is met most often becomes one token, repeatedly.

Words are counted once; a merge touches only the words that hold its pair.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush
from itertools import pairwise

Pair = tuple[int, int]
LONGEST_WORD = 256  # bytes; what is longer is learned from in parts
BYTES = 256


def learned_merges(
    words: Iterable[bytes], count: int, progress: Callable[[], object] = lambda: None
) -> list[Pair]:
    """Up to so many pairs, in the order in which they are merged; the first makes token 256.

    >>> learned_merges([b"abab", b"abab"], 2)
    [(97, 98), (256, 256)]
    """
    corpus = Corpus(words)
    merges: list[Pair] = []
    while len(merges) < count and (pair := corpus.most_frequent()) is not None:
        corpus.merge(pair, BYTES + len(merges))
        merges.append(pair)
        progress()
    return merges


class Corpus:
    """Distinct words as lists of tokens, how often each occurs, and where each pair is met."""

    def __init__(self, words: Iterable[bytes]) -> None:
        counts = Counter(part for word in words for part in _parts(word))
        self.words = [list(word) for word in counts]
        self.times = list(counts.values())
        self.pairs: dict[Pair, int] = defaultdict(int)
        self.places: dict[Pair, set[int]] = defaultdict(set)
        for number, word in enumerate(self.words):
            for pair in pairwise(word):
                self.pairs[pair] += self.times[number]
                self.places[pair].add(number)
        self.queue = [(-times, pair) for pair, times in self.pairs.items()]
        heapify(self.queue)

    def most_frequent(self) -> Pair | None:
        """The pair that occurs most often and at least twice; of equals the lowest."""
        while self.queue:
            times, pair = heappop(self.queue)
            current = self.pairs.get(pair, 0)
            if current == -times:
                return pair if current > 1 else None
            if current > 1:  # it became rarer since it was put into the queue
                heappush(self.queue, (-current, pair))
        return None

    def merge(self, pair: Pair, token: int) -> None:
        """… a b …  ->  … ab …  in every word"""
        changed: dict[Pair, int] = defaultdict(int)
        for number in self.places.pop(pair):
            word, times = self.words[number], self.times[number]
            joined = _joined(word, pair, token)
            before, after = Counter(pairwise(word)), Counter(pairwise(joined))
            for old, met in before.items():
                changed[old] -= met * times
                if old not in after and old != pair:
                    self.places[old].discard(number)
            for new, met in after.items():
                changed[new] += met * times
                self.places[new].add(number)
            self.words[number] = joined
        for other, difference in changed.items():
            self.pairs[other] += difference
            if difference > 0:
                heappush(self.queue, (-self.pairs[other], other))
        del self.pairs[pair]


def _joined(word: list[int], pair: Pair, token: int) -> list[int]:
    left, right = pair
    made: list[int] = []
    place, last = 0, len(word) - 1
    while place <= last:
        if place < last and word[place] == left and word[place + 1] == right:
            made.append(token)
            place += 2
        else:
            made.append(word[place])
            place += 1
    return made


def _parts(word: bytes) -> Iterator[bytes]:
    return (word[start : start + LONGEST_WORD] for start in range(0, len(word), LONGEST_WORD))
