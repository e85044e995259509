"""einsum against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.references.finite_differences import check
from support.values.arrays import distinct, numbers, same

from glassgrad import Tensor, dtypes

ON_BOTH_BACKENDS = True

FORMULAS = {
    "ij,jk->ik": ((2, 3), (3, 4)),
    "ij,jk": ((2, 3), (3, 4)),
    "bij,bjk->bik": ((2, 3, 4), (2, 4, 5)),
    "ij->ji": ((2, 3),),
    "ij->": ((2, 3),),
    "ij": ((2, 3),),
    "ba": ((2, 3),),
    "ii->i": ((3, 3),),
    "ii": ((3, 3),),
    "iij,jk->ki": ((3, 3, 2), (2, 4)),
    "i,j->ij": ((3,), (4,)),
    "i,i->": ((3,), (3,)),
    "i,i->i": ((3,), (3,)),
    "ij,jk,kl->il": ((2, 3), (3, 4), (4, 2)),
    "ij,kj,k->i": ((2, 3), (4, 3), (4,)),
    "...ij,...jk->...ik": ((2, 1, 3, 4), (5, 4, 2)),
    "...i->...": ((2, 3, 4),),
    "...,...": ((2, 3), (3,)),
    "bthd , bshd -> bhts": ((2, 3, 2, 4), (2, 5, 2, 4)),
    "abc,cd,ae->bde": ((2, 3, 4), (4, 5), (2, 3)),
    ",i->i": ((), (3,)),
}


@pytest.mark.parametrize("formula", FORMULAS)
def test_formulas(formula: str) -> None:
    arrays = [numbers(shape, "float64", seed=i) for i, shape in enumerate(FORMULAS[formula])]
    same(Tensor.einsum(formula, *map(Tensor, arrays)), np.einsum(formula, *arrays), rtol=1e-12)


@settings(max_examples=25)
@given(st.data())
def test_random_formulas(data: st.DataObject) -> None:
    sizes = dict(zip("abcd", (2, 3, 1, 4), strict=True))
    letters = st.lists(st.sampled_from("abcd"), max_size=3, unique=True).map("".join)
    terms = data.draw(st.lists(letters, min_size=1, max_size=3))
    used = sorted(set("".join(terms)))
    out = "".join(data.draw(st.lists(st.sampled_from(used), unique=True)) if used else [])
    formula = ",".join(terms) + "->" + out
    arrays = [numbers(tuple(sizes[c] for c in t), "int32", i) for i, t in enumerate(terms)]
    same(Tensor.einsum(formula, *map(Tensor, arrays)), np.einsum(formula, *arrays))


def test_operands_may_come_as_a_list_and_the_dtype_may_be_given() -> None:
    x = numbers((2, 3), "float32")
    same(Tensor.einsum("ij,ij->i", [Tensor(x), Tensor(x)]), (x * x).sum(1))
    assert Tensor.einsum("ij->", Tensor(x), dtype=dtypes.float64).dtype is dtypes.float64


def test_narrow_floats_are_summed_in_wider_ones() -> None:
    ones = Tensor.ones(4000, dtype="float16")
    assert Tensor.einsum("i,i->", ones, ones).item() == 4000


def test_a_chain_is_contracted_two_at_a_time() -> None:
    n = 64
    chain = Tensor.einsum("ab,bc,cd->ad", *[Tensor.empty(n, n) for _ in "xyz"])
    assert max(np.prod(node.shape) for node in chain.uop.toposort()) == n**3


def test_gradients_of_einsum() -> None:
    x, y = distinct((2, 3)), distinct((3, 2), seed=1)
    check(lambda a, b: Tensor.einsum("ij,jk->ik", a, b), x, y)
    check(lambda a, b: Tensor.einsum("ij,ji,jk->k", a, b, b), x, y)
