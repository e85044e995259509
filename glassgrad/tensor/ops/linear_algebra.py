"""Matrix factorizations: QR by Householder reflections, SVD by Jacobi rotations."""

from __future__ import annotations

from typing import Any, Self, TypeVar

from glassgrad.base.errors import DTypeError, ShapeError
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.symbolic_sizes import with_concrete_arguments

# Jacobi rotations converge quadratically: a few sweeps, and one more per doubling of the columns.
SWEEPS = {32: 4, 64: 6}
T = TypeVar("T", bound=TensorCore)


class LinearAlgebra(TensorCore):
    """newton_schulz, qr and svd."""

    __slots__ = ()

    @with_concrete_arguments
    def newton_schulz(self, steps: int, params: tuple[float, ...], eps: float = 1e-7) -> Self:
        """Singular values moved towards 1 by an odd polynomial: x (p0 + p1 x'x + p2 (x'x)² + …).

        >>> x = Tensor([[2.0, 0.0], [0.0, 1.0]]).newton_schulz(20, (1.5, -0.5))
        >>> [[round(value, 3) for value in row] for row in x.tolist()]
        [[1.0, 0.0], [0.0, 1.0]]
        """
        _check_matrix(self, "orthogonalise")
        is_tall = self.shape[-2] > self.shape[-1]
        x = self.transpose(-2, -1) if is_tall else self
        x = x / ((x * x).sum((-2, -1), keepdim=True).sqrt() + eps)
        for _ in range(steps):
            square = x.dot(x.transpose(-2, -1))
            total = power = x
            for number, factor in enumerate(params):
                power = square.dot(power) if number else power
                total = total + power * factor if number else power * factor
            x = total.contiguous()
        return x.transpose(-2, -1) if is_tall else x

    @with_concrete_arguments
    def qr(self) -> tuple[Self, Self]:
        """An orthogonal and an upper triangular matrix whose product this is.

        >>> q, r = Tensor([[0.0, 2.0], [3.0, 4.0]]).qr()
        >>> [[round(value, 3) for value in row] for row in q.dot(r).tolist()]
        [[0.0, 2.0], [3.0, 4.0]]
        """
        _check_matrix(self, "factorise")
        rows, columns = (int(size) for size in self.shape[-2:])
        eye = self._iota(rows).unsqueeze(1).eq(self._iota(rows)).cast(self.dtype)
        r, q = self, eye.expand((*self.shape[:-2], rows, rows))
        for column in range(min(rows - 1, columns)):
            mirror = _householder(r, column)
            r = (r - mirror * (mirror * r).sum(-2, keepdim=True) * 2.0).contiguous()
            q = (q - q.dot(mirror) * mirror.transpose(-2, -1) * 2.0).contiguous()
        return q, r.triu()

    @with_concrete_arguments
    def svd(self, full_matrices: bool = True) -> tuple[Self, Self, Self]:
        """Orthogonal u and v' and decreasing singular values s, with u @ diag(s) @ v' = this.

        >>> u, s, v = Tensor([[3.0, 0.0], [0.0, 4.0]]).svd()
        >>> [round(value, 3) for value in s.tolist()]
        [4.0, 3.0]
        """
        _check_matrix(self, "factorise")
        rows, columns = (int(size) for size in self.shape[-2:])
        if rows < columns:
            u, s, v = self.transpose(-2, -1).svd(full_matrices)
            return v.transpose(-2, -1), s, u.transpose(-2, -1)
        columns_of_u, v = _orthogonal_columns(self)
        order = (columns_of_u * columns_of_u).sum(-2).argsort(-1, descending=True)[..., :columns]
        columns_of_u, v = (_columns_at(x, order) for x in (columns_of_u, v))
        # The columns are orthogonal, so r is diagonal, and q completes them to a whole basis.
        q, r = columns_of_u.qr()
        diagonal = r.diagonal(0, -2, -1)
        signs = (diagonal < 0).where(-1.0, diagonal.const_like(1.0))
        first = q[..., :columns] * signs.unsqueeze(-2)
        rest = q[..., columns:]
        u = first.cat(rest, dim=-1) if full_matrices and rows > columns else first
        return u, diagonal * signs, v[..., :columns, :].transpose(-2, -1)


