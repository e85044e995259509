"""Matrix factorizations: their defining properties, and NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from support.references.finite_differences import check
from support.values.arrays import distinct

from glassgrad import Tensor

SHAPES = [(1, 1), (3, 1), (2, 2), (5, 3), (3, 5), (2, 4, 3), (9, 9)]


def close(one: np.ndarray, other: np.ndarray) -> None:
    np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def is_orthogonal(x: np.ndarray) -> None:
    close(x @ np.swapaxes(x, -1, -2), np.broadcast_to(np.eye(x.shape[-1]), x.shape))


@pytest.mark.parametrize("shape", SHAPES)
def test_qr_is_orthogonal_times_triangular(shape: tuple[int, ...]) -> None:
    x = distinct(shape)
    q, r = (part.numpy() for part in Tensor(x).qr())
    close(q @ r, x)
    is_orthogonal(q)
    close(r, np.triu(r))
    close(np.abs(r), np.abs(np.linalg.qr(x, mode="complete").R))


@pytest.mark.parametrize("shape", SHAPES)
def test_svd_is_rotation_stretch_rotation(shape: tuple[int, ...]) -> None:
    x = distinct(shape)
    u, s, v = (part.numpy() for part in Tensor(x).svd())
    is_orthogonal(u)
    is_orthogonal(v)
    close(s, np.linalg.svd(x).S)
    k = min(shape[-2:])
    close((u[..., :k] * s[..., None, :]) @ v[..., :k, :], x)
    thin = [part.numpy() for part in Tensor(x).svd(full_matrices=False)]
    close((thin[0] * thin[1][..., None, :]) @ thin[2], x)


def test_svd_of_matrices_without_full_rank() -> None:
    x = distinct((5, 4))
    x[:, 1] = x[:, 3]
    x[:, 2] = 0
    u, s, v = (part.numpy() for part in Tensor(x).svd())
    is_orthogonal(u)
    is_orthogonal(v)
    close((u[:, :4] * s) @ v, x)
    zeros = [part.numpy() for part in Tensor(np.zeros((3, 2))).svd()]
    is_orthogonal(zeros[0])
    assert zeros[1].tolist() == [0, 0]


def test_svd_of_stretched_columns() -> None:
    x = distinct((14, 12)) * np.logspace(0, -9, 12)
    close(Tensor(x).svd()[1].numpy(), np.linalg.svd(x).S)


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (5, 3), (2, 3, 4)])
def test_newton_schulz_pushes_singular_values_to_one(shape: tuple[int, ...]) -> None:
    x = distinct(shape)
    got = Tensor(x).newton_schulz(40, (1.5, -0.5)).numpy()
    u, _, v = np.linalg.svd(x, full_matrices=False)
    close(got, u @ v)
    quick = Tensor(x).newton_schulz(5, (3.4445, -4.775, 2.0315)).numpy()
    assert np.abs(np.linalg.svd(quick).S - 1).max() < 0.4


def test_gradients_of_factors() -> None:
    x = distinct((3, 2))
    check(lambda t: t.qr()[1], x)
    check(lambda t: t.newton_schulz(2, (2.0, -1.5, 0.5)), x)
