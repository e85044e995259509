"""Contractions with contiguous operands: lanes along the reduction, a tile of sums."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiler.programs import TARGET
from support.compiler.schedules import memory, planned

from glassgrad import Tensor
from glassgrad.engine.compile.optimizer_policy import current_policy
from glassgrad.ir.stages import Kernel
from glassgrad.loops import optimize
from glassgrad.loops.opts import OptOps


def moves(kernel: Kernel) -> list[OptOps]:
    return [opt.op for opt in optimize(kernel, TARGET, current_policy()).recipe]


def test_few_rows_times_a_transposed_matrix_have_lanes_along_the_sum() -> None:
    (kernel,) = planned(memory(4, 64) @ memory(96, 64).T).kernels
    found = moves(kernel)
    assert found.count(OptOps.UPCAST) == 2
    assert OptOps.UNROLL in found


@pytest.mark.parametrize("size", [3, 8, 29, 64])
def test_values_are_right_for_any_length(size: int) -> None:
    rng = np.random.default_rng(size)
    x = rng.standard_normal((5, size)).astype(np.float32)
    w = rng.standard_normal((7, size)).astype(np.float32)
    found = (Tensor(x) @ Tensor(w).T).numpy()
    np.testing.assert_allclose(found, x @ w.T, rtol=1e-4, atol=1e-4)
