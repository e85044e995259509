"""Which samples make up a batch."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from glassgrad.nn.batches import batch_indices

SEEDS = st.none() | st.tuples(st.integers(0, 9), st.integers(0, 9))


@given(st.integers(0, 300), st.integers(1, 40), SEEDS, st.booleans())
def test_every_sample_is_in_one_batch(
    count: int, size: int, seed: tuple[int, int] | None, is_sorted: bool
) -> None:
    lengths = list(range(count)) if is_sorted else None
    batches = batch_indices(count, size, seed, lengths=lengths)
    assert sorted(i for batch in batches for i in batch) == list(range(count))
    assert sorted(map(len, batches))[1:] == [size] * max(len(batches) - 1, 0)
    whole = batch_indices(count, size, seed, drop_last=True, lengths=lengths)
    assert [len(batch) for batch in whole] == [size] * (count // size)


def test_every_epoch_and_seed_has_its_own_order() -> None:
    orders = {
        (seed, epoch): tuple(np.concatenate(batch_indices(50, 8, (seed, epoch))))
        for seed in (0, 1)
        for epoch in (0, 1)
    }
    assert len(set(orders.values())) == 4
    assert tuple(np.concatenate(batch_indices(50, 8, (0, 1)))) == orders[0, 1]
    assert np.concatenate(batch_indices(50, 8)).tolist() == list(range(50))


def test_samples_of_similar_length_share_batches() -> None:
    lengths = np.random.default_rng(0).integers(1, 1000, 2000)
    batches = batch_indices(2000, 10, (0, 0), lengths=lengths.tolist())
    spread = np.mean([np.ptp(lengths[batch]) for batch in batches])
    apart = np.mean([np.ptp(lengths[batch]) for batch in batch_indices(2000, 10, (0, 0))])
    assert spread < apart / 20
    firsts = [lengths[batch[0]] for batch in batches]
    assert firsts != sorted(firsts)
