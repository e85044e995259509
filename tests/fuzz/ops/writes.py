"""In-place writes to whole tensors, slices and views, and statements that compute nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz.ops.elementwise import can_broadcast
from fuzz.ops.indexing import indices
from fuzz.ops.movement import basic_index
from fuzz.ops.table import Choice, Index, Op, Text, same
from fuzz.pool import NotApplicable, Pool, axes, floats, full, numbers
from fuzz.programs import Array
from fuzz.stochastic import View

OPERATORS = {"=": lambda x, y: y, "+=": np.add, "-=": np.subtract, "*=": np.multiply}


def writable(pool: Pool) -> Any:
    """A condition: not a parameter, no aliased elements, and no gradient is cut off."""

    def test(one: View) -> bool:
        memory = one.memory
        if memory.is_parameter or (memory.is_detached and pool.has_gradients):
            return False
        return one.dtype == memory.dtype and not one.has_aliases

    return test


def _operator(pool: Pool, dtype: str) -> Text:
    choices = ("=", "+=") if dtype == "bool" else ("=", "+=", "+=", "-=", "*=")
    return Text(pool.one_of(choices))


def _source(pool: Pool, shape: tuple[int, ...], dtype: str) -> str:
    def fits(one: View) -> bool:
        return (
            one.dtype == dtype
            and len(one.shape) <= len(shape)
            and can_broadcast(one.shape, shape)
            and np.broadcast_shapes(one.shape, shape) == shape
        )

    try:
        return pool.pick(fits)
    except NotApplicable:
        return pool.leaf(shape, dtype)


def _whole(pool: Pool) -> Choice:
    name = pool.pick(writable(pool), numbers)
    one = pool[name]
    sign = pool.one_of(("+=", "-=", "*="))
    return [name, _source(pool, one.shape, one.dtype)], {"sign": Text(sign)}


def _scalar(pool: Pool) -> Choice:
    name = pool.pick(writable(pool), numbers)
    return [name], {"sign": Text(pool.one_of(("+=", "*="))), "c": pool.one_of((1, 2, 3))}


def _part(pool: Pool) -> Choice:
    name = pool.pick(writable(pool), axes(1))
    one = pool[name]
    index = basic_index(pool, one.shape)
    shape = one.indices[index.key].shape
    return [name, _source(pool, shape, one.dtype)], {
        "index": index, "sign": _operator(pool, one.dtype),
    }  # fmt: skip


def _part_scalar(pool: Pool) -> Choice:
    name = pool.pick(writable(pool), axes(1), numbers)
    index = basic_index(pool, pool[name].shape)
    sign = Text(pool.one_of(("=", "+=", "*=")))
    return [name], {"index": index, "sign": sign, "c": pool.one_of((0, 1, 2, 3))}


def _rows(pool: Pool) -> Choice:
    """Rows by a tensor of indices; all rows get the same value, so repeated indices are allowed."""
    name = pool.pick(writable(pool), full, numbers)
    one = pool[name]
    where = indices(pool, (pool.one_of((1, 2, 3)),), one.shape[0])
    return [name, where], {"c": pool.one_of((0, 1, 2))}


def _masked(pool: Pool) -> Choice:
    name = pool.pick(writable(pool), full, numbers)
    shape = pool[name].shape
    mask = pool.leaf(shape[: pool.rng.randint(1, len(shape))], "bool")
    return [name, mask], {"c": pool.one_of((0, 1, 2))}


def _assign(pool: Pool) -> Choice:
    name = pool.pick(writable(pool))
    one = pool[name]
    return [name, _source(pool, one.shape, one.dtype)], {}


def write_whole(x: Array, y: Array, sign: str) -> Array:
    return OPERATORS[sign](x, y)


def write_constant(x: Array, sign: str, c: int) -> Array:
    return OPERATORS[sign](x, np.asarray(c, x.dtype))


def _selected(x: Array, index: Index) -> Array:
    return x[index.key]


def write_part(x: Array, y: Array, index: Index, sign: str) -> Array:
    out = x.copy()
    out[index.key] = OPERATORS[sign](_selected(x, index), y)
    return out


def write_part_constant(x: Array, index: Index, sign: str, c: int) -> Array:
    return write_part(x, np.asarray(c, x.dtype), index, sign)


def write_rows(x: Array, where: Array, c: int) -> Array:
    out = x.copy()
    out[where] = c
    return out


def _write(
    name: str, text: str, reference: Any, choose: Any, weight: float = 1.0, exactness: str = "exact"
) -> Op:
    return Op(name, text, reference, choose, exactness, same, "write", weight)


def _whole_values(pool: Pool) -> Choice:
    names, _ = _whole(pool)
    return names, {}


WRITES = [
    _write("write", "{0} {sign} {1}", write_whole, _whole, 2),
    _write("write scalar", "{0} {sign} {c}", write_constant, _scalar),
    _write("write part", "{0}[{index}] {sign} {1}", write_part, _part, 2.5),
    _write("write part scalar", "{0}[{index}] {sign} {c}", write_part_constant, _part_scalar, 1.5),
    _write("write rows", "{0}[{1}] = {c}", write_rows, _rows, 0.5),
    _write("write masked", "{0}[{1}] = {c}", write_rows, _masked, 0.5),
    _write("assign", "{0}.assign({1}.expand({0}.shape))",
           lambda x, y: np.broadcast_to(y, x.shape), _assign, exactness="move"),
    _write("fill_", "{0}.fill_({c})", lambda x, c: np.full_like(x, c),
           lambda pool: ([pool.pick(writable(pool), numbers)], {"c": pool.one_of((0, 1, 2))}), 0.4),
    _write("clamp_", "{0}.clamp_(-1, 1)", lambda x: np.clip(x, -1, 1),
           lambda pool: ([pool.pick(writable(pool), floats)], {}), 0.4, "move"),
    _write("add_", "{0}.add_({1}, alpha=2)", lambda x, y: x + y * 2, _whole_values, 0.4),
]  # fmt: skip


# ---------------------------------------------------------------------- no computation


def _detach(pool: Pool) -> Choice:
    """Of any value; `writable` excludes later writes to it in programs with gradients."""
    return [pool.pick()], {}


OTHERS = [
    Op("detach", "{0}.detach()", lambda x: x, _detach, "move", effect="view", weight=0.7,
       is_smooth=False),
    Op("realize", "{0}.realize()", None, lambda pool: ([pool.pick()], {}), effect="none",
       weight=1),
    Op("forget", "del {0}", None, lambda pool: ([pool.pick()], {}), effect="none", weight=0.5),
]  # fmt: skip
