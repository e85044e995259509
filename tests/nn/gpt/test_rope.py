"""Scaled frequencies, against what transformers 5 computes for the same settings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from glassgrad.base.errors import FormatError
from glassgrad.nn.gpt.rope import KEYS, Rope, frequencies, read_scaling

# Settings, theta, and the frequencies of heads of 16 numbers in a context of 64; the factor.
CASES: dict[str, tuple[dict[str, Any], float, list[float], float]] = {
    "linear": (
        {"rope_type": "linear", "factor": 4.0}, 500.0,
        [0.25, 0.1149658, 0.05286856, 0.02431231, 0.01118034, 0.005141428, 0.002364354, 0.00108728],
        1.0,
    ),
    "llama3": (
        {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
         "original_max_position_embeddings": 32}, 1000.0,
        [1.0, 0.1938711, 0.02222849, 0.009373677, 0.003952847, 0.001666902, 0.0007029267,
         0.0002964217], 1.0,
    ),
    "yarn": (
        {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}, 1000.0,
        [1.0, 0.2635603, 0.04445698, 0.01874735, 0.007905695, 0.003333804, 0.001405853,
         0.0005928435], 1.138629436111989,
    ),
    "yarn by the context": (
        {"type": "yarn", "factor": None, "original_max_position_embeddings": 16, "beta_fast": 4,
         "beta_slow": 0.5, "attention_factor": 1.3}, 1000.0,
        [1.0, 0.2635603, 0.04445698, 0.01874735, 0.007905695, 0.003333804, 0.001405853,
         0.0005928435], 1.3,
    ),
    "yarn with weights": (
        {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32, "mscale": 0.7,
         "mscale_all_dim": 0.4, "truncate": False}, 1000.0,
        [1.0, 0.2539353, 0.04445698, 0.01874735, 0.007905695, 0.003333804, 0.001405853,
         0.0005928435], 1.0394038191422568,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_frequencies_are_those_of_transformers(name: str) -> None:
    settings, theta, wanted, factor = CASES[name]
    found = read_scaling(settings, Rope(theta, 16, 64))
    scaled = np.array(frequencies(theta, 16)) / np.array(found.divisors)
    np.testing.assert_allclose(scaled, wanted, rtol=1e-6)
    assert found.factor == pytest.approx(factor)


@pytest.mark.parametrize("kind", ["default", "dynamic"])
def test_some_kinds_change_nothing_within_the_context(kind: str) -> None:
    assert read_scaling({"rope_type": kind, "factor": 2.0}, Rope(100.0, 8, 64)) == ((), 1.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rope_type": "longrope"}, "unknown scaling of rotary embeddings: 'longrope'"),
        ({"rope_type": "linear", "long_factor": [1.0]}, "unknown setting 'long_factor'"),
        ({"rope_type": "linear"}, "factor of rotary embeddings"),
        ({"rope_type": "linear", "factor": -1}, "positive number, not -1"),
        ({"rope_type": "linear", "factor": "x"}, "positive number, not 'x'"),
        ({"rope_type": "llama3", "factor": 2, "low_freq_factor": 1}, "high_freq_factor of"),
        (
            {"rope_type": "llama3", "factor": 2, "low_freq_factor": 1, "high_freq_factor": 1},
            "are both 1.0",
        ),
        ({"rope_type": "yarn", "factor": 2, "beta_fast": "x"}, "beta_fast of"),
    ],
)
def test_settings_that_are_not_understood_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read_scaling(settings, Rope(100.0, 8, 64))


def test_yarn_needs_frequencies_that_fall() -> None:
    with pytest.raises(FormatError, match="theta above 1"):
        read_scaling({"rope_type": "yarn", "factor": 2.0}, Rope(1.0, 8, 64))


def test_every_key_of_transformers_is_known_or_refused() -> None:
    """The keys of its class RopeParameters, but for those of longrope, which is refused."""
    keys = {
        "rope_theta", "rope_type", "partial_rotary_factor", "factor",
        "original_max_position_embeddings", "attention_factor", "beta_fast", "beta_slow",
        "low_freq_factor", "high_freq_factor", "mscale", "mscale_all_dim", "truncate",
    }  # fmt: skip
    assert keys <= KEYS
    for key in ("short_factor", "long_factor", "mrope_section"):
        with pytest.raises(FormatError, match=key):
            read_scaling({key: [1]}, Rope(100.0, 8, 64))
