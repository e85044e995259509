"""interpolate against NumPy's and PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
from support.oracle import oracle
from support.references.finite_differences import check
from support.values.arrays import distinct, numbers, same

from glassgrad import Tensor

ON_BOTH_BACKENDS = True
SIZES = [(3, 4), (5, 6), (10, 7), (1, 1), (13, 2)]


@pytest.mark.parametrize("size", [1, 2, 5, 9, 14])
def test_linear_is_numpys_interp(size: int) -> None:
    x = distinct((5,))
    centres = (np.arange(size) + 0.5) * 5 / size - 0.5
    wanted = np.interp(centres, np.arange(5), x)
    same(Tensor(x).reshape(1, 1, 5).interpolate((size,)), wanted.reshape(1, 1, -1), rtol=1e-12)
    ends = np.interp(np.linspace(0, 4, size) if size > 1 else [0], np.arange(5), x)
    got = Tensor(x).interpolate((size,), align_corners=True)
    same(got, ends, rtol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 5, 9, 14])
def test_nearest_picks_elements(size: int) -> None:
    x = numbers((2, 5))
    line = np.arange(size)
    same(Tensor(x).interpolate((size,), mode="nearest"), x[:, line * 5 // size])
    exact = np.floor((line + 0.5) * 5 / size).astype(int)
    same(Tensor(x).interpolate((size,), mode="nearest-exact"), x[:, exact])


@pytest.mark.parametrize("size", SIZES)
def test_images_are_interpolated_as_pytorch_does(size: tuple[int, int]) -> None:
    torch = oracle("torch")
    x = distinct((2, 3, 5, 6))
    for mode, theirs, options in (
        ("nearest", "nearest", {}),
        ("nearest-exact", "nearest-exact", {}),
        ("linear", "bilinear", {"align_corners": False}),
        ("linear", "bilinear", {"align_corners": True}),
        ("cubic", "bicubic", {"align_corners": False}),
        ("cubic", "bicubic", {"align_corners": True}),
    ):
        wanted = torch.nn.functional.interpolate(torch.tensor(x), size, mode=theirs, **options)
        same(Tensor(x).interpolate(size, mode, **options), wanted.numpy(), rtol=1e-9, atol=1e-12)


def test_ints_stay_ints() -> None:
    x = Tensor([[0, 200]], dtype="uint8").interpolate((4,))
    assert x.tolist() == [[0, 50, 150, 200]]
    assert x.dtype.name == "uint8"


def test_gradients_of_interpolation() -> None:
    x = distinct((2, 3, 4))
    check(lambda t: (t * t).interpolate((5, 3)), x)
    check(lambda t: (t * t).interpolate((2, 6), mode="nearest"), x)
    check(lambda t: (t * t).interpolate((5, 3), mode="cubic"), x)


def test_cubic_goes_through_a_line_and_overshoots_a_step() -> None:
    line = Tensor([[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]]).interpolate((11,), "cubic", align_corners=True)
    assert line.tolist()[0][2:9] == pytest.approx([1, 1.5, 2, 2.5, 3, 3.5, 4])
    step = Tensor([0, 0, 0, 255, 255, 255], dtype="uint8").interpolate((12,), "cubic")
    assert step.dtype.name == "uint8"
    assert (step.min().item(), step.max().item()) == (0, 255)
