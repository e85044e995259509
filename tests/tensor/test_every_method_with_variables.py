"""Every method and creation function with sizes and numbers that a variable decides: what comes out
is what comes out for plain numbers, or an error of ours. `POISON=1` fills memory that nobody wrote.
"""

from __future__ import annotations

from functools import cache

import pytest
from support.variables.cases import CASES, IN_PLACE, NOT_CALLED
from support.variables.outcomes import (
    BINDINGS,
    Outcome,
    bound,
    captured,
    difference,
    in_place,
    plainly,
)

from glassgrad import Tensor

ON_COMPILED_BACKEND = True

# Calls that are refused for some values: their bounds do not say what the result would be.
REFUSED = frozenset(
    """
    (x.roll(1, 0) * x).sum().gradient(x)
    T.arange(0, 12, n)
    T.arange(0, n, 0.5)
    T.arange(0.0, n)
    T.arange(5, n)
    T.arange(n - 3)
    T.full((n - 3,), 1)
    line.repeat_interleave(n)
    line.unfold(0, n, 1)
    v.pad((0, 3 - n))
    w.flatten() * 2
    w.reshape(n, 6)
    whole[0:n:2]
    whole[:20 - n]
    whole[:n, :n]
    whole[n:2 * n]
    whole[n:3]
    whole[n:n + 3]
    line[n - 1:n + 1]
    t[n:n + 1].assign(y[:1])
    t.__setitem__(slice(n - 1, n + 2), 3.0)
    t.replace(x)
    x.cat(whole, dim=1)
    x.expand(5, 6)
    x.norm(n)
    x.pad_to(4, 6)
    x.reshape(6, n)
    x.reshape(x.shape[1], x.shape[0])
    x.squeeze()
    x.squeeze(0)
    x.stack(whole)
    x[:2]
    x[::2]
    """.strip().split("\n    ")
)
# Methods whose structure depends on sizes, or that look at values: captures refuse some calls.
LOOKING = """
    T diagonal empty empty_like glorot_uniform kaiming_normal kaiming_uniform normal rand
    rand_like randint randn randn_like randperm scaled_uniform uniform nonzero interpolate svd
    qr chunk roll split topk multinomial sort argsort data numpy tolist item diag gather
    index_select masked_select newton_schulz pad scatter scatter_add scatter_reduce unbind
    repeat tile gradient __getitem__ __len__ __iter__
"""
REFUSED_IN_CAPTURES = frozenset(LOOKING.split())


@cache
def wanted(text: str, value: int) -> Outcome:
    return plainly(text, value)


def public_names() -> set[str]:
    return {name for name in dir(Tensor) if not name.startswith("_")}


def test_every_public_name_is_called_or_listed() -> None:
    assert public_names() <= {*CASES, *IN_PLACE, *NOT_CALLED}
    assert NOT_CALLED <= public_names()


@pytest.mark.parametrize("name", CASES)
def test_a_method_gives_what_it_gives_for_plain_numbers(name: str) -> None:
    for text in CASES[name]:
        for value in BINDINGS:
            found = difference(plainly(text, bound(value)), wanted(text, value))
            assert not found or (found == "refused" and text in REFUSED), (text, value, found)


@pytest.mark.parametrize("name", CASES)
def test_a_captured_method_gives_what_it_gives_for_plain_numbers(name: str) -> None:
    for text in CASES[name]:
        is_refused = text in REFUSED or name in REFUSED_IN_CAPTURES
        for value, outcome in captured(text):
            found = difference(outcome, wanted(text, value))
            assert not found or (found == "refused" and is_refused), (text, value, found)


@pytest.mark.parametrize("name", IN_PLACE)
def test_a_write_leaves_what_it_leaves_for_plain_numbers(name: str) -> None:
    for text in IN_PLACE[name]:
        for value in BINDINGS:
            found = difference(in_place(text, bound(value)), in_place(text, value))
            assert not found or (found == "refused" and text in REFUSED), (text, value, found)
