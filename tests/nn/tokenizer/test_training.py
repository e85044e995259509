from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from glassgrad.nn.tokenizer.training import MAX_WORD_BYTES, _merge_pair, learn_merges


def learn_naively(words: list[bytes], count: int) -> list[tuple[int, int]]:
    lists = [list(word) for word in words]
    merges: list[tuple[int, int]] = []
    while len(merges) < count:
        pairs = Counter(pair for word in lists for pair in pairwise(word))
        if not pairs or max(pairs.values()) < 2:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        lists = [_merge_pair(word, best, 256 + len(merges)) for word in lists]
        merges.append(best)
    return merges


@given(st.lists(st.text(alphabet="abc", max_size=12).map(str.encode), max_size=12))
def test_incremental_counts_equal_recounting_after_each_merge(words: list[bytes]) -> None:
    assert learn_merges(words, 12) == learn_naively(words, 12)


def test_progress_is_called_after_each_merge() -> None:
    calls: list[int] = []
    assert len(learn_merges([b"abcabc"], 2, lambda: calls.append(1))) == len(calls) == 2


def test_long_words_are_split() -> None:
    merges = learn_merges([b"ab" * 10 * MAX_WORD_BYTES], 9)
    assert merges[:2] == [(97, 98), (256, 256)]
