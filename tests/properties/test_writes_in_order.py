"""Random programs of in-place writes to dependent values: lazy results equal eager ones."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from glassgrad import Tensor

# A program takes one alternative of each line; `f`, `b` and `i` are in memory.
ALTERNATIVES = [
    ["c = b * 1", "c = b.clone()", "c = -b"],
    ["d = c", "d = c[:]", "d = c.permute(0)", "d = c.flip(0)"],
    ["d[1:2] += f", "d += f", "d[:1] += f", "d[1:2] *= f"],
    ["g = c", "g = c[:]", "g = c[0:2]"],
    ["j = g * 1", "j = g + 1", "j = g - i"],
    ["k = j[1]", "k = j[1:2]", "k = j[:1]", "k = j[0:2]", "k = j"],
    ["m = k.unsqueeze(-1)", "m = k.unsqueeze(0)"],
    ["k *= 2", "k += f.sum()"],
    ["m *= k", "m[0] *= k", "m.assign(m * k)"],
    ["d.assign(k.expand(d.shape))", "d.assign(k)", "d *= k"],
    ["f += m.reshape(-1)[:1]", "f += m.sum()", "f *= d[0:1]"],
]


def run(program: list[str], is_eager: bool) -> list[list[float]] | None:
    """The contents of c, d and f, or None if a line raises an error about shapes."""
    names: dict[str, object] = {
        "f": Tensor([2.0]).realize(),
        "b": Tensor([1.0, 3.0]).realize(),
        "i": Tensor([4.0, 2.0]).realize(),
    }
    for line in program:
        try:
            exec(line, names)
        except (ValueError, TypeError, IndexError):
            return None
        if is_eager:
            for value in list(names.values()):
                if isinstance(value, Tensor):
                    value.realize()
    return [names[name].tolist() for name in "dcf"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", range(40))
def test_lazy_writes_equal_eager_writes(seed: int) -> None:
    random = Random(seed)
    for _ in range(5):
        program = [random.choice(lines) for lines in ALTERNATIVES]
        wanted = run(program, is_eager=True)
        if wanted is not None and np.isfinite(np.sum([np.sum(x) for x in wanted])):
            assert run(program, is_eager=False) == wanted, "\n".join(program)


def test_a_write_that_other_writes_depend_on_happens_once() -> None:
    """`f += …` saves the old contents of f for a derivative, which rebuilds the write to c[1:2]."""
    f, b = Tensor([2.0]).realize(), Tensor([1.0, 3.0]).realize()
    c = b.clone()
    c[1:2] *= f
    j = c + 1
    c.assign(j)
    f += j[:1]
    assert c.tolist() == [2.0, 7.0]
    assert f.tolist() == [4.0]
