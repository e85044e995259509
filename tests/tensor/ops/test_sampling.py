"""Permutations and weighted draws: values and frequencies."""

from __future__ import annotations

import numpy as np
import pytest

from glassgrad import Tensor


@pytest.mark.parametrize("n", [0, 1, 2, 17])
def test_a_permutation_has_every_number_once(n: int) -> None:
    x = Tensor.randperm(n)
    assert sorted(x.tolist()) == list(range(n))
    assert x.dtype.name == "int32"


def test_permutations_differ_and_come_again_with_the_seed() -> None:
    Tensor.manual_seed(3)
    one, other = Tensor.randperm(50).tolist(), Tensor.randperm(50).tolist()
    Tensor.manual_seed(3)
    assert one != other
    assert Tensor.randperm(50).tolist() == one


def test_first_elements_of_permutations_are_uniform() -> None:
    Tensor.manual_seed(0)
    firsts = [Tensor.randperm(4)[0].item() for _ in range(400)]
    assert np.bincount(firsts, minlength=4).min() > 70


@pytest.mark.parametrize("replacement", [False, True])
def test_draws_follow_the_weights(replacement: bool) -> None:
    Tensor.manual_seed(0)
    weights = np.tile([1.0, 0.0, 3.0, 6.0, 0.0], (4000, 1))
    drawn = Tensor(weights).multinomial(1, replacement).numpy()
    assert drawn.shape == (4000, 1)
    counts = np.bincount(drawn[:, 0], minlength=5) / 4000
    np.testing.assert_allclose(counts, [0.1, 0, 0.3, 0.6, 0], atol=0.03)
    assert counts[1] == counts[4] == 0


def test_draws_that_are_not_put_back_differ() -> None:
    Tensor.manual_seed(0)
    drawn = Tensor.ones(20, 6).multinomial(6).numpy()
    assert np.sort(drawn, 1).tolist() == [list(range(6))] * 20
    few = Tensor([0.0, 1.0, 1.0, 0.0]).multinomial(2)
    assert sorted(few.tolist()) == [1, 2]


def test_draws_of_a_vector_are_a_vector() -> None:
    assert Tensor([1.0, 2.0]).multinomial(7, replacement=True).shape == (7,)


def test_options_that_are_not_known_are_refused() -> None:
    assert Tensor.randperm(4, contiguous=False).shape == (4,)
    with pytest.raises(TypeError, match="unexpected keyword argument 'seed'"):
        Tensor.randperm(4, seed=1)  # type: ignore[call-arg]
