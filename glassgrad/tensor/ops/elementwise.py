"""Elementwise methods made of a few operators: rounding, remainders, tests, clamps and casts."""

from __future__ import annotations

from typing import Any, Self

from glassgrad.base.dtype import dtypes
from glassgrad.base.errors import DTypeError
from glassgrad.ir.ops import PREFER_SCRATCH, Ops
from glassgrad.ir.uop import UOp
from glassgrad.tensor.autograd.gradient import Derivative
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.keyword_aliases import keyword_aliases
from glassgrad.tensor.lazy.exclusive import exclusive
from glassgrad.tensor.lazy.views import DETACHED
from glassgrad.tensor.ops.remainder import floor_quotient, floor_remainder, truncated_remainder
from glassgrad.tensor.record import BOOL, as_float, mark_origin, record, require_kinds

# Enum member lookups cost 100 ns on Python 3.11, globals 5 ns.
FDIV, FLOORDIV, FLOORMOD, TRUNC = Ops.FDIV, Ops.FLOORDIV, Ops.FLOORMOD, Ops.TRUNC
DETACH, CONTIGUOUS, MAX, MIN = Ops.DETACH, Ops.CONTIGUOUS, Ops.MAX, Ops.MIN
CUSTOM = Ops.CUSTOM
NUMBERS = ("int", "uint", "float", "index")
SIGNED = {8: dtypes.int8, 16: dtypes.int16, 32: dtypes.int32, 64: dtypes.int64}


def _abs_derivative(y: UOp, g: UOp) -> UOp:
    """The sign of x; 0 at 0."""
    x = y.src[1]
    zero = x.const_like(0)
    return x.eq(zero).where(zero, (x < 0).where(-g, g))


ABS_DERIVATIVE = Derivative(_abs_derivative)


