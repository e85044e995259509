"""Activation functions: relu, gelu, silu, softplus and others."""

from __future__ import annotations

import math
from typing import Self, TypeVar

from glassgrad.base.dtype import dtypes
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.tensor.autograd.gradient import Derivative
from glassgrad.tensor.core import TensorCore
from glassgrad.tensor.lazy.composite import composite
from glassgrad.tensor.ops.functions import LOG2_E, LOGISTIC_DERIVATIVE, with_derivative
from glassgrad.tensor.ops.series import expm1

MAX = Ops.MAX
T = TypeVar("T", bound=TensorCore)
# These constants keep mean 0 and variance 1 from layer to layer (Klambauer et al., 2017).
SELU_ALPHA, SELU_GAMMA = 1.6732632423543772, 1.0507009873554805
# gelu(x) ≈ x·sigmoid(scale·(x + cubic·x³)) (Hendrycks and Gimpel, 2016).
GELU_SCALE, GELU_CUBIC = 2 * math.sqrt(2 / math.pi), 0.044715
# Below this, exp(x) is nearly denormal.
TAIL = {dtypes.float32: -86.0, dtypes.float64: -707.0}


class Activations(TensorCore):
    """relu, gelu, silu, softplus and other activation functions."""

    __slots__ = ()

    def relu(self) -> Self:
        """The positive part.

        >>> Tensor([-1.0, 2.0]).relu().shape
        (2,)
        """
        return self._binary(MAX, 0, "take the positive part of")

    def relu6(self) -> Self:
        """The positive part, at most 6.

        >>> Tensor([-1.0, 3.0, 9.0]).relu6().tolist()
        [0.0, 3.0, 6.0]
        """
        return self._clamp_flat(0, 6)

    def hardtanh(self, min_val: float = -1, max_val: float = 1) -> Self:
        """Clamped between two values.

        >>> Tensor([-3.0, 0.5, 3.0]).hardtanh().tolist()
        [-1.0, 0.5, 1.0]
        """
        return self._clamp_flat(min_val, max_val)

    def leaky_relu(self, neg_slope: float = 0.01) -> Self:
        """The positive part and a little of the negative one.

        >>> Tensor([-2.0, 2.0]).leaky_relu(0.25).tolist()
        [-0.5, 2.0]
        """
        return self._apply_in_float(lambda x: (x > 0).where(x, x * neg_slope))

    def elu(self, alpha: float = 1.0) -> Self:
        """x where positive, alpha * (exp(x) - 1) where not.

        >>> Tensor([-1000.0, 2.0]).elu().tolist()
        [-1.0, 2.0]
        """
        return self._apply_in_float(lambda x: _elu(x, alpha, 1.0))

    def celu(self, alpha: float = 1.0) -> Self:
        """x where positive, alpha * (exp(x/alpha) - 1) where not.

        >>> Tensor([-1000.0, 2.0]).celu(0.5).tolist()
        [-0.5, 2.0]
        """
        if alpha == 0:
            raise ValueError("alpha of celu must not be 0")
        return self._apply_in_float(lambda x: _elu(x, alpha, alpha))

    def selu(self, alpha: float = SELU_ALPHA, gamma: float = SELU_GAMMA) -> Self:
        """gamma times `elu`.

        >>> round(Tensor(-1.0).selu().item(), 4)
        -1.1113
        """
        return self._apply_in_float(lambda x: x.elu(alpha) * gamma)

    @composite
    def silu(self) -> Self:
        """x * sigmoid(x)

        >>> round(Tensor(1.0).silu().item(), 5)
        0.73106
        """

        def gated(x: Self) -> Self:
            # exp(-x); far below 0, where that overflows, exp(x / 2), whose square is sigmoid(x).
            # Multiplying x by one factor after the other rounds a denormal result once.
            tail = x < TAIL[x.uop.dtype]
            power = (tail.where(x * -0.5, x) * -LOG2_E)._unary(Ops.EXP2)
            share = tail.where(power, (power + 1.0).reciprocal())
            rest = tail.where(power, 1.0)
            whole = with_derivative(share * rest, x, LOGISTIC_DERIVATIVE)
            return with_derivative(x * share * rest, x, Derivative(_silu_derivative), whole)

        return self._apply_in_float(gated)

    def swish(self) -> Self:
        """The same as `silu`.

        >>> round(Tensor(1.0).swish().item(), 5)
        0.73106
        """
        return self.silu()

    @composite
    def gelu(self, approximate: str = "tanh") -> Self:
        """x·Φ(x), Φ being the normal distribution function: approximated by tanh, or exact with
        "none".

        >>> round(Tensor(1.0).gelu().item(), 5), round(Tensor(1.0).gelu("none").item(), 5)
        (0.84119, 0.84134)
        """
        if approximate == "none":
            return self._apply_in_float(lambda x: x * (((x * math.sqrt(0.5)).erf() + 1.0) * 0.5))
        if approximate != "tanh":
            raise ValueError(f'approximate is "tanh" or "none", not {approximate!r}')

        def gated(x: Self) -> Self:
            # (1 + tanh(u)) / 2 is sigmoid(2u), which does not cancel where u is negative.
            share = (x * (x * x * GELU_CUBIC + 1.0) * GELU_SCALE).sigmoid()
            return with_derivative(x * share, x, Derivative(_gelu_derivative), share)

        return self._apply_in_float(gated)

    def quick_gelu(self) -> Self:
        """x * sigmoid(1.702 x)

        >>> round(Tensor(1.0).quick_gelu().item(), 5)
        0.8458
        """
        return self._apply_in_float(lambda x: x * (x * 1.702).sigmoid())

    def softplus(self, beta: float = 1.0) -> Self:
        """log(1 + exp(beta x)) / beta

        >>> round(Tensor(0.0).softplus().item(), 5)
        0.69315
        """
        if beta == 0:
            raise ValueError("beta of softplus must not be 0")
        return self._apply_in_float(lambda x: (x * beta).logaddexp(0.0) * (1 / beta))

    def logsigmoid(self) -> Self:
        """log(sigmoid(x))

        >>> round(Tensor(0.0).logsigmoid().item(), 5)
        -0.69315
        """
        return -((-self).softplus())

    def mish(self) -> Self:
        """x * tanh(softplus(x))

        >>> round(Tensor(1.0).mish().item(), 5)
        0.8651
        """

        def gated(x: Self) -> Self:
            # tanh(log(1 + e)) is n / (n + 2) with n = e·(e + 2); below, e is exp(-|x|).
            tail, small = _small_exp(x)
            part = small * (small + 2.0)
            above = (small * 2.0 + 1.0) / (small * 2.0 + 1.0 + small * small * 2.0)
            usual = (x < 0).where(part / (part + 2.0), above)
            steepness = _logistic(x, tail, small)
            share = tail.where(small * small, usual)
            share = with_derivative(share, x, Derivative(_mish_share_derivative), steepness)
            value = tail.where(x * small * small, x * usual)
            return with_derivative(value, x, Derivative(_mish_derivative), share, steepness)

        return self._apply_in_float(gated)

    def softsign(self) -> Self:
        """x / (1 + |x|)

        >>> Tensor([-3.0, 1.0]).softsign().tolist()
        [-0.75, 0.5]
        """
        return self._apply_in_float(lambda x: x / (x.abs() + 1))

    def hardsigmoid(self, alpha: float = 1 / 6, beta: float = 0.5) -> Self:
        """alpha * x + beta, clamped to 0 … 1.

        >>> Tensor([-9.0, 0.0, 9.0]).hardsigmoid().tolist()
        [0.0, 0.5, 1.0]
        """
        return self._apply_in_float(lambda x: (x * alpha + beta)._clamp_flat(0, 1))

    def hardswish(self) -> Self:
        """x * relu6(x + 3) / 6

        >>> Tensor([-9.0, 0.0, 9.0]).hardswish().tolist()
        [-0.0, 0.0, 9.0]
        """
        return self._apply_in_float(lambda x: x * (x + 3).relu6() * (1 / 6))


