"""Every scan followed by every reduction, along any two axes, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from glassgrad import Tensor

Array = np.ndarray
SHAPES = ((1, 3, 3, 3), (2, 4, 3, 6))
SCANS: dict[str, Callable[[Array, int], Array]] = {
    "cumsum": lambda x, axis: x.cumsum(axis),
    "cumprod": lambda x, axis: x.cumprod(axis),
    "logcumsumexp": lambda x, axis: np.logaddexp.accumulate(x, axis=axis),
}
REDUCTIONS: dict[str, tuple[Callable[[Tensor, int], Tensor], Callable[[Array, int], Array]]] = {
    "sum": (lambda t, axis: t.sum(axis), lambda x, axis: x.sum(axis)),
    "max": (lambda t, axis: t.max(axis), lambda x, axis: x.max(axis)),
    "var": (lambda t, axis: t.var(axis, correction=0), lambda x, axis: x.var(axis)),
    "logsumexp": (lambda t, axis: t.logsumexp(axis), lambda x, axis: np.log(np.exp(x).sum(axis))),
    "centred products": (
        lambda t, axis: ((t - t.mean(axis, keepdim=True)) * t).sum(axis),
        lambda x, axis: ((x - x.mean(axis, keepdims=True)) * x).sum(axis),
    ),
}


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("scan", SCANS)
def test_a_reduction_of_a_scan_equals_numpy(scan: str, reduction: str) -> None:
    reduce_tensor, reduce_array = REDUCTIONS[reduction]
    for shape, along, over in product(SHAPES, range(4), range(4)):
        x = np.random.default_rng(7).normal(size=shape).astype(np.float32)
        found = reduce_tensor(getattr(Tensor(x), scan)(along), over).numpy()
        wanted = reduce_array(SCANS[scan](x.astype(np.float64), along), over)
        np.testing.assert_allclose(
            found, wanted, rtol=2e-4, atol=2e-4, err_msg=f"{shape}, axes {along} and {over}"
        )
