"""Scaled rotary position embeddings: settings -> a divisor of each frequency.

Every supported scaling (linear, YaRN, Llama 3's) is a divisor for each frequency and a factor of
cosines and sines.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, floor, isfinite, log, pi
from typing import Any, NamedTuple

from glassgrad.base.errors import FormatError

KINDS = ("default", "linear", "dynamic", "llama3", "yarn")
KEYS = frozenset(
    (
        "rope_type", "type", "rope_theta", "partial_rotary_factor", "factor", "low_freq_factor",
        "high_freq_factor", "original_max_position_embeddings", "attention_factor", "beta_fast",
        "beta_slow", "mscale", "mscale_all_dim", "truncate",
    )
)  # fmt: skip


class Scaling(NamedTuple):
    """A divisor for each frequency, or none, and a factor of cosines and sines."""

    divisors: tuple[float, ...] = ()
    factor: float = 1.0


class Rope(NamedTuple):
    """The unscaled frequencies, theta^(-2i/width)."""

    theta: float
    width: int
    context: int  # maximum number of positions


def frequencies(theta: float, width: int) -> list[float]:
    """The angle between neighbouring positions for each pair of elements, highest first."""
    return [theta ** (-2 * pair / width) for pair in range(width // 2)]


def read_scaling(found: Mapping[str, Any], rope: Rope) -> Scaling:
    """The scaling that `rope_parameters` or `rope_scaling` of a config.json specifies."""
    for key in found.keys() - KEYS:
        raise FormatError(f"unknown setting {key!r:.40} of rotary embeddings")
    kind = found.get("rope_type", found.get("type", "default"))
    if kind not in KINDS:
        raise FormatError(f"unknown scaling of rotary embeddings: {kind!r:.40}", f"one of {KINDS}")
    if kind in ("default", "dynamic"):  # dynamic scaling starts beyond the model's context
        return Scaling()
    if kind == "linear":
        return linear(_number(found, "factor"), rope)
    if kind == "llama3":
        names = ("factor", "low_freq_factor", "high_freq_factor")
        factor, low, high = (_number(found, name) for name in names)
        return llama3(factor, low, high, _original(found, rope), rope)
    return _read_yarn(found, rope)


def linear(factor: float, rope: Rope) -> Scaling:
    return Scaling((factor,) * (rope.width // 2))


def llama3(factor: float, low: float, high: float, original: float, rope: Rope) -> Scaling:
    """Divide frequencies of fewer than `low` periods in the original context by `factor`, keep
    those of more than `high` periods, and interpolate between.
    """
    if high == low:
        raise FormatError(f"low_freq_factor and high_freq_factor are both {low}")

    def divisor(frequency: float) -> float:
        periods = original * frequency / (2 * pi)
        kept = min(max((periods - low) / (high - low), 0.0), 1.0)
        return 1 / (kept + (1 - kept) / factor)

    return Scaling(tuple(map(divisor, frequencies(rope.theta, rope.width))))


def yarn(
    factor: float,
    original: float,
    rope: Rope,
    attention: float | None = None,
    beta: tuple[float, float] = (32.0, 1.0),
    is_truncated: bool = True,
) -> Scaling:
    """Keep pairs of more than beta[0] periods, divide those of fewer than beta[1] by `factor`."""
    if not rope.theta > 1:
        raise FormatError(f"YaRN needs a theta above 1, not {rope.theta}")

    def pair_of_periods(periods: float) -> float:
        return rope.width * log(original / (periods * 2 * pi)) / (2 * log(rope.theta))

    low, high = (pair_of_periods(periods) for periods in beta)
    if is_truncated:
        low, high = floor(low), ceil(high)
    low, high = max(low, 0), min(high, rope.width - 1)
    high += 0.001 if low == high else 0.0
    ramps = [min(max((pair - low) / (high - low), 0.0), 1.0) for pair in range(rope.width // 2)]
    divisors = tuple(1 / (1 - ramp + ramp / factor) for ramp in ramps)
    return Scaling(divisors, magnitude(factor) if attention is None else attention)


def magnitude(factor: float, weight: float = 1.0) -> float:
    """YaRN's factor of cosines and sines."""
    return 1.0 if factor <= 1 else 0.1 * weight * log(factor) + 1.0


def _read_yarn(found: Mapping[str, Any], rope: Rope) -> Scaling:
    original = _original(found, rope)
    is_given = found.get("factor") is not None
    factor = _number(found, "factor") if is_given else rope.context / original
    attention = None
    if found.get("attention_factor") is not None:
        attention = _number(found, "attention_factor")
    elif found.get("mscale") and found.get("mscale_all_dim"):
        weights = (_number(found, name) for name in ("mscale", "mscale_all_dim"))
        above, below = (magnitude(factor, weight) for weight in weights)
        attention = above / below
    beta = (
        _number(found, "beta_fast") if found.get("beta_fast") else 32.0,
        _number(found, "beta_slow") if found.get("beta_slow") else 1.0,
    )
    return yarn(factor, original, rope, attention, beta, bool(found.get("truncate", True)))


def _original(found: Mapping[str, Any], rope: Rope) -> float:
    name = "original_max_position_embeddings"
    return _number(found, name) if found.get(name) is not None else float(rope.context)


def _number(found: Mapping[str, Any], name: str) -> float:
    number: Any = found.get(name)
    if type(number) not in (int, float) or not isfinite(number) or number <= 0:
        raise FormatError(
            f"{name} of rotary embeddings must be a positive number, not {number!r:.40}"
        )
    return float(number)
