"""The garbage collector rests while a graph becomes code, and is as it was afterwards."""

import gc

import pytest

from glassgrad.engine.collector import collector_paused


def test_the_collector_is_off_inside_and_on_again_behind() -> None:
    assert gc.isenabled()
    with collector_paused():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_an_error_turns_it_on_again() -> None:
    with pytest.raises(KeyError), collector_paused():
        raise KeyError
    assert gc.isenabled()
