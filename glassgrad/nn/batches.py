"""Number of samples -> the sample indices of each batch of an epoch, shuffled by seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

POOL_BATCHES = 50  # batches per pool: within a pool, samples are sorted by length


def batch_indices(
    count: int,
    batch_size: int,
    seed: tuple[int, int] | None = None,
    drop_last: bool = False,
    lengths: Sequence[int] | None = None,
) -> list[Any]:
    """The sample indices of every batch; `seed` is (seed, epoch), or None to keep the order.

    With lengths, batches contain samples of similar length: samples are shuffled, sorted by length
    within pools of POOL_BATCHES batches, and the batches are shuffled.

    >>> [batch.tolist() for batch in batch_indices(5, 2)]
    [[0, 1], [2, 3], [4]]
    """
    import numpy as np

    random = None if seed is None else np.random.default_rng(seed)
    order = np.arange(count) if random is None else random.permutation(count)
    if lengths is not None:
        sizes = np.asarray(lengths)
        pools = np.split(order, range(POOL_BATCHES * batch_size, count, POOL_BATCHES * batch_size))
        sorted_pools = [pool[np.argsort(sizes[pool], kind="stable")] for pool in pools]
        order = np.concatenate(sorted_pools) if count else order
    batches = [order[i : i + batch_size] for i in range(0, count, batch_size)]
    if drop_last and batches and len(batches[-1]) < batch_size:
        batches.pop()
    if lengths is not None and random is not None:
        batches = [batches[i] for i in random.permutation(len(batches))]
    return batches
