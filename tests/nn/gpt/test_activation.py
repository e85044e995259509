from __future__ import annotations

import numpy as np
import pytest
from support.references.gpt import BENT

from glassgrad import Tensor
from glassgrad.nn.gpt import config
from glassgrad.nn.gpt.activation import ACTIVATIONS

X = np.linspace(-7, 7, 57)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_what_their_names_say(name: str) -> None:
    found = ACTIVATIONS[name](Tensor(X)).numpy()
    np.testing.assert_allclose(found, BENT[name](X), rtol=1e-6, atol=1e-7)


def test_configs_know_all_of_them() -> None:
    assert tuple(ACTIVATIONS) == config.ACTIVATIONS
