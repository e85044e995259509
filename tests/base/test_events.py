"""Events: listeners receive them while they are registered."""

import pytest

from glassgrad.base.events import LISTENERS, BufferAllocated, StageEntered, announce, listen

EVENT = StageEntered("schedule", None)


def test_a_listener_hears_events_only_while_it_listens():
    seen = []
    announce(EVENT)
    with listen(seen.append):
        announce(EVENT)
    announce(EVENT)
    assert seen == [EVENT]


def test_listeners_are_told_in_order_and_leave_in_any():
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


def test_a_listener_leaves_after_an_error():
    with pytest.raises(ValueError), listen(print):
        raise ValueError
    assert not LISTENERS


def test_a_listener_may_listen_twice():
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
