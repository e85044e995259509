"""Classes of fast_dataclasses behave like dataclasses."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import weakref
from dataclasses import FrozenInstanceError, asdict, dataclass, fields, is_dataclass
from dataclasses import field as usual_field
from dataclasses import replace as usual_replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import pytest

from glassgrad.base.fast_dataclasses import field, frozen, mutable, replace, slotted, unique


@frozen
class Point:
    """A point."""

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
class Empty:
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
    seen: list[int] = usual_field(default_factory=list)


@unique
class Alone:
    KINDS: ClassVar[list[str]] = []

    x: int


@mutable
class Count:
    start: int
    name: str = field(default="me", repr=False)
    found: dict[int, int] = field(default_factory=dict)

    @cached_property
    def next(self) -> int:
        return self.start + 1


@slotted
class Small:
    x: int
    y: int = 1
    seen: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.y += self.x


@frozen
class Noted:
    x: int
    note: str = field(default="", compare=False)


def told(function: Any) -> str:
    with pytest.raises(TypeError) as caught:
        function()
    return str(caught.value).replace("Same", "Point")


def test_fields_are_passed_by_position_by_name_or_by_default() -> None:
    assert (Point(1, 2).x, Point(y=4, x=3).y, Point(5).y) == (1, 4, 0)
    assert Point(1).seen == [] and Point(1).seen is not Point(1).seen
    assert Point(1, seen=[2]).seen == [2]


def test_errors_equal_those_of_dataclasses() -> None:
    wrong: tuple[Any, Any] = (Point, Same)
    for arguments, names in (((), {}), ((1,), {"w": 2}), ((1, 2, [], 3), {})):
        one, other = [told(lambda c=c: c(*arguments, **names)) for c in wrong]  # noqa: B023
        assert one == other


def test_instances_with_equal_fields_are_equal() -> None:
    assert Point(1, 2) == Point(1, 2) != Point(1, 3)
    assert Point(1) != Deep(1)
    assert Empty() == Empty()
    assert hash(Named("a")) == hash(Named("a"))
    assert len({Named("a"), Named("a"), Named("b")}) == 2


def test_frozen_fields_cannot_be_set() -> None:
    point: Any = Point(1)
    with pytest.raises(FrozenInstanceError, match="'x'"):
        point.x = 2
    with pytest.raises(FrozenInstanceError, match="'y'"):
        del point.y
    with pytest.raises(FrozenInstanceError, match="'other'"):
        point.other = 2
    assert point.total == 1 == point.total


def test_the_repr_is_that_of_dataclasses_unless_overridden() -> None:
    assert repr(Point(1, 2)) == "Point(x=1, y=2, seen=[])"
    assert repr(Named("me")) == "me"


def test_fields_with_compare_false_are_not_compared() -> None:
    assert Noted(1, "a") == Noted(1, "b") != Noted(2, "a")
    assert hash(Noted(1, "a")) == hash(Noted(1, "b"))


def test_unique_instances_are_compared_by_identity() -> None:
    one: Any = Alone(1)
    assert one == one != Alone(1) and len({one, Alone(1)}) == 2
    assert one.KINDS is Alone.KINDS and Alone.__match_args__ == ("x",)
    with pytest.raises(FrozenInstanceError):
        one.x = 2


def test_mutable_fields_can_be_set() -> None:
    count = Count(1)
    count.start = 4
    count.found[1] = 2
    assert (count.start, count.next, Count(1).found) == (4, 5, {})
    assert repr(count) == "Count(start=4, found={1: 2})"
    assert count != replace(count)


def test_slotted_instances_have_only_their_fields() -> None:
    small: Any = Small(1, seen=[2])
    small.x = 3
    assert (small.x, small.y, small.seen, Small(1).seen) == (3, 2, [2], [])
    assert weakref.ref(small)() is small
    assert copy.deepcopy(small).seen == [2]
    assert not hasattr(small, "__dict__")
    with pytest.raises(AttributeError):
        small.other = 1


def test_a_first_sum_imports_no_slow_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLASSGRAD_CACHE", str(tmp_path))
    text = (
        "import sys; before = {*sys.modules}\n"
        "from glassgrad import Tensor; (Tensor([1.0]) + Tensor([2.0])).tolist()\n"
        "slow = {'dataclasses', 'inspect', 'pathlib', 'hashlib', 'linecache', 'numpy'}\n"
        "print(slow & ({*sys.modules} - before))"
    )
    for _ in ("empty cache", "filled cache"):
        made = subprocess.run([sys.executable, "-c", text], capture_output=True, check=True)
        assert made.stdout.strip() == b"set()"


def test_post_init_is_called() -> None:
    with pytest.raises(ValueError, match="needed"):
        Named("")


def test_functions_of_dataclasses_work_on_them() -> None:
    assert is_dataclass(Point)
    assert [found.name for found in fields(Deep)] == ["x", "y", "seen", "z"]
    assert replace(Point(1, 2), y=5) == usual_replace(Point(1, 2), y=5) == Point(1, 5)
    assert asdict(Deep(1)) == {"x": 1, "y": 0, "seen": [], "z": 7}
    assert [(f.name, f.default) for f in fields(Small)][1] == ("y", 1)
    match Point(3, 4):
        case Point(x, y):
            assert (x, y) == (3, 4)


def test_copies_and_pickles_are_equal() -> None:
    deep = Deep(1, 2, [3], 4)
    assert copy.deepcopy(deep) == deep == pickle.loads(pickle.dumps(deep))
