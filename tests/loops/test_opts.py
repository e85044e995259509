"""Moves are data."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from glassgrad.loops.opts import IllegalMove, Opt, OptOps


def test_a_move_prints_as_it_is_written() -> None:
    assert repr(Opt(OptOps.UPCAST, 0, 4)) == "Opt(OptOps.UPCAST, 0, 4)"
    assert repr(Opt(OptOps.CORE, 1)) == "Opt(OptOps.CORE, 1, None)"


def test_equal_moves_are_equal_and_hash_alike() -> None:
    assert Opt(OptOps.TILE, 1, 8) == Opt(OptOps.TILE, 1, 8)
    assert len({Opt(OptOps.TILE, 1, 8), Opt(OptOps.TILE, 1, 8), Opt(OptOps.TILE, 2, 8)}) == 2


def test_a_move_is_never_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Opt(OptOps.TILE, 1, 8).axis = 2


def test_every_move_is_documented() -> None:
    assert all(len(op.value) > 10 for op in OptOps)
    assert len({op.value for op in OptOps}) == len(OptOps)


def test_an_illegal_move_is_a_value_error() -> None:
    assert issubclass(IllegalMove, ValueError)
