"""Numbers that change from run to run become arguments, so loops compile once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from glassgrad import Tensor, dtypes
from glassgrad.engine import pipeline
from glassgrad.engine.plan import lifting

ARRAY = np.random.default_rng(3).standard_normal((40, 12)).astype(np.float32)
WIDE = np.random.default_rng(4).standard_normal((60, 12)).astype(np.float32)


@pytest.fixture
def compiled_kernels(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The kernels that were compiled."""
    found: list[object] = []
    start_compiling = pipeline.start_compiling
    monkeypatch.setattr(
        pipeline, "start_compiling", lambda *args: found.append(args[0]) or start_compiling(*args)
    )
    return found


def tensor() -> Tensor:
    return Tensor(ARRAY).realize()


def written_row(i: int) -> tuple[Tensor, np.ndarray]:
    x, expected = tensor(), ARRAY.copy()
    x[i] = tensor()[2 * i] * 2
    expected[i] = ARRAY[2 * i] * 2
    return x, expected


def added_block(i: int) -> tuple[Tensor, np.ndarray]:
    x, expected = tensor(), ARRAY.copy()
    x[i : i + 7, i] += 1.5
    expected[i : i + 7, i] += 1.5
    return x, expected


def moved_block(i: int) -> tuple[Tensor, np.ndarray]:
    """The slices that are read and written overlap, by another amount each time."""
    x, expected = tensor(), ARRAY.copy()
    x[4 : 4 + 9] = x[i : i + 9]
    expected[4 : 4 + 9] = expected[i : i + 9].copy()
    return x, expected


def moved_within(i: int) -> tuple[Tensor, np.ndarray]:
    x, expected = tensor(), ARRAY.copy()
    x[i : i + 9] = x[12 - i : 21 - i] * 2
    expected[i : i + 9] = expected[12 - i : 21 - i].copy() * 2
    return x, expected


def gradient_of_part(i: int) -> tuple[Tensor, np.ndarray]:
    w = Tensor(ARRAY, requires_grad=True)
    (w[i : i + 5] ** 2).sum().backward()
    expected = np.zeros_like(ARRAY)
    expected[i : i + 5] = 2 * ARRAY[i : i + 5]
    return w.grad, expected


def padded(i: int) -> tuple[Tensor, np.ndarray]:
    return tensor().pad(((i, 20 - i), (0, 0))) * 2, np.pad(ARRAY, ((i, 20 - i), (0, 0))) * 2


def picked(i: int) -> tuple[Tensor, np.ndarray]:
    number = (tensor()[:, 0].argmax() + i) % 7
    return tensor()[number], ARRAY[(ARRAY[:, 0].argmax() + i) % 7]


