"""The layout of floats."""

import struct

import numpy as np
from support.compiler.on_cpu import apply
from support.values.float_samples import both

from glassgrad.base.dtype import DType, dtypes
from glassgrad.lower.math.float_layout import FLOAT_LAYOUTS, upper_half, upper_part


@both
def test_the_rounder_leaves_the_nearest_integer_in_the_low_bits(dtype: DType) -> None:
    form = FLOAT_LAYOUTS[dtype]
    letters = ("<f", "<i") if dtype is dtypes.float32 else ("<d", "<q")
    for number in (0.0, 1.0, -3.0, 100.4, -7.5):
        (bits,) = struct.unpack(letters[1], struct.pack(letters[0], form.rounder + number))
        assert bits - form.rounder_bits == round(number)


def test_an_upper_part_has_the_given_number_of_bits() -> None:
    assert upper_part(0b11111 / 4, 3) == 0b11100 / 4
    assert upper_part(-5.0, 2) == -4.0
    assert upper_part(6.0, 8) == 6.0


def test_products_of_upper_halves_are_exact() -> None:
    x = np.random.default_rng(0).random(64)
    upper = apply(upper_half, [x], [dtypes.float64], dtypes.float64)
    assert (np.abs(x - upper) < 2.0**-19 * x).all()
    assert all(
        (value * 2**30) ** 2 == int(value * 2**30) ** 2 for value in upper[upper > 0.5].tolist()
    )
