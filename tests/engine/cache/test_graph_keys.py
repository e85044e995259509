"""Keys: graphs of equal structure share a plan, others do not."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from glassgrad import Tensor, dtypes
from glassgrad.base.config import Context
from glassgrad.engine.cache import graph_keys as cache
from glassgrad.engine.cache.graph_keys import KERNELS, PLANS, Cache, signature
from glassgrad.ir.ops import Ops
from glassgrad.ir.uop import UOp
from glassgrad.memory.view import View


def buffer(array: np.ndarray) -> UOp:
    return UOp(Ops.BUFFER, dtypes.named(array.dtype.name), (), View.from_host(array))


def key(*roots: UOp) -> object:
    return signature(roots).key


def zeros(*shape: int, dtype: str = "float32") -> UOp:
    return buffer(np.zeros(shape, dtype))


def test_graphs_of_equal_structure_have_equal_keys() -> None:
    assert key(zeros(3, 4) + zeros(3, 4)) == key(zeros(3, 4) + zeros(3, 4))
    assert hash(key(zeros(3) * 2.0)) == hash(key(zeros(3) * 2.0))


DIFFERENT: dict[str, Callable[[], tuple[UOp, UOp]]] = {
    "shapes": lambda: (zeros(3, 4) + 1.0, zeros(4, 3) + 1.0),
    "dtypes": lambda: (zeros(3, dtype="int32").alu(Ops.NEG), zeros(3, dtype="int64").alu(Ops.NEG)),
    "strides": lambda: (zeros(3, 4) + 1.0, buffer(np.zeros((4, 3), np.float32).T) + 1.0),
    "constants": lambda: (zeros(3) * 2.0, zeros(3) * 3.0),
    "signs of zero": lambda: (zeros(3) * 0.0, zeros(3) * -0.0),
    "ops": lambda: (zeros(3) + 2.0, zeros(3) * 2.0),
    "order": lambda: (zeros(3) - zeros(4, 3), zeros(4, 3) - zeros(3)),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_graphs_that_differ_have_different_keys(what: str) -> None:
    one, two = DIFFERENT[what]()
    assert key(one) != key(two)


def test_one_buffer_twice_is_not_two_buffers() -> None:
    x = zeros(3)
    assert key(x + x) != key(zeros(3) + zeros(3))


def test_views_of_one_storage_are_told_from_views_of_two() -> None:
    whole = View.from_host(np.zeros(8, np.float32))
    halves = [
        UOp(Ops.BUFFER, dtypes.float32, (), replace(whole, shape=(4,), offset=start))
        for start in (0, 4)
    ]
    assert key(halves[0] + halves[1]) != key(zeros(4) + zeros(4))
    assert key(halves[0] + 1.0) == key(halves[1] + 1.0)  # the offset is an argument of the launch
    later = UOp(Ops.BUFFER, dtypes.float32, (), replace(whole, shape=(4,), offset=2))
    writes = [UOp(Ops.ASSIGN, x.dtype, (halves[0], x + 1.0), ()) for x in (halves[1], later)]
    assert key(writes[0]) != key(writes[1])  # but the overlap of buffers is part of the key
    versions = [UOp(Ops.BUFFER, dtypes.float32, (), replace(whole)) for _ in "ab"]
    assert key(versions[0] + versions[1]) != key(zeros(8) + zeros(8))


def test_the_key_depends_on_the_roots() -> None:
    x = zeros(3)
    more = x + 1.0
    assert key(more * 2.0) != key(more * 2.0, more)


def test_nan_is_the_same_constant_every_time() -> None:
    assert key(zeros(3) * math.nan) == key(zeros(3) * float("nan"))


def test_settings_are_part_of_the_key() -> None:
    x = zeros(3) + 1.0
    plain = key(x)
    with Context(NOOPT=1):
        assert key(x) != plain


def test_a_realized_value_has_the_key_of_its_buffer() -> None:
    x, held = zeros(3), zeros(3)
    more = x + 1.0
    more.realized = held
    found, leaves, *_ = signature([more * 2.0])
    more.realized = None
    assert leaves == [held]
    assert found == key(zeros(3) * 2.0)


def test_leaves_come_in_the_order_in_which_the_key_names_them() -> None:
    x, y = zeros(3), zeros(4, 3)
    assert signature([x + y]).leaves == [x, y]
    assert signature([y + x]).leaves == [y, x]


def test_copies_come_innermost_first() -> None:
    inner = UOp(Ops.COPY, dtypes.float32, (zeros(3),), "CPU:1")
    outer = UOp(Ops.COPY, dtypes.float32, (inner + 1.0,), "CPU")
    assert signature([outer * 2.0]).copies == [inner, outer]


def test_a_deep_graph_has_a_key() -> None:
    x = zeros(3)
    for _ in range(10_000):
        x = x + 1.0
    assert len(signature([x]).key) > 10_000


# ---------------------------------------------------------------------- plans and kernels


def test_a_plan_is_shared_by_other_contents() -> None:
    cache.clear()
    for n in range(3):
        x = Tensor([1.0 * n, 2.0])
        assert (x * 2 + 1).tolist() == [2.0 * n + 1, 5.0]
    assert len(PLANS) == 1


def test_another_shape_has_another_plan_and_kernel() -> None:
    cache.clear()
    (Tensor([1.0, 2.0]) * 3).realize()
    (Tensor([1.0, 2.0, 3.0]) * 3).realize()
    assert len(PLANS) == 2
    assert len(KERNELS) == 2


def test_equal_kernels_of_different_graphs_are_compiled_once() -> None:
    cache.clear()
    x, y = Tensor([1.0, 2.0]).realize(), Tensor([3.0, 4.0]).realize()
    (x * 5).realize()
    Tensor.realize(x * 5, y * 5)
    assert len(PLANS) == 2
    assert len(KERNELS) == 1


def test_the_sign_of_zero_survives_the_cache() -> None:
    x = Tensor([1.0, -2.0]).realize()
    signs = [[math.copysign(1, v) for v in (x * zero).tolist()] for zero in (0.0, -0.0)]
    assert signs == [[1, -1], [-1, 1]]


def test_a_cache_evicts_the_least_recently_used_entry() -> None:
    kept: Cache[str] = Cache(2)
    kept["a"], kept["b"] = "A", "B"
    assert kept.get("a") == "A"
    kept["c"] = "C"
    assert kept.get("b") is None
    assert (kept.get("a"), kept.get("c"), len(kept)) == ("A", "C", 2)
    kept.clear()
    assert len(kept) == 0
