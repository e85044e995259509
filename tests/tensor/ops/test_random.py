"""Random numbers: repeatable in any order of realization, with the right distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from glassgrad import Context, Tensor, dtypes
from glassgrad.ir.ops import Ops

ON_BOTH_BACKENDS = True


def test_a_seed_gives_the_same_numbers_again() -> None:
    Tensor.manual_seed(7)
    first = [Tensor.rand(3).tolist(), Tensor.randn(2).tolist()]
    Tensor.manual_seed(7)
    assert [Tensor.rand(3).tolist(), Tensor.randn(2).tolist()] == first
    Tensor.manual_seed(8)
    assert Tensor.rand(3).tolist() != first[0]


def test_numbers_do_not_depend_on_when_they_are_realised() -> None:
    Tensor.manual_seed(1)
    x, y = Tensor.rand(4), Tensor.rand(4)
    in_order = [x.tolist(), y.tolist()]
    Tensor.manual_seed(1)
    x, y = Tensor.rand(4), Tensor.rand(4)
    backwards = [y.tolist(), x.tolist()][::-1]
    assert in_order == backwards
    assert in_order[0] != in_order[1]


def test_two_calls_record_the_same_program() -> None:
    x, y = Tensor.rand(4), Tensor.rand(4)
    consts = [
        {node.arg for node in tensor.uop.toposort() if node.op is Ops.CONST} for tensor in (x, y)
    ]
    assert consts[0] == consts[1]
    assert x.uop is not y.uop


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_uniform_numbers_fill_the_interval_without_its_end(dtype: str) -> None:
    Tensor.manual_seed(3)
    x = Tensor.rand(20_000, dtype=dtype)
    assert x.dtype is dtypes.named(dtype)
    values = x.cast("float64").numpy()
    assert values.min() >= 0
    assert values.max() < 1
    assert values.mean() == pytest.approx(0.5, abs=0.01)
    assert values.var() == pytest.approx(1 / 12, abs=0.005)
    counts = np.histogram(values, 10, (0, 1))[0]
    assert (np.abs(counts - 2000) < 5 * math.sqrt(2000)).all()


def test_normal_numbers_have_the_moments_of_a_normal_distribution() -> None:
    Tensor.manual_seed(5)
    values = Tensor.randn(50_000).numpy().astype(float)
    assert values.mean() == pytest.approx(0, abs=0.02)
    assert values.std() == pytest.approx(1, abs=0.02)
    assert (values**3).mean() == pytest.approx(0, abs=0.06)
    assert (values**4).mean() == pytest.approx(3, abs=0.15)
    scaled = Tensor.normal(50_000, mean=3, std=2).numpy()
    assert scaled.mean() == pytest.approx(3, abs=0.05)
    assert scaled.std() == pytest.approx(2, abs=0.05)


def test_randint_hits_every_number_and_no_other() -> None:
    Tensor.manual_seed(2)
    values = Tensor.randint(7000, low=-3, high=4).numpy()
    assert values.dtype == np.int32
    found, counts = np.unique(values, return_counts=True)
    assert found.tolist() == [-3, -2, -1, 0, 1, 2, 3]
    assert (np.abs(counts - 1000) < 5 * math.sqrt(1000)).all()


def test_uniform_lies_between_its_bounds() -> None:
    values = Tensor.uniform(1000, low=-2, high=5).numpy()
    assert -2 <= values.min() < -1.5
    assert 4.5 < values.max() < 5


@pytest.mark.parametrize(
    ("name", "bound"),
    [
        ("scaled_uniform", (30 * 40) ** -0.5),
        ("glorot_uniform", math.sqrt(6 / 70)),
        ("kaiming_uniform", math.sqrt(3) * math.sqrt(2 / (1 + 0.01**2)) / math.sqrt(40)),
    ],
)
def test_initialisers_keep_their_bounds(name: str, bound: float) -> None:
    values = np.abs(getattr(Tensor, name)(30, 40).numpy())
    assert values.max() <= bound * 1.0001
    assert values.max() > bound * 0.98


def test_kaiming_normal_has_its_deviation() -> None:
    values = Tensor.kaiming_normal(200, 100).numpy()
    assert values.std() == pytest.approx(math.sqrt(2 / (1 + 0.01**2)) / 10, rel=0.03)


def test_like_methods_take_shape_and_dtype() -> None:
    x = Tensor.zeros(2, 3, dtype="float64")
    assert (x.rand_like().shape, x.rand_like().dtype) == ((2, 3), dtypes.float64)
    assert x.randn_like(dtype="float32").dtype is dtypes.float32


def test_dropout_works_in_training_only() -> None:
    x = Tensor.ones(4000)
    assert x.dropout(0.5).tolist() == [1.0] * 4000
    with Context(TRAINING=1):
        values = x.dropout(0.25).numpy()
        assert x.dropout(1.0).tolist() == [0.0] * 4000
    with Tensor.train():
        assert 0.0 in x.dropout(0.5).tolist()
    assert set(np.unique(values)) == {np.float32(0), np.float32(1 / 0.75)}
    assert (values == 0).mean() == pytest.approx(0.25, abs=0.03)


def test_shapes_without_elements_are_fine() -> None:
    assert Tensor.rand(0, 3).tolist() == []
    assert Tensor.randn(2, 0).shape == (2, 0)
    assert isinstance(Tensor.rand().item(), float)
