from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from glassgrad.nn.tokenizer.training import LONGEST_WORD, _joined, learned_merges


def naive(words: list[bytes], count: int) -> list[tuple[int, int]]:
    lists = [list(word) for word in words]
    merges: list[tuple[int, int]] = []
    while len(merges) < count:
        pairs = Counter(pair for word in lists for pair in pairwise(word))
        if not pairs or max(pairs.values()) < 2:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        lists = [_joined(word, best, 256 + len(merges)) for word in lists]
        merges.append(best)
    return merges


@given(st.lists(st.text(alphabet="abc", max_size=12).map(str.encode), max_size=12))
def test_counting_again_after_each_merge_gives_the_same(words: list[bytes]) -> None:
    assert learned_merges(words, 12) == naive(words, 12)


def test_progress_is_told_of_each_merge() -> None:
    told: list[int] = []
    assert len(learned_merges([b"abcabc"], 2, lambda: told.append(1))) == len(told) == 2


def test_words_of_any_length_are_learned_from() -> None:
    merges = learned_merges([b"ab" * 10 * LONGEST_WORD], 9)
    assert merges[:2] == [(97, 98), (256, 256)]
