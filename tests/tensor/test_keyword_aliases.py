"""Keyword aliases: dim for axis, min for min_."""

from __future__ import annotations

import numpy as np
import pytest

from glassgrad import Tensor

VALUES = np.random.default_rng(0).random((2, 3, 4)).astype(np.float32)


@pytest.mark.parametrize(
    "name",
    ["sum", "prod", "any", "all", "mean", "var", "std", "logsumexp", "argmax", "argmin"]
    + ["softmax", "softmin", "log_softmax", "cumsum", "cumprod", "logcumsumexp"],
)
def test_dim_is_axis(name: str) -> None:
    x = Tensor(VALUES)
    by_axis, by_dim = getattr(x, name)(axis=1), getattr(x, name)(dim=1)
    assert by_dim.shape == by_axis.shape and by_dim.tolist() == by_axis.tolist()


@pytest.mark.parametrize("name", ["var_mean", "std_mean", "cummax", "cummin"])
def test_dim_is_axis_of_pairs(name: str) -> None:
    x = Tensor(VALUES)
    pairs = zip(getattr(x, name)(axis=1), getattr(x, name)(dim=1), strict=True)
    assert all(one.tolist() == other.tolist() for one, other in pairs)


def test_other_arguments_stay_what_they_are() -> None:
    x = Tensor(VALUES)
    assert x.sum(dim=(0, 2), keepdim=True).shape == (1, 3, 1)
    assert x.softmax(dim=0, dtype="float64").dtype.name == "float64"
    assert x.argmax(dim=-1, keepdim=True).shape == (2, 3, 1)


def test_bounds_are_min_and_max() -> None:
    x = Tensor([-3, 0, 3])
    assert x.clamp(min=-1, max=1).tolist() == x.clamp(-1, 1).tolist() == [-1, 0, 1]
    assert x.clip(max=1).tolist() == [-3, 0, 1]


def test_one_argument_is_not_given_twice() -> None:
    x = Tensor(VALUES)
    with pytest.raises(TypeError, match="axis and dim, which are one argument"):
        x.sum(axis=0, dim=1)
    with pytest.raises(TypeError, match="axis"):
        x.sum(0, dim=1)


@pytest.mark.parametrize("name", ["max", "min"])
def test_pytorch_s_pairs_of_extremes_are_refused_with_what_to_use(name: str) -> None:
    with pytest.raises(TypeError, match=rf"{name}\(axis=…\) and arg{name}\(axis=…\)"):
        getattr(Tensor(VALUES), name)(dim=1)