LOOPS: dict[str, Callable[[int], tuple[Tensor, np.ndarray]]] = {
    "slices of lazy values": lambda i: (
        (tensor() * 2)[i : i + 9].exp(), np.exp(2 * ARRAY[i : i + 9])
    ),
    "one row of a lazy value": lambda i: ((tensor() * 2).abs()[i], np.abs(ARRAY[i] * 2)),
    "slices beside the whole": lambda i: (
        tensor()[i : i + 9] + tensor().sum(0), ARRAY[i : i + 9] + ARRAY.sum(0)
    ),
    "rolls": lambda i: (tensor().roll(i, 0) * 2, np.roll(ARRAY, i, 0) * 2),
    "rolls of two axes": lambda i: (
        tensor().roll((i, -i), (0, 1)) * 2, np.roll(ARRAY, (i, -i), (0, 1)) * 2
    ),
    "padding": padded,
    "written rows": written_row,
    "added blocks": added_block,
    "moved blocks": moved_block,
    "blocks moved within": moved_within,
    "gradients of parts": gradient_of_part,
    "bounds": lambda i: (tensor().clip(-0.1 * i, 0.1 * i), ARRAY.clip(-0.1 * i, 0.1 * i)),
    "comparisons": lambda i: (tensor() > 0.05 * i, ARRAY > np.float32(0.05 * i)),
    "whole numbers": lambda i: (tensor().cast("int32") * i + 3, ARRAY.astype(np.int32) * i + 3),
    "divisors": lambda i: ((tensor() * 9).cast("int32") // i, (ARRAY * 9).astype(np.int32) // i),
    "remainders": lambda i: ((tensor() * 9).cast("int32") % i, (ARRAY * 9).astype(np.int32) % i),
    "triangles": lambda i: (tensor().tril(i) + 1, np.tril(ARRAY, i) + 1),
    "ranges": lambda i: (Tensor.arange(i, i + 40) * 2, np.arange(i, i + 40) * 2),
    "float64": lambda i: (tensor().double() * (i / 3), ARRAY.astype(np.float64) * (i / 3)),
    "computed indices": picked,
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_is_right_and_compiles_a_few_times(
    name: str, compiled_kernels: list[object]
) -> None:
    counts = []
    for i in (*range(1, 12), 9, 9, 10, 10, 9):  # repeated values as well
        found, expected = LOOPS[name](i)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found.numpy(), expected, rtol=2e-5, atol=1e-6)
        counts.append(len(compiled_kernels))
    assert counts[-1] == counts[4]


def test_numbers_that_do_not_change_stay_in_the_code(compiled_kernels: list[object]) -> None:
    for _ in range(4):
        (tensor() * 3 + 1).realize()
    assert len(compiled_kernels) == 1


def test_low_precision_and_special_numbers_keep_their_bits() -> None:
    values = [0.1, -0.0, float("inf"), float("nan"), 3.0, -1e-7]
    for dtype in (dtypes.float16, dtypes.bfloat16, dtypes.fp8e5m2, dtypes.float64):
        x = Tensor.zeros(3).cast(dtype).contiguous().realize()
        for value in values:
            found = (x - 0.0).maximum(x).where(x, value).copysign(1.0)
            lifted = Tensor.full((3,), value).cast(dtype) + x
            expected = Tensor(np.full(3, value)).cast(dtype).realize() + x
            np.testing.assert_array_equal(lifted.float().numpy(), expected.float().numpy())
            assert found.shape == (3,)


def test_captured_functions_keep_their_own_rules() -> None:
    from glassgrad import TinyJit

    x = tensor()
    for factor in (2.0, 3.0, 4.0, 5.0):
        step = TinyJit(lambda t, factor=factor: (t * factor).realize())
        for _ in range(3):
            np.testing.assert_array_equal(step(x).numpy(), ARRAY * np.float32(factor))


def test_errors_name_the_line_also_where_numbers_are_lifted() -> None:
    from glassgrad.base.errors import AxisError

    index = Tensor([1, 2, 50]).realize()
    for i in range(1, 6):
        with pytest.raises(AxisError, match="out of range for axis 0 of size 40") as caught:
            (tensor() * i)[index].realize()
        assert "test_lifting.py" in str(caught.value)


def test_too_many_numbers_stay_in_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifting, "MAX_LIFTED", 2)
    for i in range(1, 6):
        found = ((tensor() * i + 2 * i).exp() - 3 * i).numpy()
        np.testing.assert_allclose(found, np.exp(ARRAY * i + 2 * i) - 3 * i, rtol=2e-5)


def test_functions_keep_their_digits_beside_numbers_that_change() -> None:
    """Lowering recognises `exp` and `cos` by a constant, which a user's program may vary."""
    x = Tensor(np.linspace(-20, 20, 200, dtype=np.float32)).realize()
    for i in range(1, 6):
        (x * (i / 3)).exp2().realize()
        (x + i / 3).sin().realize()
        exact = x.numpy().astype(np.float64)
        np.testing.assert_allclose(x.exp().numpy(), np.exp(exact), rtol=1.5e-7)
        np.testing.assert_allclose(x.cos().numpy(), np.cos(exact), rtol=3e-7)
