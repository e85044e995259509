"""Mathematical functions: exp, log, sin, tanh, erf, pow and others, made of a few primitives.

Neither values nor gradients compute inf - inf or 0 * inf on the way. Dtypes narrower than float32
are computed in float32 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self, TypeVar

from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.errors import DTypeError
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.tensor.autograd.gradient import Derivative
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.ops.polynomials import ERF, TANH, Erf
from glassgrad.tensor.ops.series import cosh, log1p, polynomial, sinh
from glassgrad.tensor.record import BOOL, as_float, cast_to, record, weak_dtype

# Enum member lookups cost 100 ns on Python 3.11, globals 5 ns.
SQRT, EXP2, LOG2, SIN, POW = Ops.SQRT, Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.POW
T = TypeVar("T", bound=TensorCore)
LOG2_E, LN_2 = math.log2(math.e), math.log(2)


class MathFunctions(TensorCore):
    """sqrt, exp, log, pow, sin, tanh, erf and other smooth functions."""

    __slots__ = ()

    def _unary(self, op: Ops) -> Self:
        source = as_float(self.uop)
        return self._wrap(record(op, source.dtype, (source,)))

    def _apply_in_float(self, function: Callable[[Self], Self]) -> Self:
        """Apply a function in float32 at least, and round to the float dtype of this tensor."""
        source = as_float(self.uop)
        if source.dtype.bits >= 32:
            return function(self._wrap(source))
        wide = function(self._wrap(cast_to(source, dtypes.float32)))
        return self._wrap(cast_to(wide.uop, source.dtype))

    # ------------------------------------------------------------------ powers and logarithms

    def sqrt(self) -> Self:
        """The square root.

        >>> Tensor([4.0, 9.0]).sqrt().tolist()
        [2.0, 3.0]
        """
        return self._unary(SQRT)

    def rsqrt(self) -> Self:
        """1 / sqrt(self)

        >>> Tensor([4.0, 16.0]).rsqrt().tolist()
        [0.5, 0.25]
        """
        return self._apply_in_float(lambda x: x._unary(SQRT).reciprocal())

    def reciprocal(self) -> Self:
        """1 / self

        >>> Tensor([2.0, 4.0]).reciprocal().tolist()
        [0.5, 0.25]
        """
        return self._unary(Ops.RECIPROCAL)

    def square(self) -> Self:
        """self * self

        >>> Tensor([2, -3]).square().tolist()
        [4, 9]
        """
        return self * self

    def exp2(self) -> Self:
        """2 to the power of x.

        >>> Tensor([0.0, 3.0]).exp2().tolist()
        [1.0, 8.0]
        """
        return self._unary(EXP2)

    def exp(self) -> Self:
        """e to the power of x.

        >>> round(Tensor(1.0).exp().item(), 5)
        2.71828
        """
        return self._apply_in_float(lambda x: (x * LOG2_E)._unary(EXP2))

    def log2(self) -> Self:
        """The logarithm to base 2.

        >>> Tensor([1.0, 8.0]).log2().tolist()
        [0.0, 3.0]
        """
        return self._unary(LOG2)

    def log(self) -> Self:
        """The natural logarithm.

        >>> round(Tensor(10.0).log().item(), 5)
        2.30259
        """
        return self._apply_in_float(lambda x: x._unary(LOG2) * LN_2)

    def log10(self) -> Self:
        """The logarithm to base 10.

        >>> round(Tensor(1000.0).log10().item(), 5)
        3.0
        """
        return self._apply_in_float(lambda x: x._unary(LOG2) * math.log10(2))

    def logaddexp(self, other: Any) -> Self:
        """log(exp(self) + exp(other)), without overflow.

        >>> round(Tensor(1000.0).logaddexp(1000.0).item(), 3)
        1000.693
        """
        left, right = (
            self._wrap(as_float(uop))
            for uop in self._promoted_operands(other, "add exponentials of")
        )
        return left._apply_in_float(lambda x: _logaddexp(x, right.cast(x.uop.dtype)))

    def pow(self, x: Any, reverse: bool = False) -> Self:
        """self to the power x; integer powers of ints stay ints.

        >>> (Tensor([1, 2, 3]) ** 2).dtype, (Tensor([1, 2, 3]) ** 0.5).dtype
        (dtypes.int, dtypes.float)
        """
        if isinstance(x, (int, float)) and not isinstance(x, bool) and not reverse:
            return self._power(x)
        pair = self._promoted_operands(x, "raise")
        base, power = map(self._wrap, pair[::-1] if reverse else pair)
        if base.uop.dtype.kind != "float":
            return _integer_power(base, power)
        return base._wrap(record(POW, base.uop.dtype, (base.uop, power.uop)))

    def _power(self, power: float) -> Self:
        """A power with a known exponent: products and roots where possible."""
        if self.uop.dtype is BOOL:
            return self.cast(weak_dtype(power, BOOL))._power(power)
        is_whole = isinstance(power, int) or (power.is_integer() and self.is_floating_point())
        if is_whole and power >= 0 and (power <= 64 or not self.is_floating_point()):
            return self._repeated_squaring(int(power))
        base = self._wrap(as_float(self.uop))
        simple: dict[float, Callable[[], Self]] = {
            -1.0: base.reciprocal,
            0.5: base.sqrt,
            -0.5: base.rsqrt,
            -2.0: lambda: base.reciprocal().square(),
        }
        if power in simple:
            return simple[power]()
        return base._wrap(record(POW, base.uop.dtype, (base.uop, base.const_like(power).uop)))

    def _repeated_squaring(self, times: int) -> Self:
        """x^n by repeated squaring."""
        if times == 0:
            return self._wrap(self.const_like(1).uop).expand(self.shape)
        result: Self | None = None
        square = self
        while times:
            if times & 1:
                result = square if result is None else result * square
            times >>= 1
            square = square * square if times else square
        return self._wrap(self.uop) if result is None or result is self else result

    def __pow__(self, x: Any) -> Self:
        return self.pow(x)

    def __rpow__(self, x: Any) -> Self:
        return self.pow(x, reverse=True)

    # ------------------------------------------------------------------ sines and hyperbolic sines

    def sin(self) -> Self:
        """The sine of an angle in radians.

        >>> round(Tensor(1.0).sin().item(), 5)
        0.84147
        """
        return self._unary(SIN)

    def cos(self) -> Self:
        """The cosine of an angle in radians, as sin(x + π/2) with an exact sum.

        >>> round(Tensor(1.0).cos().item(), 5)
        0.5403
        """
        return self._apply_in_float(_cos)

    def tan(self) -> Self:
        """The tangent of an angle in radians.

        >>> round(Tensor(1.0).tan().item(), 5)
        1.55741
        """
        return self._apply_in_float(lambda x: with_derivative(x.sin() / _cos(x), x, TAN_DERIVATIVE))

    def sinh(self) -> Self:
        """The hyperbolic sine.

        >>> round(Tensor(1.0).sinh().item(), 5)
        1.1752
        """
        return self._apply_in_float(lambda x: with_derivative(sinh(x), x, PART_DERIVATIVE, cosh(x)))

    def cosh(self) -> Self:
        """The hyperbolic cosine.

        >>> round(Tensor(1.0).cosh().item(), 5)
        1.54308
        """
        return self._apply_in_float(lambda x: with_derivative(cosh(x), x, PART_DERIVATIVE, sinh(x)))

    # ------------------------------------------------------------------ sigmoid, tanh and erf

    def sigmoid(self) -> Self:
        """1 / (1 + exp(-x)), from exp(-|x|) so that nothing overflows.

        >>> Tensor([-1000.0, 0.0, 1000.0]).sigmoid().tolist()
        [0.0, 0.5, 1.0]
        """

        def logistic(x: Self) -> Self:
            is_negative = x < 0
            # A single constant factor lets lowering recognise an exp and round its argument once.
            small = (is_negative.where(x, -x) * LOG2_E)._unary(EXP2)
            return with_derivative(
                is_negative.where(small, 1.0) / (small + 1.0), x, LOGISTIC_DERIVATIVE
            )

        return self._apply_in_float(logistic)

    def tanh(self) -> Self:
        """The hyperbolic tangent: a ratio of polynomials near 0, where 1 - exp(-2|x|) cancels.

        >>> Tensor([-1000.0, 0.0, 1e-20]).tanh().tolist()
        [-1.0, 0.0, 9.999999682655225e-21]
        """
        return self._apply_in_float(lambda x: with_derivative(_tanh(x), x, TANH_DERIVATIVE))

    def erf(self) -> Self:
        """The error function, to about 2 units in the last place.

        >>> round(Tensor(0.5).erf().item(), 5)
        0.5205
        """
        return self._apply_in_float(
            lambda x: with_derivative(_erf(x, ERF[x.uop.dtype]), x, ERF_DERIVATIVE)
        )

    def lerp(self, end: Any, weight: Any) -> Self:
        """Linear interpolation between this (weight 0) and end (weight 1).

        >>> Tensor([0.0, 2.0]).lerp(Tensor([4.0, 4.0]), 0.25).tolist()
        [1.0, 2.5]
        """
        return self + (self._wrap(self._operand(end, "interpolate")) - self).mul(weight)


def _logaddexp(x: T, y: T) -> T:
    """The larger operand plus log1p(exp(-difference)). Not by maximum(), whose gradient is split at
    ties.
    """
    is_larger = x >= y
    top, low = is_larger.where(x, y), is_larger.where(y, x)
    distance = (top.isinf() & top.eq(low)).where(-math.inf, low - top)
    return top + log1p(distance.exp())


def with_derivative(y: T, x: T, derivative: Derivative, *parts: T) -> T:
    """y with an explicit derivative by x, more exact than that of the operations that compute y.

    `parts` are further sources of the node, which the derivative may read.
    """
    sources = (y.uop, x.uop, *[part.uop for part in parts])
    return y._wrap(record(Ops.CUSTOM, y.uop.dtype, sources, derivative))


def derivative_of(rule: Callable[[UOp, UOp], UOp]) -> Derivative:
    """The gradient rule of CUSTOM(y, x) with dy/dx = rule(y, x)."""
    return Derivative(lambda y, g: g * rule(y, y.src[1]))


def _cos(x: T) -> T:
    return (x + math.pi / 2)._unary(SIN)


PART_DERIVATIVE = Derivative(lambda y, g: g * y.src[2])  # the derivative is the third source
TAN_DERIVATIVE = derivative_of(lambda y, x: y * y + 1.0)
LOGISTIC_DERIVATIVE = derivative_of(lambda y, x: y * (y.const_like(1.0) - y))
TANH_DERIVATIVE = derivative_of(lambda y, x: y.const_like(1.0) - y * y)
ERF_DERIVATIVE = derivative_of(lambda y, x: (x * x * -LOG2_E).alu(EXP2) * (2 / math.sqrt(math.pi)))


def _tanh(x: T) -> T:
    row = TANH[x.uop.dtype]
    is_negative = x < 0
    small = (x * is_negative.where(x.const_like(2 * LOG2_E), -2 * LOG2_E))._unary(EXP2)
    outer = (1.0 - small) / (1.0 + small)
    near = x.clamp(-row.limit, row.limit)  # finite everywhere: 0 times its gradient must be 0
    square = near * near
    inner = near * polynomial(square, row.above) / polynomial(square, row.below)
    is_near = (x > -row.limit) & (x < row.limit)
    return is_near.where(inner, is_negative.where(-outer, outer))


def _erf(x: T, row: Erf) -> T:
    is_negative = x < 0
    distance = is_negative.where(-x, x).minimum(row.limit)
    near = x.clamp(-1.0, 1.0)
    inner = near * polynomial(near * near, row.inner)
    tail = (distance * distance * -LOG2_E)._unary(EXP2)
    argument = (distance + row.shift).reciprocal() - row.centre
    outer = 1.0 - tail * polynomial(argument, row.outer)
    return (distance < 1.0).where(inner, is_negative.where(-outer, outer))


def _integer_power(base: T, power: T) -> T:
    """Integer powers by repeated squaring; a negative power gives 0 except for ±1."""
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
