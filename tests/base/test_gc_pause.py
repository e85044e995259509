"""The garbage collector is off while a graph is compiled, and restored afterwards."""

import gc
import weakref

import pytest

from glassgrad.base.gc_pause import MIN_OBJECTS_TO_FREEZE, gc_paused


def test_the_collector_is_off_inside_and_on_afterwards() -> None:
    assert gc.isenabled()
    with gc_paused():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with gc_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_an_error_turns_it_on_again() -> None:
    with pytest.raises(KeyError), gc_paused():
        raise KeyError
    assert gc.isenabled()


def test_many_new_objects_move_to_the_oldest_generation() -> None:
    with gc_paused():
        kept = [[number] for number in range(2 * MIN_OBJECTS_TO_FREEZE)]
    young = gc.get_objects(0)
    assert not any(one is kept[0] or one is kept[-1] for one in young)


def test_few_new_objects_stay_in_the_young_generation() -> None:
    class Cycle:
        def __init__(self) -> None:
            self.me = self

    with gc_paused():
        gone = weakref.ref(Cycle())
    gc.collect(0)
    assert gone() is None


def test_frozen_objects_stay_frozen() -> None:
    gc.freeze()
    try:
        with gc_paused():
            kept = [[number] for number in range(2 * MIN_OBJECTS_TO_FREEZE)]
        assert gc.get_freeze_count() > 0
        assert len(kept) == 2 * MIN_OBJECTS_TO_FREEZE
    finally:
        gc.unfreeze()
