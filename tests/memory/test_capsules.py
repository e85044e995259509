"""Structures in capsules: taken, marked, dropped, and released exactly once."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import pytest

from glassgrad.memory import get
from glassgrad.memory.capsules import EXPORTED, ExportedStructure, allocate, make_capsule, sweep


class LentWords(ExportedStructure):
    """Two words: the first says that it is taken, the second that its consumer is done."""

    __slots__ = ()

    @property
    def words(self) -> Any:
        return (ctypes.c_int64 * 2).from_address(self.address)

    def is_taken(self, capsule: Any) -> bool:
        return bool(self.words[0])

    def is_done(self) -> bool:
        return bool(self.words[1])


def lent_words(view: Any) -> LentWords:
    lent = LentWords(allocate(16), view)
    lent.words[:] = (0, 0)
    return lent


def test_a_structure_in_use_is_kept_until_it_is_marked() -> None:
    view = get(bytearray(4))
    lent = lent_words(view)
    capsule = make_capsule(lent, b"words")
    lent.words[0] = 1
    del capsule
    sweep()
    assert lent.address in EXPORTED and not lent.is_released
    lent.words[1] = 1
    assert view.release()  # which looks for marks
    assert lent.address not in EXPORTED and lent.is_released


def test_an_unreachable_capsule_is_released() -> None:
    view = get(bytearray(4))
    lent = lent_words(view)
    capsule = make_capsule(lent, b"words")
    sweep()
    assert lent.address in EXPORTED
    del capsule
    assert view.release()
    assert lent.is_released


def test_a_structure_without_a_view_is_released() -> None:
    lent = lent_words(None)
    make_capsule(lent, b"words")
    sweep()
    assert lent.is_released


def test_a_released_view_is_not_exported() -> None:
    view = get(bytearray(4))
    view.release()
    lent = lent_words(view)
    with pytest.raises(ValueError, match="released"):
        make_capsule(lent, b"words")
    assert lent.is_released and lent.address not in EXPORTED


def test_concurrent_sweeps_release_once() -> None:
    view = get(bytearray(4))
    lents = [lent_words(view) for _ in range(500)]
    capsules = [make_capsule(lent, b"words") for lent in lents]
    for lent in lents:
        lent.words[1] = 1
    threads = [threading.Thread(target=sweep) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    capsules.clear()
    assert all(lent.is_released for lent in lents)
    assert view.release()
