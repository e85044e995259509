"""The error classes: their messages, and their builtin base classes."""

import pickle

import pytest

from glassgrad.base import errors
from glassgrad.base.errors import GlassgradError, ShapeError
from glassgrad.base.origin import Origin

CLASSES = [
    value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, GlassgradError) and value is not GlassgradError
]


def test_a_message_says_what_where_and_what_to_try():
    error = ShapeError(
        "cannot add (4, 3) and (4, 5): axis 1 is 3 on one side and 5 on the other",
        hint="axes must be equal, or one of them 1",
        origin=Origin("train.py", 17, "loss = (pred + bias).sum()"),
    )
    assert f"{type(error).__name__}: {error}" == (
        "ShapeError: cannot add (4, 3) and (4, 5): axis 1 is 3 on one side and 5 on the other\n"
        "  train.py:17   loss = (pred + bias).sum()\n"
        "  hint: axes must be equal, or one of them 1"
    )


def test_the_line_is_found_where_none_is_given():
    error = ShapeError("no")
    assert str(error).splitlines()[1].endswith('   error = ShapeError("no")')


@pytest.mark.parametrize("kind", CLASSES)
def test_every_error_is_also_a_builtin_one(kind):
    builtin = kind.__mro__[2]
    assert builtin.__module__ == "builtins"
    assert builtin not in (Exception, GlassgradError)
    with pytest.raises(builtin):
        raise kind("what")


@pytest.mark.parametrize("kind", CLASSES)
def test_every_error_can_be_pickled(kind):
    error = kind("what", "try this")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert str(copy) == str(error)


@pytest.mark.parametrize("kind", CLASSES)
def test_every_error_is_drawn_in_the_tree(kind):
    assert f"── {kind.__name__} " in errors.__doc__
