"""Functions: exp, log, sin, tanh, erf, pow and the activations, made of a few primitives.

Each is written so that neither its value nor its gradient meets inf - inf or 0 * inf on the way.
Dtypes narrower than float32 are computed in float32 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self, TypeVar

from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.errors import DTypeError
from glassgrad.ir.ops import Ops
from glassgrad.tensor.elementwise import Casts
from glassgrad.tensor.polynomials import ERF, TANH, Erf
from glassgrad.tensor.record import as_float, cast_to, record

# Looking a member up in an Enum class takes 100 ns on Python 3.11; a global takes 5.
SQRT, EXP2, LOG2, SIN, POW = Ops.SQRT, Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.POW
T = TypeVar("T", bound="Functions")
LOG2_E, LN_2 = math.log2(math.e), math.log(2)


class Functions(Casts):
    """Smooth functions and activations."""

    __slots__ = ()

    def _unary(self, op: Ops) -> Self:
        source = as_float(self.uop)
        return self._made(record(op, source.dtype, (source,)))

    def _smooth(self, function: Callable[[Self], Self]) -> Self:
        """A function of floats, computed in float32 at least."""
        source = as_float(self.uop)
        if source.dtype.bits >= 32:
            return function(self._made(source))
        wide = function(self._made(cast_to(source, dtypes.float32)))
        return self._made(cast_to(wide.uop, source.dtype))

    # ------------------------------------------------------------------ powers and logarithms

    def sqrt(self) -> Self:
        """The square root."""
        return self._unary(SQRT)

    def rsqrt(self) -> Self:
        """1 / sqrt(self)"""
        return self._unary(SQRT).reciprocal()

    def reciprocal(self) -> Self:
        """1 / self"""
        return self._unary(Ops.RECIPROCAL)

    def square(self) -> Self:
        """self * self"""
        return self * self

    def exp2(self) -> Self:
        """2 to the power of this."""
        return self._unary(EXP2)

    def exp(self) -> Self:
        """e to the power of this."""
        return self._smooth(lambda x: (x * LOG2_E)._unary(EXP2))

    def log2(self) -> Self:
        """The logarithm to base 2."""
        return self._unary(LOG2)

    def log(self) -> Self:
        """The natural logarithm."""
        return self._smooth(lambda x: x._unary(LOG2) * LN_2)

    def log10(self) -> Self:
        """The logarithm to base 10."""
        return self._smooth(lambda x: x._unary(LOG2) * math.log10(2))

    def logaddexp(self, other: Any) -> Self:
        """log(exp(self) + exp(other)), without overflow."""
        x, y = map(self._made, self._pair(other, "add the exponentials of"))
        x, y = self._made(as_float(x.uop)), self._made(as_float(y.uop))
        top = x.maximum(y).detach()
        top = top.isinf().where(0.0, top)
        return ((x - top).exp() + (y - top).exp()).log() + top

    def pow(self, x: Any, reverse: bool = False) -> Self:
        """self to the power x; whole powers of whole numbers stay whole.

        >>> from glassgrad import Tensor
        >>> (Tensor([1, 2, 3]) ** 2).dtype, (Tensor([1, 2, 3]) ** 0.5).dtype
        (dtypes.int, dtypes.float)
        """
        if isinstance(x, (int, float)) and not isinstance(x, bool) and not reverse:
            return self._power(x)
        pair = self._pair(x, "raise")
        base, power = map(self._made, pair[::-1] if reverse else pair)
        if base.uop.dtype.kind != "float":
            return _whole_power(base, power)
        return base._made(record(POW, base.uop.dtype, (base.uop, power.uop)))

    def _power(self, power: float) -> Self:
        """A power that is known: products and roots where they do."""
        if self.uop.dtype.kind == "bool":
            raise DTypeError("cannot raise bools to a power", hint="cast to int or float first")
        is_whole = isinstance(power, int) or (power.is_integer() and self.is_floating_point())
        if is_whole and 0 <= power <= 64:
            return self._multiplied(int(power))
        base = self._made(as_float(self.uop))
        simple: dict[float, Callable[[], Self]] = {
            -1.0: base.reciprocal,
            0.5: base.sqrt,
            -0.5: base.rsqrt,
            -2.0: (base * base).reciprocal,
        }
        if power in simple:
            return simple[power]()
        return base._made(record(POW, base.uop.dtype, (base.uop, base.const_like(power).uop)))

    def _multiplied(self, times: int) -> Self:
        """x^n by squaring."""
        if times == 0:
            return self._made(self.const_like(1).uop).expand(self.shape)
        result: Self | None = None
        square = self
        while times:
            if times & 1:
                result = square if result is None else result * square
            times >>= 1
            square = square * square if times else square
        return self._made(self.uop) if result is None or result is self else result

    def __pow__(self, x: Any) -> Self:
        return self.pow(x)

    def __rpow__(self, x: Any) -> Self:
        return self.pow(x, reverse=True)

    # ------------------------------------------------------------------ waves

    def sin(self) -> Self:
        """The sine of an angle in radians."""
        return self._unary(SIN)

    def cos(self) -> Self:
        """The cosine: 1 - 2 sin²(x/2), because halving is exact and adding π/2 is not."""

        def cosine(x: Self) -> Self:
            half = (x * 0.5).sin()
            return 1.0 - 2.0 * (half * half)

        return self._smooth(cosine)

    def tan(self) -> Self:
        """The tangent of an angle in radians."""
        return self._smooth(lambda x: x.sin() / x.cos())

    def sinh(self) -> Self:
        """The hyperbolic sine."""
        return self._smooth(lambda x: (x.exp() - (-x).exp()) * 0.5)

    def cosh(self) -> Self:
        """The hyperbolic cosine."""
        return self._smooth(lambda x: (x.exp() + (-x).exp()) * 0.5)

    # ------------------------------------------------------------------ bends

    def sigmoid(self) -> Self:
        """1 / (1 + exp(-self)). Only exp(-|x|) is taken, so nothing overflows."""

        def logistic(x: Self) -> Self:
            is_negative = x < 0
            small = (x * is_negative.where(x.const_like(LOG2_E), -LOG2_E))._unary(EXP2)
            return is_negative.where(small, 1.0) / (small + 1.0)

        return self._smooth(logistic)

    def tanh(self) -> Self:
        """The hyperbolic tangent: a ratio of polynomials near 0, where 1 - exp(-2|x|) cancels."""
        return self._smooth(_tanh)

    def erf(self) -> Self:
        """The error function, to about 2 units in the last place."""
        return self._smooth(lambda x: _erf(x, ERF[x.uop.dtype]))

    def relu(self) -> Self:
        """The positive part.

        >>> from glassgrad import Tensor
        >>> Tensor([-1.0, 2.0]).relu().shape
        (2,)
        """
        return self.maximum(0)

    def relu6(self) -> Self:
        """The positive part, at most 6."""
        return self.clamp(0, 6)

    def hardtanh(self, min_val: float = -1, max_val: float = 1) -> Self:
        """Clamped between two values."""
        return self.clamp(min_val, max_val)

    def leaky_relu(self, neg_slope: float = 0.01) -> Self:
        """The positive part and a little of the negative one."""
        return (self < 0).where(self * neg_slope, self)

    def elu(self, alpha: float = 1.0) -> Self:
        """x where positive, alpha * (exp(x) - 1) where not."""
        return (self > 0).where(self, (self.minimum(0).exp() - 1) * alpha)

    def celu(self, alpha: float = 1.0) -> Self:
        """x where positive, alpha * (exp(x/alpha) - 1) where not."""
        return self.maximum(0) + ((self.minimum(0) / alpha).exp() - 1) * alpha

    def selu(self, alpha: float = 1.67326, gamma: float = 1.0507) -> Self:
        """gamma times `elu`."""
        return self.elu(alpha) * gamma

    def silu(self) -> Self:
        """x * sigmoid(x)"""
        return self * self.sigmoid()

    def swish(self) -> Self:
        """The same as `silu`."""
        return self.silu()

    def gelu(self, approximate: str = "tanh") -> Self:
        """x times the probability that a normal number is smaller: by tanh, or "none" for exact."""
        if approximate == "none":
            return self * ((self * math.sqrt(0.5)).erf() + 1.0) * 0.5
        if approximate != "tanh":
            raise ValueError(f'approximate is "tanh" or "none", not {approximate!r}')
        # (1 + tanh(u)) / 2 is sigmoid(2u), which does not cancel where u is negative.
        inner = self * (self * self * 0.044715 + 1.0) * (2 * math.sqrt(2 / math.pi))
        return self * inner.sigmoid()

    def quick_gelu(self) -> Self:
        """x * sigmoid(1.702 x)"""
        return self * (self * 1.702).sigmoid()

    def softplus(self, beta: float = 1.0) -> Self:
        """log(1 + exp(beta x)) / beta"""
        return (self * beta).logaddexp(0.0) * (1 / beta)

    def logsigmoid(self) -> Self:
        """log(sigmoid(x))"""
        return -((-self).softplus())

    def mish(self) -> Self:
        """x * tanh(softplus(x))"""
        return self * self.softplus().tanh()

    def softsign(self) -> Self:
        """x / (1 + |x|)"""
        return self / (self.abs() + 1)

    def hardsigmoid(self, alpha: float = 1 / 6, beta: float = 0.5) -> Self:
        """alpha * x + beta between 0 and 1."""
        return (self * alpha + beta).clamp(0, 1)

    def hardswish(self) -> Self:
        """x * relu6(x + 3) / 6"""
        return self * (self + 3).relu6() * (1 / 6)

    def lerp(self, end: Any, weight: Any) -> Self:
        """Between this (weight 0) and end (weight 1)."""
        return self + (self._made(self._operand(end, "interpolate")) - self).mul(weight)


def _polynomial(x: T, coefficients: tuple[float, ...]) -> T:
    """The highest power first."""
    total = x * coefficients[0] + coefficients[1]
    for coefficient in coefficients[2:]:
        total = total * x + coefficient
    return total


def _tanh(x: T) -> T:
    row = TANH[x.uop.dtype]
    is_negative = x < 0
    small = (x * is_negative.where(x.const_like(2 * LOG2_E), -2 * LOG2_E))._unary(EXP2)
    outer = (1.0 - small) / (1.0 + small)
    near = x.clamp(-row.limit, row.limit)  # finite elsewhere: 0 times its gradient must be 0
    square = near * near
    inner = near * _polynomial(square, row.above) / _polynomial(square, row.below)
    is_near = (x > -row.limit) & (x < row.limit)
    return is_near.where(inner, is_negative.where(-outer, outer))


def _erf(x: T, row: Erf) -> T:
    is_negative = x < 0
    distance = is_negative.where(-x, x).minimum(row.limit)
    near = x.clamp(-1.0, 1.0)
    inner = near * _polynomial(near * near, row.inner)
    tail = (distance * distance * -LOG2_E)._unary(EXP2)
    place = (distance + row.shift).reciprocal() - row.centre
    outer = 1.0 - tail * _polynomial(place, row.outer)
    return (distance < 1.0).where(inner, is_negative.where(-outer, outer))


def _whole_power(base: T, power: T) -> T:
    """Ints by squaring, one step per bit of the power; a negative power gives 0 but for ±1."""
    dtype: DType = base.uop.dtype
    if dtype.kind == "bool":
        raise DTypeError("cannot raise bools to a power", hint="cast to int or float first")
    result, square = base.const_like(1), base
    for bit in range(dtype.bits - (dtype.kind == "int")):
        is_set = ((power >> bit) & 1).ne(0)
        result = is_set.where(result * square, result)
        square = square * square
    if dtype.kind == "uint":
        return result
    sign = (power & 1).eq(0).where(base * base, base)
    unit = (base.eq(1) | base.eq(-1)).where(sign, 0)
    return (power < 0).where(unit, result)
