"""Inverse functions: atan, asin, acos and their hyperbolic relatives.

Near 0 each is an odd power series; elsewhere an identity or a logarithm reduces to that. No formula
cancels, so small arguments keep all their digits.
"""

from __future__ import annotations

import math
from typing import Any, Self, TypeVar

from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.ops.functions import derivative_of, with_derivative
from glassgrad.tensor.ops.series import odd, of_atanh
from glassgrad.tensor.record import as_float

NEAR = 0.3  # below this the series are used; each term is at most 0.09 of the last
HUGE = 1e8  # above this x² + 1 == x² in every dtype
T = TypeVar("T", bound=TensorCore)


class InverseFunctions(TensorCore):
    """atan, asin, acos, asinh, acosh, atanh and copysign."""

    __slots__ = ()

    def atan(self) -> Self:
        """The angle whose tangent this is.

        >>> round(Tensor(1.0).atan().item(), 5)
        0.7854
        """
        return self._apply_in_float(lambda x: with_derivative(_atan(x), x, ATAN_DERIVATIVE))

    def asin(self) -> Self:
        """The angle whose sine this is.

        >>> round(Tensor(1.0).asin().item(), 5)
        1.5708
        """

        def arcsine(x: Self) -> Self:
            return with_derivative(_atan(x / ((1.0 - x) * (1.0 + x)).sqrt()), x, ASIN_DERIVATIVE)

        return self._apply_in_float(arcsine)

    def acos(self) -> Self:
        """The angle whose cosine this is.

        >>> round(Tensor(0.0).acos().item(), 5)
        1.5708
        """

        def arccosine(x: Self) -> Self:
            return with_derivative(_atan(((1.0 - x) / (1.0 + x)).sqrt()) * 2.0, x, ACOS_DERIVATIVE)

        return self._apply_in_float(arccosine)

    def asinh(self) -> Self:
        """The number whose hyperbolic sine this is.

        >>> round(Tensor(1.0).asinh().item(), 5)
        0.88137
        """
        return self._apply_in_float(lambda x: with_derivative(_asinh(x), x, ASINH_DERIVATIVE))

    def acosh(self) -> Self:
        """The positive number whose hyperbolic cosine this is.

        >>> round(Tensor(2.0).acosh().item(), 5)
        1.31696
        """

        def area_cosine(x: Self) -> Self:
            return with_derivative(_asinh(((x - 1.0) * 0.5).sqrt()) * 2.0, x, ACOSH_DERIVATIVE)

        return self._apply_in_float(area_cosine)

    def atanh(self) -> Self:
        """The number whose hyperbolic tangent this is.

        >>> round(Tensor(0.5).atanh().item(), 5)
        0.54931
        """
        return self._apply_in_float(lambda x: with_derivative(_atanh(x), x, ATANH_DERIVATIVE))

    def copysign(self, other: Any) -> Self:
        """The magnitude of this with the sign of another operand, also for -0.0.

        >>> Tensor([1.0, -2.0]).copysign(Tensor([-0.0, 3.0])).tolist()
        [-1.0, 2.0]
        """
        x, y = (
            self._wrap(as_float(uop)) for uop in self._promoted_operands(other, "give a sign to")
        )
        # 1 / -0.0 is -inf; the sign has no derivative.
        is_negative = ((y < 0) | (y.eq(0) & (y.reciprocal() < 0))).detach()
        size = x.eq(0).where(0.0, x.abs())
        return is_negative.where(-size, size)


def _of_atan(k: int) -> float:
    return float((-1) ** k) / (2 * k + 1)


def _of_asinh(k: int) -> float:
    return float((-1) ** k * math.comb(2 * k, k)) / 4.0**k / (2 * k + 1)


def _atan(x: T) -> T:
    """Argument reduction: 1/x for large numbers, then a rotation by 30°."""
    is_negative = x < 0
    size = is_negative.where(-x, x)
    is_large = size > 1
    small = is_large.where(size.maximum(1.0).reciprocal(), size.minimum(1.0))
    is_rotated = small > math.tan(math.pi / 12)
    rotated = (small * math.sqrt(3) - 1.0) / (small + math.sqrt(3))
    angle = odd(is_rotated.where(rotated, small), _of_atan)
    angle = is_rotated.where(angle + math.pi / 6, angle)
    angle = is_large.where(math.pi / 2 - angle, angle)
    return is_negative.where(-angle, angle)


def _asinh(x: T) -> T:
    is_negative = x < 0
    size = is_negative.where(-x, x)
    some = size.clamp(NEAR, HUGE)
    far = (some + (some * some + 1.0).sqrt()).log()
    far = (size > HUGE).where(size.maximum(HUGE).log() + math.log(2), far)
    near = odd(x.clamp(-NEAR, NEAR), _of_asinh)
    return (size < NEAR).where(near, is_negative.where(-far, far))


def _atanh(x: T) -> T:
    far = ((1.0 + x) / (1.0 - x)).log() * 0.5
    near = odd(x.clamp(-NEAR, NEAR), of_atanh)
    return ((x > -NEAR) & (x < NEAR)).where(near, far)


# ---------------------------------------------------------------------- derivatives
# Where the branches above meet, their own derivatives would be 0 or halved.


def _inverse_root(x: UOp, *factors: UOp) -> UOp:
    """1 / (√a √b …): a root per factor, since their product might overflow."""
    bottom = x.const_like(1.0)
    for factor in factors:
        bottom = bottom * factor.alu(Ops.SQRT)
    return bottom.alu(Ops.RECIPROCAL)


def _circular(x: UOp) -> UOp:
    """1 / √(1 - x²)"""
    one = x.const_like(1.0)
    return _inverse_root(x, (one - x) * (one + x))


def _asinh_derivative(x: UOp) -> UOp:
    """1 / √(1 + x²), which is 1 / |x| where the square would overflow."""
    size = x.alu(Ops.MAX, -x)
    some = size.alu(Ops.MIN, x.const_like(HUGE))
    far = size.alu(Ops.RECIPROCAL)
    return (x.const_like(HUGE) < size).where(far, _inverse_root(x, some * some + 1.0))


ATAN_DERIVATIVE = derivative_of(lambda y, x: (x * x + 1.0).alu(Ops.RECIPROCAL))
ASIN_DERIVATIVE = derivative_of(lambda y, x: _circular(x))
ACOS_DERIVATIVE = derivative_of(lambda y, x: -_circular(x))
ASINH_DERIVATIVE = derivative_of(lambda y, x: _asinh_derivative(x))
ACOSH_DERIVATIVE = derivative_of(lambda y, x: _inverse_root(x, x - 1.0, x + 1.0))
ATANH_DERIVATIVE = derivative_of(
    lambda y, x: ((x.const_like(1.0) - x) * (x + 1.0)).alu(Ops.RECIPROCAL)
)
