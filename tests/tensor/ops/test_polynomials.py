"""The coefficients of tanh and erf, evaluated in float64 against the exact functions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from glassgrad.base.dtype import DType, dtypes
from glassgrad.tensor.ops.polynomials import ERF, TANH

LAST_PLACE = {dtypes.float32: 2.0**-24, dtypes.float64: 2.0**-53}


@pytest.mark.parametrize("dtype", TANH)
def test_the_fraction_is_tanh_near_zero(dtype: DType) -> None:
    row = TANH[dtype]
    x = np.linspace(1e-3, row.limit, 2001).astype(np.longdouble)
    got = x * np.polyval(row.above, x * x) / np.polyval(row.below, x * x)
    assert np.abs(got / np.tanh(x) - 1).max() < LAST_PLACE[dtype]


@pytest.mark.parametrize("dtype", ERF)
def test_the_polynomials_are_erf(dtype: DType) -> None:
    row = ERF[dtype]
    x = np.linspace(1e-3, 1, 2001)
    inner = x * np.polyval(row.inner, x * x)
    wanted = np.array([math.erf(value) for value in x])
    assert np.abs(inner / wanted - 1).max() < 4 * LAST_PLACE[dtype]
    x = np.linspace(1, row.limit, 2001)
    outer = np.exp(-x * x) * np.polyval(row.outer, 1 / (x + row.shift) - row.centre)
    wanted = np.array([math.erfc(value) for value in x])
    assert np.abs(outer - wanted).max() < LAST_PLACE[dtype]
    assert 1 - math.erf(row.limit) < LAST_PLACE[dtype]