class Elementwise(TensorCore):
    """div, mod, round, abs, sign, isnan, clamp, detach, contiguous and others."""

    __slots__ = ()

    # ------------------------------------------------------------------ arithmetic

    def div(self, x: Any, reverse: bool = False, rounding_mode: str | None = None) -> Self:
        """self / x as floats; rounding_mode "trunc" or "floor" keeps the dtype.

        >>> Tensor([7, -7]).div(2).tolist(), Tensor([7, -7]).div(2, rounding_mode="trunc").tolist()
        ([3.5, -3.5], [3, -3])
        """
        if rounding_mode == "floor":
            return self.__rfloordiv__(x) if reverse else self // x
        left, right = self._promoted_operands(x, "divide")
        if rounding_mode == "trunc" and left.dtype.kind != "float":
            require_kinds(left, NUMBERS, "divide towards zero")
            return self._truncated_quotient(*((right, left) if reverse else (left, right)))
        if rounding_mode not in (None, "trunc"):
            raise ValueError(f'rounding_mode is "trunc" or "floor", not {rounding_mode!r}')
        left, right = as_float(left), as_float(right)
        quotient = self._wrap(record(FDIV, left.dtype, (right, left) if reverse else (left, right)))
        return quotient.trunc() if rounding_mode else quotient

    def _truncated_quotient(self, left: UOp, right: UOp) -> Self:
        """Integer division truncated: the floor, plus one where negative and inexact; x / 0 is
        0.
        """
        x, y = self._wrap(left), self._wrap(right)
        floor = self._wrap(record(FLOORDIV, left.dtype, (left, right)))
        if left.dtype.kind == "uint":
            return floor
        is_inexact = (floor * y).ne(x) & y.ne(0)
        return (is_inexact & ((x < 0) ^ (y < 0))).where(floor + 1, floor)

    def __floordiv__(self, x: Any) -> Self:
        return self._floor_quotient(*self._promoted_operands(x, "floor-divide"))

    def __rfloordiv__(self, x: Any) -> Self:
        return self._floor_quotient(*self._promoted_operands(x, "floor-divide")[::-1])

    def _floor_quotient(self, left: UOp, right: UOp) -> Self:
        require_kinds(left, NUMBERS, "floor-divide")
        if left.dtype.kind == "float":
            return floor_quotient(self._wrap(left), self._wrap(right))
        return self._wrap(record(FLOORDIV, left.dtype, (left, right)))

    def mod(self, x: Any, reverse: bool = False) -> Self:
        """The remainder of floor division: it has the sign of the divisor.

        >>> Tensor([7, -7]).mod(3).tolist()
        [1, 2]
        """
        pair = self._promoted_operands(x, "take the remainder of")
        left, right = pair[::-1] if reverse else pair
        require_kinds(left, NUMBERS, "take the remainder of")
        if left.dtype.kind == "float":
            return floor_remainder(self._wrap(left), self._wrap(right))
        return self._wrap(record(FLOORMOD, left.dtype, (left, right)))

    def __mod__(self, x: Any) -> Self:
        return self.mod(x)

    def __rmod__(self, x: Any) -> Self:
        return self.mod(x, reverse=True)

    def __abs__(self) -> Self:
        return self.abs()

    def fmod(self, x: Any) -> Self:
        """The remainder of division towards zero: it has the sign of the dividend.

        >>> Tensor([7, -7]).fmod(3).tolist()
        [1, -1]
        """
        left, right = map(self._wrap, self._promoted_operands(x, "take the remainder of"))
        if left.is_floating_point():
            return truncated_remainder(left, right)
        return right.eq(0).where(0, left - left.div(right, rounding_mode="trunc") * right)

    def trunc(self) -> Self:
        """Rounded towards zero.

        >>> Tensor([1.7, -1.7]).trunc().tolist()
        [1.0, -1.0]
        """
        if self.uop.dtype.kind != "float":
            return self._wrap(self.uop)
        return self._wrap(record(TRUNC, self.uop.dtype, (self.uop,)))

    def floor(self) -> Self:
        """Rounded down.

        >>> Tensor([1.7, -1.7]).floor().tolist()
        [1.0, -2.0]
        """
        whole = self.trunc()
        return whole if self.uop.dtype.kind != "float" else (self < whole).where(whole - 1, whole)

    def ceil(self) -> Self:
        """Rounded up.

        >>> Tensor([1.2, -1.2]).ceil().tolist()
        [2.0, -1.0]
        """
        whole = self.trunc()
        return whole if self.uop.dtype.kind != "float" else (whole < self).where(whole + 1, whole)

    def round(self) -> Self:
        """Rounded to the nearest whole number, halves to the even one.

        >>> Tensor([0.5, 1.5, 2.5]).round().tolist()
        [0.0, 2.0, 2.0]
        """
        if self.uop.dtype.kind != "float":
            return self._wrap(self.uop)
        whole = self.trunc()
        rest = (self - whole).abs()  # exact, so ties compare equal to 0.5
        half = whole * 0.5
        up = (rest > 0.5) | (rest.eq(0.5) & half.ne(half.trunc()))
        return up.where((self < 0).where(whole - 1, whole + 1), whole)

    def abs(self) -> Self:
        """The absolute value.

        >>> Tensor([-2, 3]).abs().tolist()
        [2, 3]
        """
        kind = self.uop.dtype.kind
        if kind in ("uint", "bool"):
            return self._wrap(self.uop)
        return self._clear_sign() if kind == "float" else self.maximum(-self)

    def _clear_sign(self) -> Self:
        """A float with its sign bit cleared, also for -0.0 and nan."""
        x, dtype = self.uop, self.uop.dtype
        bits = SIGNED[dtype.bits]
        size = (x.bitcast(bits) & dtypes.max(bits)).bitcast(dtype)
        return self._wrap(record(CUSTOM, dtype, (mark_origin(size), x), ABS_DERIVATIVE))

    def sign(self) -> Self:
        """-1, 0 or 1; nan stays nan.

        >>> Tensor([-2.5, 0.0, 3.0]).sign().tolist()
        [-1.0, 0.0, 1.0]
        """
        if self.uop.dtype is BOOL:
            return self._wrap(self.uop)
        one, zero = self.const_like(1), self.const_like(0)
        positive = (self > 0).where(one, self if self.uop.dtype.kind == "float" else zero)
        if self.uop.dtype.kind == "uint":
            return positive
        return (self < 0).where(self.const_like(-1), positive).detach()

    # ------------------------------------------------------------------ comparisons

    def isnan(self) -> Self:
        """True where the value is nan.

        >>> Tensor([1.0, float("nan")]).isnan().tolist()
        [False, True]
        """
        return self.ne(self)

    def isinf(self, detect_positive: bool = True, detect_negative: bool = True) -> Self:
        """True where the value is infinite.

        >>> Tensor([1.0, float("-inf")]).isinf().tolist()
        [False, True]
        """
        if self.uop.dtype.kind != "float":
            return self.ne(self)
        up, down = self.eq(float("inf")), self.eq(float("-inf"))
        if detect_positive and detect_negative:
            return up | down
        return up if detect_positive else down if detect_negative else self.ne(self) & self.eq(self)

    def isfinite(self) -> Self:
        """True where the value is neither nan nor infinite.

        >>> Tensor([1.0, float("inf")]).isfinite().tolist()
        [True, False]
        """
        return (self.isnan() | self.isinf()).logical_not()

    def isclose(
        self, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
    ) -> Self:
        """True where |self - other| <= atol + rtol * |other|, or both are the same infinity.

        >>> Tensor([1.0, 2.0]).isclose(Tensor([1.0000001, 2.1])).tolist()
        [True, False]
        """
        x, y = map(self._wrap, self._promoted_operands(other, "compare"))
        if x.uop.dtype.kind != "float":  # unsigned differences would wrap
            x, y = x.cast(dtypes.float64), y.cast(dtypes.float64)
        near = ((x - y).abs() <= y.abs() * rtol + atol) & x.isfinite() & y.isfinite()
        close = near | x.eq(y)
        return close | (x.isnan() & y.isnan()) if equal_nan else close

    # ------------------------------------------------------------------ selection

    def masked_fill(self, mask: Any, value: Any) -> Self:
        """A copy with a value where the mask is True.

        >>> Tensor([1, 2]).masked_fill(Tensor([True, False]), 9).tolist()
        [9, 2]
        """
        condition = self._wrap(self._operand(mask, "mask"))
        return condition.where(value, self)

    @keyword_aliases(min="min_", max="max_")
    def clamp(
        self, min_: Any = None, max_: Any = None, *, min: Any = None, max: Any = None
    ) -> Self:
        """Values below min_ become min_, values above max_ become max_.

        >>> Tensor([-3, 0, 3]).clamp(-1, 1).tolist()
        [-1, 0, 1]
        """
        if min_ is None and max_ is None:
            raise DTypeError("clamp needs min_ or max_", hint="give at least one bound")
        low = self if min_ is None else self._clamp_side(MAX, min_)
        return low if max_ is None else low._clamp_side(MIN, max_)

    def _clamp_side(self, op: Ops, bound: Any) -> Self:
        """The maximum or minimum with a bound; values equal to the bound have gradient 1."""
        x, limit = map(self._wrap, self._promoted_operands(bound, "clamp"))
        if x.uop.dtype.kind != "float":
            return self._binary(op, bound, "clamp")
        is_outside = x < limit if op is MAX else limit < x
        if not limit.uop.is_const or limit.uop.arg != limit.uop.arg:
            is_outside = is_outside | limit.isnan()
        return is_outside.where(limit, x)

    def _clamp_flat(self, low: float, high: float) -> Self:
        """Clamped, with gradient 0 at the bounds."""
        return self._binary(MAX, low, "clamp")._binary(MIN, high, "clamp")

    @keyword_aliases(min="min_", max="max_")
    def clip(self, min_: Any = None, max_: Any = None, *, min: Any = None, max: Any = None) -> Self:
        """The same as `clamp`.

        >>> Tensor([-3, 0, 3]).clip(max_=1).tolist()
        [-3, 0, 1]
        """
        return self.clamp(min_, max_)

    # ------------------------------------------------------------------ dtype, memory and gradient

    @exclusive
    def detach(self) -> Self:
        """The same values without a gradient.

        >>> x = Tensor([3.0])
        >>> (x * x.detach()).sum().gradient(x)[0].tolist()
        [3.0]
        """
        made = self._as_view(record(DETACH, self.uop.dtype, (self.uop,)), DETACHED)
        made._requires_grad = False
        return made

    def contiguous(self) -> Self:
        """The same values in a row-major buffer of their own.

        >>> Tensor([[1, 2], [3, 4]]).T.contiguous().tolist()
        [[1, 3], [2, 4]]
        """
        return self._wrap(record(CONTIGUOUS, self.uop.dtype, (self.uop,)))

    def _computed_once(self) -> Self:
        """This value computed once: kept in scratch by the kernel that needs it, or else stored."""
        return self._wrap(record(CONTIGUOUS, self.uop.dtype, (self.uop,), PREFER_SCRATCH))

    def contiguous_backward(self) -> Self:
        """The same values; the scheduler chooses the layout of gradients itself.

        >>> Tensor([1.0]).contiguous_backward().tolist()
        [1.0]
        """
        return self._wrap(self.uop)

    def is_floating_point(self) -> Any:
        """True if the dtype is a float.

        >>> Tensor([1]).is_floating_point(), Tensor([1.5]).is_floating_point()
        (False, True)
        """
        return self.uop.dtype.kind == "float"


