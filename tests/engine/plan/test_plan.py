"""Plans: which values are temporaries, and their lifetimes."""

from __future__ import annotations

import numpy as np
from support.compiler.lifetimes import peak_by_lifetime
from support.compiler.schedules import memory, planned

from glassgrad import Tensor
from glassgrad.engine.plan.arena import Lifetime, assign_offsets
from glassgrad.engine.plan.memory import _temporaries
from glassgrad.ir.stages import Schedule
from glassgrad.ir.uop import UOp
from glassgrad.schedule import base_buffer


def temporaries(schedule: Schedule) -> dict[UOp, Lifetime]:
    known = {base_buffer(output): 0 for output in schedule.outputs}
    known |= {node: 0 for slots in schedule.buffers for node in slots if not node.src}
    return _temporaries(schedule, known)


SIZE = 512  # of matrices too large to share a kernel


def square() -> Tensor:
    return memory(SIZE, SIZE)


def chain(length: int) -> Tensor:
    x = square()
    for _ in range(length):
        x = (x @ square()).relu()
    return x


def test_a_chain_of_products_needs_two_temporaries_however_long_it_is() -> None:
    nbytes = SIZE * SIZE * 4
    for length in (4, 8, 16):
        schedule = planned(chain(length))
        lifetimes = temporaries(schedule)
        assert len(lifetimes) == length - 1
        assert peak_by_lifetime(lifetimes) == 2 * nbytes
        assert assign_offsets(lifetimes)[1] == 2 * nbytes


def test_a_temporary_lives_from_its_first_kernel_to_its_last() -> None:
    first = square() @ square()
    last = (first @ square()) @ square() + first
    lifetimes = temporaries(planned(last))
    assert sorted((lifetime.first, lifetime.last) for lifetime in lifetimes.values()) == [
        (0, 2),
        (1, 2),
    ]


def test_results_are_not_temporaries() -> None:
    x = memory(256, 256) @ memory(256, 256)
    y = x @ memory(256, 256)
    assert temporaries(planned(x, y)) == {}


def test_results_do_not_share_memory_with_temporaries_of_later_runs() -> None:
    """The same plan runs again, and earlier results stay unchanged."""
    rng = np.random.default_rng(0)
    weights = [rng.integers(-2, 3, (64, 64)).astype(np.float32) for _ in range(3)]
    kept, wanted = [], []
    for n in range(4):
        x = rng.integers(-2, 3, (64, 64)).astype(np.float32)
        out = Tensor(x)
        want = x
        for w in weights:
            out, want = out @ Tensor(w), want @ w
        kept.append(out.realize())
        wanted.append(want)
        for old, right in zip(kept, wanted, strict=True):
            np.testing.assert_array_equal(old.numpy(), right)
        assert len(kept) == n + 1
