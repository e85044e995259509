"""Records that do not change are what dataclasses would be."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import Any

import pytest

from glassgrad.base.frozen import frozen


@frozen
class Point:
    """A place."""

    x: int
    y: int = 0
    seen: list[int] = field(default_factory=list)

    @cached_property
    def total(self) -> int:
        return self.x + self.y


@frozen
class Deep(Point):
    z: int = 7


@frozen
class Nothing:
    pass


@frozen
class Named:
    name: str

    def __repr__(self) -> str:
        return self.name

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("a name is needed")


@dataclass(frozen=True)
class Same:
    x: int
    y: int = 0
    seen: list[int] = field(default_factory=list)


def told(function: Any) -> str:
    with pytest.raises(TypeError) as caught:
        function()
    return str(caught.value).replace("Same", "Point")


def test_values_are_given_by_place_by_name_or_not_at_all() -> None:
    assert (Point(1, 2).x, Point(y=4, x=3).y, Point(5).y) == (1, 4, 0)
    assert Point(1).seen == [] and Point(1).seen is not Point(1).seen
    assert Point(1, seen=[2]).seen == [2]


def test_mistakes_are_told_as_dataclasses_tell_them() -> None:
    wrong: tuple[Any, Any] = (Point, Same)
    for arguments, names in (((), {}), ((1,), {"w": 2}), ((1, 2, [], 3), {})):
        one, other = [told(lambda c=c: c(*arguments, **names)) for c in wrong]  # noqa: B023
        assert one == other


def test_equal_fields_make_equal_records_of_one_class() -> None:
    assert Point(1, 2) == Point(1, 2) != Point(1, 3)
    assert Point(1) != Deep(1)
    assert Nothing() == Nothing()
    assert hash(Named("a")) == hash(Named("a"))
    assert len({Named("a"), Named("a"), Named("b")}) == 2


def test_nothing_can_be_changed() -> None:
    point: Any = Point(1)
    with pytest.raises(FrozenInstanceError, match="'x'"):
        point.x = 2
    with pytest.raises(FrozenInstanceError, match="'y'"):
        del point.y
    with pytest.raises(FrozenInstanceError, match="'other'"):
        point.other = 2
    assert point.total == 1 == point.total


def test_they_are_shown_as_they_are_made_unless_they_know_better() -> None:
    assert repr(Point(1, 2)) == "Point(x=1, y=2, seen=[])"
    assert repr(Named("me")) == "me"


def test_what_must_hold_is_checked_when_one_is_made() -> None:
    with pytest.raises(ValueError, match="needed"):
        Named("")


def test_who_knows_dataclasses_knows_them() -> None:
    assert is_dataclass(Point)
    assert [found.name for found in fields(Deep)] == ["x", "y", "seen", "z"]
    assert replace(Point(1, 2), y=5) == Point(1, 5)
    match Point(3, 4):
        case Point(x, y):
            assert (x, y) == (3, 4)


def test_copies_and_pickles_are_equal() -> None:
    deep = Deep(1, 2, [3], 4)
    assert copy.deepcopy(deep) == deep == pickle.loads(pickle.dumps(deep))
