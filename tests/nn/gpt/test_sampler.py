from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from glassgrad.base.errors import SettingError
from glassgrad.nn.gpt import Sampler

CHANCES = np.array([0.5, 0.1, 0.25, 0.0, 0.15])
with np.errstate(divide="ignore"):
    LOGITS = np.log(CHANCES).astype(np.float32)


def shares(sampler: Sampler, count: int = 4000) -> np.ndarray[Any, Any]:
    drawn = sampler(np.tile(LOGITS, (count, 1)))
    return np.bincount(drawn, minlength=5) / count


def test_tokens_are_drawn_as_often_as_they_are_likely() -> None:
    np.testing.assert_allclose(shares(Sampler(1.0, seed=1)), CHANCES, atol=0.03)


def test_a_temperature_of_zero_takes_the_likeliest() -> None:
    assert Sampler(0)(np.stack([LOGITS, -LOGITS[::-1]]))[0] == 0


def test_a_low_temperature_sharpens() -> None:
    wanted = CHANCES**2 / (CHANCES**2).sum()
    np.testing.assert_allclose(shares(Sampler(0.5, seed=2)), wanted, atol=0.03)


def test_top_k_keeps_the_likeliest() -> None:
    wanted = np.array([0.5, 0, 0.25, 0, 0]) / 0.75
    np.testing.assert_allclose(shares(Sampler(1.0, top_k=2, seed=3)), wanted, atol=0.03)


@pytest.mark.parametrize(("share", "kept"), [(0.4, [0]), (0.7, [0, 2]), (1.0, [0, 1, 2, 4])])
def test_top_p_keeps_the_fewest_with_that_probability(share: float, kept: list[int]) -> None:
    wanted = np.zeros(5)
    wanted[kept] = CHANCES[kept] / CHANCES[kept].sum()
    np.testing.assert_allclose(shares(Sampler(1.0, top_p=share, seed=4)), wanted, atol=0.03)


def test_equal_seeds_draw_equal_tokens() -> None:
    rows = np.tile(LOGITS, (50, 1))
    one, two, other = (Sampler(1.0, seed=seed)(rows) for seed in (5, 5, 6))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": -1}, "temperature must be a non-negative number"),
        ({"top_k": 0}, "top_k must be at least 1"),
        ({"top_p": 0.0}, "top_p must be in"),
        ({"top_p": 1.5}, "top_p must be in"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        Sampler(**options)
