"""Events: listeners receive them while they are registered."""

import pytest

from glassgrad.base.events import LISTENERS, BufferAllocated, StageEntered, announce, listen

EVENT = StageEntered("schedule", None)


def test_a_listener_is_called_only_inside_its_context():
    seen = []
    announce(EVENT)
    with listen(seen.append):
        announce(EVENT)
    announce(EVENT)
    assert seen == [EVENT]


def test_listeners_are_called_in_order_and_removed_in_any_order():
    seen = []
    first = listen(lambda event: seen.append("first"))
    second = listen(lambda event: seen.append("second"))
    first.__enter__()
    second.__enter__()
    announce(EVENT)
    first.__exit__(None, None, None)
    announce(EVENT)
    second.__exit__(None, None, None)
    assert seen == ["first", "second", "second"]
    assert not LISTENERS


def test_a_listener_is_removed_after_an_error():
    with pytest.raises(ValueError), listen(print):
        raise ValueError
    assert not LISTENERS


def test_a_listener_can_be_registered_twice():
    seen = []
    add = seen.append
    with listen(add):
        with listen(add):
            announce(EVENT)
        announce(EVENT)
    assert len(seen) == 3


def test_events_are_frozen_values():
    assert BufferAllocated("CPU", 4) == BufferAllocated("CPU", 4)
    with pytest.raises(AttributeError):
        EVENT.stage = "other"
