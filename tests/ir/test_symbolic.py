"""SymbolicInts: Python arithmetic with sizes that are only known at launch."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassgrad import Tensor, Variable
from glassgrad.base.errors import ShapeError
from glassgrad.ir.size import Size
from glassgrad.ir.symbolic import SymbolicInt, internal, shown

LETTERS = "abcdefghijk"
n, m = Variable("n", 1, 10).bind(3), Variable("m", 0, 4).bind(2)


def test_a_symbolic_size_is_no_int_and_is_shown_in_shapes() -> None:
    assert not isinstance(n, int) and type(n) is SymbolicInt
    x = Tensor.ones(10, 2)[:n]
    assert type(x.shape[0]) is SymbolicInt and x.shape == (n, 2) and x.size(0) == n
    assert type(x.numel()) is SymbolicInt and x.numel() == 2 * n and x.nbytes() == 8 * n
    assert (x.ndim, x.max_shape, x.max_numel()) == (2, (10, 2), 20)


WHOLE: dict[str, Any] = {
    "n + 1": lambda n: n + 1, "1 + n": lambda n: 1 + n, "2 - n": lambda n: 2 - n,
    "n - 2": lambda n: n - 2, "n * 3": lambda n: n * 3, "3 * n": lambda n: 3 * n,
    "-n": lambda n: -n, "+n": lambda n: +n, "abs": abs, "n // 2": lambda n: n // 2,
    "n % 2": lambda n: n % 2,
    "n // -2": lambda n: n // -2, "n % -4": lambda n: n % -4, "divmod 0": lambda n: divmod(n, 2)[0],
    "divmod 1": lambda n: divmod(n, 2)[1], "n ** 2": lambda n: n**2, "n ** 0": lambda n: n**0,
    "round": round, "floor": math.floor, "ceil": math.ceil, "trunc": math.trunc,
    "sum": lambda n: sum((n, 2, n)), "prod": lambda n: math.prod((n, 2, n)),
    "n + True": lambda n: n + True,
    "np + n": lambda n: np.int64(2) * n + np.int32(1), "min": lambda n: min(n, 20),
    "max": lambda n: max(0, n), "n - n": lambda n: n - n, "(n + 5) // 4": lambda n: (n + 5) // 4,
    "n // n": lambda n: n // n, "n % n": lambda n: n % n, "-(-n // 2)": lambda n: -(-n // 2),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_int_arithmetic_stays_symbolic(name: str) -> None:
    for value in range(1, 11):
        found, wanted = WHOLE[name](Variable("n", 1, 10).bind(value)), WHOLE[name](value)
        assert int(found) == wanted and not isinstance(found, Size)


@given(st.integers(1, 10), st.integers(0, 4), st.integers(-3, 3), st.integers(1, 5))
def test_expressions_have_the_values_of_python(a: int, b: int, c: int, d: int) -> None:
    one, two = Variable("n", 1, 10).bind(a), Variable("m", 0, 4).bind(b)
    assert int((one * c + two - d) // d) == (a * c + b - d) // d
    assert int((one * two + c) % d) == (a * b + c) % d


LOOKS: dict[str, Any] = {
    "int": int, "float": float, "complex": complex, "range": lambda n: list(range(n)),
    "times a list": lambda n: [0] * n, "times a text": lambda n: n * "ab",
    "zeros": lambda n: np.zeros(n).shape, "sqrt": math.sqrt, "log": math.log,
    "index": lambda n: LETTERS[n],
    "slice": lambda n: LETTERS[:n], "format": lambda n: f"{n:4d}",
    "hash": hash, "len": lambda n: len(Tensor.ones(10)[:n]),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOKS)
def test_conversions_read_the_value(name: str) -> None:
    for value in (1, 4, 10):
        assert LOOKS[name](Variable("n", 1, 10).bind(value)) == LOOKS[name](value)
    with pytest.raises(ShapeError, match="n has no value"):
        LOOKS[name](Variable("n", 1, 10))


@pytest.mark.parametrize(
    "compute",
    [
        lambda n: n * 0.5, lambda n: 0.5 * n, lambda n: n / 2, lambda n: 2 / n, lambda n: n**-0.5,
        lambda n: n**-1, lambda n: 2**n, lambda n: n**n, lambda n: n + 0.5, lambda n: 1.5 - n,
        lambda n: n // 2.0, lambda n: n % 0.5, lambda n: n + np.float32(1), lambda n: n**0.5,
    ],
)  # fmt: skip
def test_arithmetic_with_fractional_results_is_refused(compute: Any) -> None:
    with pytest.raises(ShapeError, match=r"no whole number(.|\n)*Tensor\(n\) is a tensor"):
        compute(n)


def test_division_by_a_symbolic_size_is_refused() -> None:
    for compute in (lambda: 7 // n, lambda: 7 % n, lambda: n // (n + 1), lambda: divmod(7, n)):
        with pytest.raises(ShapeError, match="cannot divide"):
            compute()
    for compute in (lambda: n // 0, lambda: n % 0):
        with pytest.raises(ZeroDivisionError):
            compute()
    with pytest.raises(TypeError):
        n & 1
    with pytest.raises(TypeError):
        np.arange(3) * n


def test_comparisons_that_the_bounds_decide_have_an_answer() -> None:
    assert n > 0 and n >= 1 and n < 11 and n <= 10 and n != 0 and n != 11 and 0 < n < 11
    assert not (n > 10 or n < 1 or n == 0 or n == 2.5 or n == "n" or n is None)
    assert n == n and n + 1 == 1 + n and n < n + 1 and n * 2 - n == n
    assert (
        n < 10.5
        and n > 0.5
        and n < math.inf
        and n > -math.inf
        and not (n < math.nan or n >= math.nan)
    )
    assert n != math.inf and n != 2.5 and n != math.nan
    assert bool(n) and min(n, 10) is n and max(n, 1) is n
    assert n in (n, 3) and n not in (0, 11, "a")


@pytest.mark.parametrize(
    "compute",
    [
        lambda: n == 3, lambda: n != 3, lambda: n < 5, lambda: n <= 1, lambda: n > 3.5,
        lambda: n >= 5,
        lambda: 5 < n, lambda: 3 == n, lambda: bool(m), lambda: min(n, 5), lambda: max(5, n),
        lambda: n in (3, 4), lambda: n == m, lambda: sorted([5, n]), lambda: abs(n - 5),
        lambda: {3: "three"}[n], lambda: n == 3.0, lambda: m == np.int64(2), lambda: not m,
    ],
)  # fmt: skip
def test_comparisons_that_the_value_decides_are_refused(compute: Any) -> None:
    with pytest.raises(ShapeError, match="depends on the value of"):
        compute()


def test_dictionaries_never_find_the_wrong_entry() -> None:
    names = {n: "n", 7: "seven"}
    assert names[n] == "n" and names.get(Variable("n", 1, 10).bind(5)) is None
    assert n not in {4: "four", 5: "five"}
    with pytest.raises(ShapeError, match="depends on the value"):
        names[3]


def test_a_variable_has_one_value_at_a_time() -> None:
    for compute in (lambda: n + n.bind(5), lambda: n == n.bind(5), lambda: n * n.bind(5)):
        with pytest.raises(ShapeError, match="variable n is bound to 3 and to 5 in one expression"):
            compute()
    assert n + n.bind(3) == 2 * n


def test_bounds_values_and_texts() -> None:
    assert (n.vmin, n.vmax, n.val) == (1, 10, 3)
    assert ((n * 2 - m).vmin, (n * 2 - m).vmax, (n * 2 - m).val) == (-2, 20, 4)
    assert n.unbind()[0] == n.unbind()[0] and n.unbind()[1] == 3
    assert (str(n), f"{n}", f"{n + 1}", repr((n, 2))) == ("n", "n", "(n+1)", "(n, 2)")
    with pytest.raises(ShapeError, match="not a variable"):
        (n + 1).bind(3)


def test_copies_are_the_same_and_pickles_are_refused() -> None:
    assert copy.copy(n) is n and copy.deepcopy([n])[0] is n
    with pytest.raises(ShapeError, match="cannot pickle n"):
        pickle.dumps(n)


def test_the_compiler_works_with_sizes() -> None:
    assert internal((n, (2, m))) == (n.size, (2, m.size)) and type(internal(n)) is Size
    assert shown((n.size, 4))[0] == n and shown((3, 4)) == (3, 4)
