"""For doctests: the names that every example uses."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(autouse=True)
def names_of_examples(doctest_namespace: dict[str, Any]) -> None:
    from glassgrad import Tensor, dtypes

    doctest_namespace.update(Tensor=Tensor, dtypes=dtypes)
