"""How far compiled functions are from the exact value, in units of the last place."""

import numpy as np
import pytest

from glassgrad import Tensor

# name -> the exact function on float64, and the most ulps that float32 may be off
ERRORS = {
    "exp": (np.exp, 1.3),
    "tanh": (np.tanh, 3.0),
    "sigmoid": (lambda x: np.where(x < 0, np.exp(x), 1.0) / (1 + np.exp(-np.abs(x))), 3.0),
}


@pytest.mark.parametrize("name", ERRORS)
def test_float32_functions_keep_their_stated_error_at_any_size(name: str) -> None:
    exact, most = ERRORS[name]
    x = np.concatenate([np.linspace(-87, 88, 200_001), np.linspace(-3, 3, 100_001)])
    x = x.astype(np.float32)
    wanted = exact(x.astype(np.float64))
    normal = np.abs(wanted) > np.finfo(np.float32).tiny
    step = np.spacing(np.abs(wanted.astype(np.float32))).astype(np.float64)
    error = np.abs(getattr(Tensor(x), name)().numpy() - wanted) / step
    assert error[normal].max() <= most