class Casts(TensorCore):
    """bool, int, half, float and others. These names hide Python's types in annotations."""

    __slots__ = ()

    def bool(self) -> Self:
        """Cast to bool.

        >>> Tensor([0, 2]).bool().tolist()
        [False, True]
        """
        return self.cast(dtypes.bool)

    def short(self) -> Self:
        """Cast to int16.

        >>> Tensor([1.7]).short().tolist()
        [1]
        """
        return self.cast(dtypes.int16)

    def int(self) -> Self:
        """Cast to int32.

        >>> Tensor([1.7, -1.7]).int().tolist()
        [1, -1]
        """
        return self.cast(dtypes.int32)

    def long(self) -> Self:
        """Cast to int64.

        >>> Tensor([1.7]).long().dtype
        dtypes.long
        """
        return self.cast(dtypes.int64)

    def half(self) -> Self:
        """Cast to float16.

        >>> Tensor([0.1]).half().tolist()
        [0.0999755859375]
        """
        return self.cast(dtypes.float16)

    def bfloat16(self) -> Self:
        """Cast to bfloat16.

        >>> Tensor([0.1]).bfloat16().tolist()
        [0.10009765625]
        """
        return self.cast(dtypes.bfloat16)

    def float(self) -> Self:
        """Cast to float32.

        >>> Tensor([1, 2]).float().tolist()
        [1.0, 2.0]
        """
        return self.cast(dtypes.float32)

    def double(self) -> Self:
        """Cast to float64.

        >>> Tensor([1, 2]).double().dtype
        dtypes.double
        """
        return self.cast(dtypes.float64)