def _elu(x: T, alpha: float, width: float) -> T:
    """x where positive, else alpha·(exp(x/width) - 1); at 0 the derivative is that of the
    exponential.
    """
    is_positive = x > 0
    negative = is_positive.where(0.0, x)
    return is_positive.where(x, expm1(negative / width if width != 1 else negative) * alpha)


# Derivatives read x and the sigmoid-like factor, never the result, so that it need not be stored
# (schedule/materialize/rematerialize.py). s·(1 - s) comes first: it is 0 where x³ overflows.


def _small_exp(x: T) -> tuple[T, T]:
    """(is x far below 0, exp(-|x|)). Far below 0 the second is exp(x / 2) instead, since exp(x)
    would be a denormal number of few digits, which a product with x cannot restore.
    """
    tail = x < TAIL[x.uop.dtype]
    down = tail.where(x * 0.5, (x < 0).where(x, -x))
    # A single constant factor lets lowering recognise an exp and round its argument once.
    return tail, (down * LOG2_E)._unary(Ops.EXP2)


def _logistic(x: T, tail: T, small: T) -> T:
    """sigmoid(x) from the results of `_small_exp`."""
    usual = (x < 0).where(small, 1.0) / (small + 1.0)
    return with_derivative(tail.where(small * small, usual), x, LOGISTIC_DERIVATIVE)


def _mish_share_derivative(y: UOp, g: UOp) -> UOp:
    """The derivative of t = tanh(softplus(x)): (1 - t²)·sigmoid(x)."""
    return g * ((y.const_like(1.0) - y * y) * y.src[2])


def _mish_derivative(y: UOp, g: UOp) -> UOp:
    """The derivative of x·t with t = tanh(softplus(x)): x·(1 - t²)·sigmoid(x) + t."""
    _, x, share, steepness = y.src
    return g * (x * ((share.const_like(1.0) - share * share) * steepness) + share)


def _silu_derivative(y: UOp, g: UOp) -> UOp:
    """The derivative of x·s with s = sigmoid(x): s·(1 - s)·x + s."""
    _, x, share = y.src
    return g * (share * (share.const_like(1.0) - share) * x + share)


def _gelu_derivative(y: UOp, g: UOp) -> UOp:
    """The derivative of x·s with s = sigmoid(u): s·(1 - s)·x·u' + s, where u' is scale·(1 +
    3·cubic·x²).
    """
    _, x, share = y.src
    steepness = x * x * (3 * GELU_CUBIC * GELU_SCALE) + GELU_SCALE
    return g * (share * (share.const_like(1.0) - share) * x * steepness + share)
