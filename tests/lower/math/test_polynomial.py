"""A polynomial is the sum of its terms."""

import numpy as np
from support.compiler.on_cpu import apply

from glassgrad.base.dtype import dtypes
from glassgrad.lower.math.polynomial import polynomial


def test_a_polynomial_is_the_sum_of_its_terms() -> None:
    x = np.linspace(-2, 2, 64)
    got = apply(
        lambda v: polynomial(v, (1.0, -2.0, 0.5, 3.0)), [x], [dtypes.float64], dtypes.float64
    )
    assert np.allclose(got, 1 - 2 * x + 0.5 * x**2 + 3 * x**3, rtol=1e-14)
    alone = apply(lambda v: polynomial(v, (7.0,)), [x], [dtypes.float64], dtypes.float64)
    assert (alone == 7).all()
