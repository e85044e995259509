"""Training of byte-pair encoding: words -> merges of the most frequent pairs of adjacent tokens.

Pairs are counted once; a merge then visits only the words that contain its pair.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush
from itertools import pairwise

Pair = tuple[int, int]
MAX_WORD_BYTES = 256  # longer words are split
BYTES = 256


def learn_merges(
    words: Iterable[bytes], count: int, progress: Callable[[], object] = lambda: None
) -> list[Pair]:
    """Learn up to `count` merges, in order; the first one makes token 256.

    >>> learn_merges([b"abab", b"abab"], 2)
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
    """Distinct words as lists of tokens, their counts, and the counts and words of each pair."""

    def __init__(self, words: Iterable[bytes]) -> None:
        counts = Counter(part for word in words for part in _parts(word))
        self.words = [list(word) for word in counts]
        self.word_counts = list(counts.values())
        self.pair_counts: dict[Pair, int] = defaultdict(int)
        self.words_with: dict[Pair, set[int]] = defaultdict(set)
        for index, word in enumerate(self.words):
            for pair in pairwise(word):
                self.pair_counts[pair] += self.word_counts[index]
                self.words_with[pair].add(index)
        self.queue = [(-count, pair) for pair, count in self.pair_counts.items()]
        heapify(self.queue)

    def most_frequent(self) -> Pair | None:
        """The most frequent pair, if it occurs at least twice; the lowest one of equals."""
        while self.queue:
            negative_count, pair = heappop(self.queue)
            current = self.pair_counts.get(pair, 0)
            if current == -negative_count:
                return pair if current > 1 else None
            if current > 1:  # the entry is outdated: other merges used up some of the pairs
                heappush(self.queue, (-current, pair))
        return None

    def merge(self, pair: Pair, token: int) -> None:
        """… a b …  ->  … ab …  in every word"""
        changes: dict[Pair, int] = defaultdict(int)
        for index in self.words_with.pop(pair):
            word, word_count = self.words[index], self.word_counts[index]
            merged = _merge_pair(word, pair, token)
            before, after = Counter(pairwise(word)), Counter(pairwise(merged))
            for old, count in before.items():
                changes[old] -= count * word_count
                if old not in after and old != pair:
                    self.words_with[old].discard(index)
            for new, count in after.items():
                changes[new] += count * word_count
                self.words_with[new].add(index)
            self.words[index] = merged
        for other, change in changes.items():
            self.pair_counts[other] += change
            if change > 0:
                heappush(self.queue, (-self.pair_counts[other], other))
        del self.pair_counts[pair]


def _merge_pair(word: list[int], pair: Pair, token: int) -> list[int]:
    left, right = pair
    merged: list[int] = []
    index, last = 0, len(word) - 1
    while index <= last:
        if index < last and word[index] == left and word[index + 1] == right:
            merged.append(token)
            index += 2
        else:
            merged.append(word[index])
            index += 1
    return merged


def _parts(word: bytes) -> Iterator[bytes]:
    return (word[start : start + MAX_WORD_BYTES] for start in range(0, len(word), MAX_WORD_BYTES))
