"""Every mistake with variables: class, message, line and hint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from glassgrad import Tensor, TinyJit, Variable, dtypes
from glassgrad.base.errors import AxisError, CaptureError, DTypeError, GlassgradError, ShapeError

Mistake = Callable[[Any, Tensor], object]
LOOK = "int(n) is its value now, but a captured function cannot read that"

MISTAKES: list[tuple[type[GlassgradError], str, str | None, Mistake]] = [
    # making and binding
    (ShapeError, "a variable needs a name, not 'a b'", None, lambda n, x: Variable("a b", 1, 2)),
    (
        ShapeError,
        "n goes from 3 to 3",
        "0 <= smallest < largest",
        lambda n, x: Variable("n", 3, 3),
    ),
    (ShapeError, "n is a whole number from 1 to 10, not 11", None, lambda n, x: n.bind(11)),
    (
        ShapeError,
        "(n+1) is an expression, not a variable",
        None,
        lambda n, x: (n + 1).bind(3),
    ),
    (
        ShapeError,
        "n has no value",
        'Variable("n", …).bind(value)',
        lambda n, x: int(Variable("n", 1, 10)),
    ),
    (
        ShapeError,
        "variable n is bound to 3 and to 5 in one expression",
        "a variable has one value at a time",
        lambda n, x: n + n.bind(5),
    ),
    # numbers
    (
        ShapeError,
        "n > 5 depends on the value of n, which is known only at launch (1 to 10)",
        LOOK + "; a comparison that the bounds decide has an answer",
        lambda n, x: n > 5,
    ),
    (
        ShapeError,
        "* of n and 0.5 has no whole number as result for every value of n, which is known only "
        "at launch",
        "Tensor(n) is a tensor to compute with; " + LOOK,
        lambda n, x: n * 0.5,
    ),
    (
        ShapeError,
        "cannot divide 7 by n, which is known only at launch",
        LOOK,
        lambda n, x: 7 // n,
    ),
    (
        ShapeError,
        "cannot pickle n, which is known only at launch",
        None,
        lambda n, x: n.__reduce__(),
    ),
    (
        DTypeError,
        "(n*100), which may be 1000, does not fit int8",
        "cast the tensor to a wider dtype first",
        lambda n, x: x.cast(dtypes.int8) + n * 100,
    ),
    # shapes
    (
        ShapeError,
        "whether ((n*-1)+5) or 0 is larger is known only at launch",
        "give the variables bounds that decide it",
        lambda n, x: x.pad((0, n - 5)),
    ),
    (
        ShapeError,
        "the number of repeats must be at least 0, and (n-2) may be -1",
        "declare the variable with a minimum of 0",
        lambda n, x: x.repeat_interleave(n - 2),
    ),
    (
        ShapeError,
        "windows cannot depend on n, which is known only at launch",
        LOOK,
        lambda n, x: x.unfold(0, n, 1),
    ),
    (
        ShapeError,
        "cannot add (n,) and (3,): axis 0 is n on one side and 3 on the other",
        "a size that is known only at launch equals only itself, or realize() it",
        lambda n, x: x[:n] + Tensor([1.0, 2.0, 3.0]),
    ),
    (
        AxisError,
        "cannot slice axis 0 by 0:n:2",
        "a slice that is known only at launch has no step",
        lambda n, x: x[0:n:2],
    ),
    (
        AxisError,
        "cannot slice axis 0 by a:n",
        "bounds of a slice are whole numbers",
        lambda n, x: x["a":n],
    ),
    (
        AxisError,
        "slice 3:11 is out of range for axis 0 of size 10",
        "it was written as n:(n+8), for an axis of size 10",
        lambda n, x: x[n : n + 8],
    ),
    (
        AxisError,
        "index 12 is out of range for axis 0 of size 10",
        "it was written as (n*4), for an axis of size 10",
        lambda n, x: x[n * 4],
    ),
    (
        DTypeError,
        "arange takes whole numbers beside a SymbolicInt, not (0.0, n, 1)",
        None,
        lambda n, x: Tensor.arange(0.0, n),
    ),
    (
        ShapeError,
        "how many numbers there are cannot depend on n, which is known only at launch",
        LOOK,
        lambda n, x: Tensor.arange(0, 10, n),
    ),
    (
        ShapeError,
        "arange with step 0 never ends",
        "use a step that is not 0",
        lambda n, x: Tensor.arange(0, n, 0),
    ),
]


@pytest.mark.parametrize(("kind", "message", "hint", "mistake"), MISTAKES)
def test_every_mistake_is_explained(
    kind: type[GlassgradError], message: str, hint: str | None, mistake: Mistake
) -> None:
    x = Tensor(np.arange(10, dtype=np.float32))
    with pytest.raises(kind) as caught:
        mistake(Variable("n", 1, 10).bind(3), x)
    error = caught.value
    assert (error.message, error.hint) == (message, hint)
    assert "test_variable_errors.py" in str(error)  # the line


CAPTURED: list[tuple[str, str, Mistake]] = [
    (
        "a captured function reads the value of n, but replays would not read it again",
        "compute with the variable itself, or pass the number as an argument",
        lambda n, x: x * int(n),
    ),
    (
        "a captured function cannot call sort of a tensor of shape (n,), which is known only at "
        "launch",
        "pad to the largest size, or call it outside of the captured function",
        lambda n, x: x[:n].sort()[0],
    ),
    (
        "a captured function cannot return n: replays would not change it",
        "return Tensor(n)",
        lambda n, x: (x * n, n),
    ),
]


@pytest.mark.parametrize(("message", "hint", "mistake"), CAPTURED)
def test_every_mistake_in_a_capture_is_explained(message: str, hint: str, mistake: Mistake) -> None:
    x, n = Tensor(np.arange(10, dtype=np.float32)).realize(), Variable("n", 1, 10)
    captured = TinyJit(lambda n: mistake(n, x))
    with pytest.raises(CaptureError) as caught:
        for value in (2, 3):
            captured(n.bind(value))
    assert (caught.value.message, caught.value.hint) == (message, hint)
