"""Large products: both operands packed, K blocks, shares of the result for the cores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.compiler.nests import kernel_of, ops_of
from support.compiler.schedules import TARGET, memory

from glassgrad import Tensor
from glassgrad.ir.ops import AxisKind, Ops
from glassgrad.ir.stages import Nest
from glassgrad.ir.uop import UOp
from glassgrad.loops import optimize
from glassgrad.loops.opts import OptOps
from glassgrad.loops.strategies.packed_gemm import KC


def nest_of(product: Tensor, cores: int = 2) -> Nest:
    return optimize(kernel_of(product), replace(TARGET, cores=cores))


@pytest.mark.parametrize("cores", [1, 2, 8])
@pytest.mark.parametrize("size", [2048, 3000, 4096])
def test_sums_of_large_products_fit_scratch_in_parts(size: int, cores: int) -> None:
    found = ops_of(nest_of(memory(2048, size).T @ memory(2048, size), cores))
    assert OptOps.K_BLOCK in found and found.count(OptOps.PACK) == 2
    assert (OptOps.CORE in found) == (cores > 1)


@pytest.mark.parametrize("cores", [2, 8])
def test_cores_share_the_products_of_a_batch_that_is_too_small_for_them(cores: int) -> None:
    nest = nest_of(memory(3, 2048, 2048) @ memory(3, 2048, 2048), cores)
    (share,) = [r for r in nest.outer if r.kind is AxisKind.CORE]
    assert share.size % cores == 0


@pytest.mark.parametrize("m", [50304, 1_000_000])
def test_sums_of_very_many_rows_fit_scratch(m: int) -> None:
    nest = nest_of(memory(2048, m).T @ memory(2048, 384))
    assert OptOps.K_BLOCK in ops_of(nest)
    copies = {_slot(node): node for node in nest.body.toposort() if node.op is Ops.STAGE}
    assert all(r in copies[1].ranges for r in nest.outer if r.kind is AxisKind.CORE)


def test_two_row_major_matrices_are_packed_if_they_are_large() -> None:
    assert OptOps.K_BLOCK in ops_of(nest_of(memory(2048, 2048) @ memory(2048, 2048)))
    for m, n, k in ((2048, 384, 1536), (256, 2048, 2048), (1024, 1024, 1024)):
        assert OptOps.K_BLOCK not in ops_of(nest_of(memory(m, k) @ memory(k, n)))


@pytest.mark.parametrize(("m", "n"), [(1536, 384), (384, 1536)])
def test_the_longer_side_is_shared_so_that_it_is_packed_once(m: int, n: int) -> None:
    nest = nest_of(memory(2048, m).T @ memory(2048, n))
    (share,) = [r for r in nest.outer if r.kind is AxisKind.CORE]
    copies = {_slot(node): node for node in nest.body.toposort() if node.op is Ops.STAGE}
    assert share.size == 2, "one for every core"
    assert (share in copies[1].ranges) == (m > n), "the left side is cut, and all else packed again"
    assert (share in copies[2].ranges) == (n > m)


@pytest.mark.parametrize("k", [200_000, 200_003])
def test_panels_that_do_not_fit_scratch_are_packed_in_parts(k: int) -> None:
    nest = nest_of(memory(32, k) @ memory(k, 32))
    assert (OptOps.PADTO in ops_of(nest)) == (k % 2 == 1), "200,003 has no divisors"
    assert OptOps.K_BLOCK in ops_of(nest)
    (reduce,) = [node for node in nest.body.toposort() if node.op is Ops.REDUCE]
    assert all(node.op is not Ops.WHERE for node in reduce.toposort()), "zeros need no mask"
    few = nest_of(memory(6, k) @ memory(k, 32))
    assert OptOps.PADTO not in ops_of(few), "what is not packed has no masks"


@pytest.mark.parametrize("cores", [1, 2, 4, 8])
@pytest.mark.parametrize("columns", [16, 32, 48])
def test_only_panels_packed_in_parts_are_padded(columns: int, cores: int) -> None:
    found = ops_of(nest_of(memory(256, 200_003) @ memory(200_003, columns), cores))
    assert (OptOps.PADTO in found) == (OptOps.K_BLOCK in found)


def test_sums_over_several_axes_are_not_padded_along_a_short_one() -> None:
    x, y = memory(16, 64, 12_545), memory(16, 64, 12_545)
    assert OptOps.PADTO not in ops_of(nest_of(Tensor.einsum("nct,ndt->cd", x, y)))


def test_long_sums_that_nothing_divides_are_right() -> None:
    rng = np.random.default_rng(7)
    x, y = rng.standard_normal((37, 200_003)), rng.standard_normal((200_003, 34))
    found = Tensor(x.astype(np.float32)) @ Tensor(y.astype(np.float32))
    np.testing.assert_allclose(found.numpy(), x @ y, rtol=1e-3, atol=0.02)


def _slot(stage: UOp) -> int | None:
    """Which buffer is copied, if it is one."""
    value = stage.src[0]
    return value.src[0].src[0].arg.slot if value.op is Ops.LOAD else None


def test_a_k_block_of_both_operands_fits_l1() -> None:
    assert KC * (16 + 6) * 4 <= TARGET.l1_bytes


@pytest.mark.parametrize(
    ("m", "n", "k"), [(1031, 1040, 1536), (1024, 1025, 1544), (97, 130, 1024), (385, 64, 2048)]
)
@pytest.mark.parametrize("left_lies_by_columns", [False, True])
def test_products_of_any_size_are_those_of_numpy(
    m: int, n: int, k: int, left_lies_by_columns: bool
) -> None:
    random = np.random.default_rng(0)
    x = random.random((k, m) if left_lies_by_columns else (m, k), dtype=np.float32)
    w = random.random((k, n), dtype=np.float32)
    left = Tensor(x).T if left_lies_by_columns else Tensor(x)
    expected = (x.T if left_lies_by_columns else x).astype(np.float64) @ w
    got = (left @ Tensor(w) + 1.0).numpy()
    np.testing.assert_allclose(got, expected + 1.0, rtol=2e-6 * k**0.5)