def _check_matrix(x: TensorCore, word: str) -> None:
    if x.ndim < 2 or 0 in x.uop.shape:
        raise ShapeError(f"cannot {word} {x.shape}", hint="the last two axes are a matrix")
    if not x.is_floating_point() or x.dtype.bits < 32:
        raise DTypeError(f"cannot {word} {x.dtype.name}", hint="cast it to float32 or float64")


def _householder(r: T, column: int) -> T:
    """The Householder vector that zeroes a column below the diagonal."""
    rows = r._iota(int(r.shape[-2])).unsqueeze(1)
    rest = (rows >= column).where(r[..., column : column + 1], r.const_like(0))
    head = r[..., column : column + 1, column : column + 1]
    length = (rest * rest).sum(-2, keepdim=True).sqrt()
    target = (head < 0).where(-length, length)
    difference = rows.eq(column).where(rest + target, rest)
    size = (difference * difference).sum(-2, keepdim=True)
    is_zero = size.eq(0)
    scale = is_zero.where(1.0, size).rsqrt()
    return is_zero.where(0.0, difference * scale).contiguous()


def _orthogonal_columns(x: T) -> tuple[T, T]:
    """x @ v with orthogonal columns, and v, by one-sided Jacobi rotations."""
    columns = int(x.shape[-1])
    even = columns + columns % 2
    lead = ((0, 0),) * (x.ndim - 1)
    x = x.pad((*lead, (0, even - columns)))
    eye = x._iota(even).unsqueeze(1).eq(x._iota(even)).cast(x.dtype)
    v = eye.expand((*x.shape[:-2], even, even))
    if columns == 1:
        return x, v
    sweeps = SWEEPS[x.dtype.bits] + (even - 1).bit_length()
    for _ in range(sweeps * (even - 1)):
        cosine, sine = _jacobi_rotation(*x.chunk(2, -1))
        x, v = (_rotate_pairs(both, cosine, sine) for both in (x, v))
    return x, v


def _jacobi_rotation(left: T, right: T) -> tuple[T, T]:
    """Cosine and sine of the rotation that makes each pair of columns orthogonal."""
    product = (left * right).sum(-2, keepdim=True)
    is_done = product.eq(0)
    difference = (right * right).sum(-2, keepdim=True) - (left * left).sum(-2, keepdim=True)
    cotangent = difference / (is_done.where(1.0, product) * 2.0)
    size = cotangent.abs().minimum(1e18)
    tangent = (cotangent < 0).where(-1.0, cotangent.const_like(1.0)) / (
        size + (size * size + 1.0).sqrt()
    )
    tangent = is_done.where(0.0, tangent)
    cosine = (tangent * tangent + 1.0).rsqrt()
    return cosine.contiguous(), (cosine * tangent).contiguous()


def _rotate_pairs(x: T, cosine: T, sine: T) -> T:
    """The rotated pairs; all columns but the first then move on by one, so that all pairs meet."""
    left, right = x.chunk(2, -1)
    one, other = left * cosine - right * sine, left * sine + right * cosine
    if one.shape[-1] == 1:
        return one.cat(other, dim=-1).contiguous()
    upper = one[..., :1].cat(other[..., :1], one[..., 1:-1], dim=-1)
    lower = other[..., 1:].cat(one[..., -1:], dim=-1)
    return upper.cat(lower, dim=-1).contiguous()


def _columns_at(x: T, order: Any) -> T:
    """The columns of each matrix in its own order."""
    shape = (*x.shape[:-1], order.shape[-1])
    return x._gather_unchecked(-1, order.unsqueeze(-2).expand(shape))
