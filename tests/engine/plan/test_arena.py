"""Arenas: overlapping lifetimes never share bytes, others do."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from support.compiler.lifetimes import peak_by_lifetime

from glassgrad.engine.plan.arena import ALIGNMENT, Lifetime, assign_offsets

LIVES = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 6), st.integers(1, 5000)).map(
        lambda t: Lifetime(t[0], t[0] + t[1], t[2])
    ),
    max_size=25,
)


def overlap(one: Lifetime, two: Lifetime) -> bool:
    return one.first <= two.last and two.first <= one.last


@given(LIVES)
def test_overlapping_lifetimes_never_share_bytes(lifetimes: list[Lifetime]) -> None:
    offsets, size = assign_offsets(dict(enumerate(lifetimes)))
    for i, one in enumerate(lifetimes):
        assert offsets[i] % ALIGNMENT == 0
        assert offsets[i] + one.nbytes <= size
        for j, two in enumerate(lifetimes[:i]):
            if overlap(one, two):
                assert (
                    offsets[i] >= offsets[j] + two.nbytes or offsets[j] >= offsets[i] + one.nbytes
                )


@given(LIVES)
def test_an_arena_is_never_smaller_than_the_live_bytes(lifetimes: list[Lifetime]) -> None:
    named = dict(enumerate(lifetimes))
    _, size = assign_offsets(named)
    assert size >= peak_by_lifetime(named)
    assert size <= sum(lifetime.nbytes + ALIGNMENT for lifetime in lifetimes)


def test_disjoint_lifetimes_share_bytes() -> None:
    lifetimes = {n: Lifetime(2 * n, 2 * n + 1, 4096) for n in range(10)}
    offsets, size = assign_offsets(lifetimes)
    assert set(offsets.values()) == {0}
    assert size == 4096


def test_no_temporaries_need_no_arena() -> None:
    assert assign_offsets({}) == ({}, 0)
    assert peak_by_lifetime({}) == 0
