"""Coefficients of tanh near 0 and of erf, for each dtype that they are computed in.

tanh is a truncated continued fraction, x/(1 + x²/(3 + x²/(5 + …))), as a ratio of polynomials. erf
is x·p(x²) below 1, and above it 1 - exp(-x²)·q(1/(x + shift) - centre); p and q interpolate at
Chebyshev points, with an error below a third of a unit in the last place.
"""

from __future__ import annotations

from glassgrad.base.dtype import DType, dtypes
from glassgrad.base.fast_dataclasses import frozen

Coefficients = tuple[float, ...]  # highest power first


@frozen
class Tanh:
    """tanh(x) = x * above(x²) / below(x²) for |x| < limit."""

    limit: float
    above: Coefficients
    below: Coefficients


@frozen
class Erf:
    """See above; beyond `limit` the result is 1."""

    limit: float
    shift: float
    centre: float
    inner: Coefficients
    outer: Coefficients


def _fraction(depth: int) -> tuple[Coefficients, Coefficients]:
    """The continued fraction with its last term at 2*depth-1, as two polynomials of x²."""
    above, below = [1], [2 * depth - 1]  # lowest power first; the value is below/above
    for odd in range(2 * depth - 3, 0, -2):
        shifted = [0, *above]
        width = max(len(below), len(shifted))
        padded = [p + [0] * (width - len(p)) for p in ([odd * c for c in below], shifted)]
        above, below = below, [p + q for p, q in zip(*padded, strict=True)]
    return tuple(map(float, reversed(above))), tuple(map(float, reversed(below)))


TANH: dict[DType, Tanh] = {
    dtypes.float32: Tanh(0.625, *_fraction(5)),
    dtypes.float64: Tanh(0.625, *_fraction(8)),
}

ERF: dict[DType, Erf] = {
    dtypes.float32: Erf(
        4.0,
        2.0,
        0.25,
        (
            7.875875063e-05, -0.0008016864287, 0.005189087423, -0.02685421201,
            0.1128359472, -0.3761262667, 1.128379166,
        ),
        (
            -3.432347397, -6.974607494, 0.9554871703, 5.053971592,
            3.866531224, 1.708743959, 0.2553956763,
        ),
    ),
    dtypes.float64: Erf(
        6.0,
        3.0,
        0.18055555555555555,
        (
            -7.795898827002142e-10, 1.3720064546777686e-08, -1.6208483801871705e-07,
            1.6447424703317362e-06, -1.492473690741966e-05, 0.00012055294904839707,
            -0.0008548325975389692, 0.0052239776071164225, -0.02686617064323777,
            0.11283791670945006, -0.37612638903183543, 1.1283791670955126,
        ),
        (
            -1589.862415307421, 99628.68759820152, -6893.406046743991, -20431.01372174297,
            1456.2033855430425, 4347.229166700174, 120.5166897399, -1024.494170061809,
            -311.42180418713133, 174.43087291923533, 205.3198128794423, 106.60599383708734,
            37.961255608972934, 10.305469638847807, 2.222800909838916, 0.20798329133342885,
        ),
    ),
}  # fmt: skip
