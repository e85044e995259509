"""Matrix products, einsum, convolution, pooling, attention."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz.ops.reductions import softmax
from fuzz.ops.table import Choice, Op
from fuzz.pool import NotApplicable, Pool, axes, floats, full, numbers
from fuzz.programs import Array, Shape


def weight(pool: Pool, shape: Shape, dtype: str) -> str:
    """An operand of this shape: an existing value, or a new leaf."""
    if pool.chance(0.3):
        try:
            return pool.pick(lambda one: one.shape == shape and one.dtype == dtype)
        except NotApplicable:
            pass
    return pool.leaf(shape, dtype)


def _matmul(pool: Pool) -> Choice:
    name = pool.pick(full, numbers, axes(1, 4))
    x = pool[name]
    inner, ndim = x.shape[-1], len(x.shape)
    shape: Shape = (inner,) if pool.chance(0.15) else (inner, pool.size())
    if ndim > 2 and pool.chance(0.3):
        shape = (x.shape[-3], inner, pool.size())
    if not pool.fits((*x.shape[:-1], *shape[-1:])) or not pool.fits((x.size, shape[-1])):
        raise NotApplicable
    return [name, weight(pool, shape, x.dtype)], {}


def _product_of_transposed(pool: Pool) -> Choice:
    name = pool.pick(full, numbers, axes(2, 2))
    x = pool[name]
    shape = (x.shape[0], pool.size())
    if not pool.fits((x.size, shape[1])):
        raise NotApplicable
    return [name, weight(pool, shape, x.dtype)], {}


FORMULAS = ("ij,jk->ik", "ij,kj->ik", "ij,ij->i", "ij,j->i", "i,j->ij", "ij,ik->jk", "ijk,ik->ij",
            "ijk,jl->ilk", "ij->ji", "ii->i", "ijk->j", "ij,jk,k->i")  # fmt: skip


def _einsum(pool: Pool) -> Choice:
    formula = pool.one_of(FORMULAS)
    terms = formula.split("->")[0].split(",")
    name = pool.pick(full, numbers, axes(len(terms[0]), len(terms[0])))
    x = pool[name]
    sizes: dict[str, int] = {}
    for letter, n in zip(terms[0], x.shape, strict=True):
        if sizes.setdefault(letter, n) != n:
            raise NotApplicable
    names = [name]
    for term in terms[1:]:
        shape = tuple(sizes.setdefault(letter, max(1, pool.size())) for letter in term)
        names.append(weight(pool, shape, x.dtype))
    if not pool.fits((4, *sizes.values())):
        raise NotApplicable
    return names, {"formula": formula}


class Formula(Op):
    """The inputs follow the formula."""

    def text_of(self, one: Any) -> str:
        return super().text_of(one).replace("INPUTS", ", ".join(one.inputs))


PRODUCTS = [
    Op("matmul", "{0} @ {1}", np.matmul, _matmul, "exact", weight=4),
    Op("transposed matmul", "{0}.T @ {1}", lambda x, y: x.T @ y, _product_of_transposed, "exact",
       weight=1.5),
    Formula("einsum", "Tensor.einsum({formula}, INPUTS)",
            lambda *xs, formula: np.einsum(formula, *xs), _einsum, "exact", weight=1.5),
]  # fmt: skip

# ---------------------------------------------------------------------- windows


def _images(pool: Pool) -> str:
    """(batch, channels, height, width)"""
    if pool.chance(0.5):
        try:
            return pool.pick(floats, full, axes(4, 4))
        except NotApplicable:
            pass
    side = pool.one_of((1, 2, 3, 5, 7, 8, 9, 16, 17))
    if pool.limit >= 100_000 and pool.chance(0.5):
        side = pool.one_of((16, 32, 64))
        return pool.leaf((1, pool.one_of((3, 16, 32)), side, side), "float32")
    shape = (pool.one_of((1, 2)), pool.one_of((1, 2, 3, 4, 6)), side, pool.one_of((side, 6, 9)))
    return pool.leaf(shape, pool.float_dtype())


def _conv(pool: Pool) -> Choice:
    name = _images(pool)
    x = pool[name]
    channels = x.shape[1]
    groups = pool.one_of([g for g in (1, 1, 2, 3, channels) if channels % g == 0])
    outputs = groups * pool.one_of((1, 1, 2, 3))
    size = pool.one_of((1, 2, 3, 3))
    stride, dilation, padding = (
        pool.one_of((1, 1, 2, 3)),
        pool.one_of((1, 1, 2)),
        pool.one_of((0, 1, 1, 2)),
    )
    padding = min(padding, dilation * (size - 1))
    if (
        min(x.shape[2:]) + 2 * padding < dilation * (size - 1) + 1
        or x.size * size * size > 20 * pool.limit
    ):
        raise NotApplicable
    names = [name, weight(pool, (outputs, channels // groups, size, size), x.dtype)]
    return names, {"groups": groups, "stride": stride, "dilation": dilation, "padding": padding}


def windows(x: Array, size: int, stride: int, dilation: int) -> Array:
    """(…, height, width) -> (…, out_height, out_width, size, size)"""
    extent = dilation * (size - 1) + 1
    found = np.lib.stride_tricks.sliding_window_view(x, (extent, extent), (-2, -1))
    return found[..., ::stride, ::stride, ::dilation, ::dilation]


def conv(x: Array, w: Array, groups: int, stride: int, dilation: int, padding: int) -> Array:
    around = ((0, 0), (0, 0), (padding, padding), (padding, padding))
    patches = windows(np.pad(x, around), w.shape[-1], stride, dilation)
    parts = zip(np.split(patches, groups, 1), np.split(w, groups, 0), strict=True)
    return np.concatenate([np.einsum("ncyxij,ocij->noyx", a, b) for a, b in parts], 1)


def _transposed(pool: Pool) -> Choice:
    name = _images(pool)
    x = pool[name]
    channels = x.shape[1]
    groups = pool.one_of([g for g in (1, 1, 2) if channels % g == 0])
    size, stride, dilation = (
        pool.one_of((1, 2, 3, 4)),
        pool.one_of((1, 2, 2, 3)),
        pool.one_of((1, 1, 2)),
    )
    padding = min(pool.one_of((0, 1, 1)), dilation * (size - 1))
    if x.size * size * size * stride * stride > 20 * pool.limit:
        raise NotApplicable
    sides = [(n - 1) * stride + dilation * (size - 1) + 1 - 2 * padding for n in x.shape[2:]]
    if min(sides) < 1:
        raise NotApplicable
    names = [name, weight(pool, (channels, pool.one_of((1, 2, 3)), size, size), x.dtype)]
    return names, {"groups": groups, "stride": stride, "dilation": dilation, "padding": padding}


def conv_transpose(
    x: Array, w: Array, groups: int, stride: int, dilation: int, padding: int
) -> Array:
    batch, _, height, width = x.shape
    size = w.shape[-1]
    extent = dilation * (size - 1) + 1
    outputs = w.shape[1] * groups
    out = np.zeros((batch, outputs, (height - 1) * stride + extent, (width - 1) * stride + extent))
    grouped = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    parts = x.reshape(batch, groups, -1, height, width)
    for i in range(size):
        for j in range(size):
            part = np.einsum("ngchw,gco->ngohw", parts, grouped[..., i, j])
            top, left = i * dilation, j * dilation
            out[:, :, top : top + stride * height : stride, left : left + stride * width : stride][
                :, :, :height, :width
            ] += part.reshape(batch, outputs, height, width)
    ends = (out.shape[2] - padding, out.shape[3] - padding)
    return out[:, :, padding : ends[0], padding : ends[1]]


def _pool(pool: Pool) -> Choice:
    name = _images(pool)
    size = pool.one_of((1, 2, 2, 3))
    stride, padding = pool.one_of((1, 2, 3)), pool.one_of((0, 0, 1))
    padding = min(padding, size // 2)
    if min(pool[name].shape[2:]) + 2 * padding < size:
        raise NotApplicable
    return [name], {"size": size, "stride": stride, "padding": padding}


def _max_pool(x: Array, size: int, stride: int, padding: int) -> Array:
    around = ((0, 0), (0, 0), (padding, padding), (padding, padding))
    padded = np.pad(x, around, constant_values=-np.inf)
    return windows(padded, size, stride, 1).max((-1, -2))


def _avg_pool(x: Array, size: int, stride: int, padding: int) -> Array:
    around = ((0, 0), (0, 0), (padding, padding), (padding, padding))
    return windows(np.pad(x, around), size, stride, 1).mean((-1, -2))


WINDOWED = ", groups={groups}, stride={stride}, dilation={dilation}, padding={padding})"
POOLED = "({size}, {stride}, padding={padding})"
WINDOWS = [
    Op("conv2d", "{0}.conv2d({1}" + WINDOWED, conv, _conv, "exact", weight=1.5),
    Op("conv_transpose2d", "{0}.conv_transpose2d({1}" + WINDOWED, conv_transpose, _transposed,
       "exact"),
    Op("max_pool2d", "{0}.max_pool2d" + POOLED, _max_pool, _pool, "move", weight=0.7),
    Op("avg_pool2d", "{0}.avg_pool2d" + POOLED, _avg_pool, _pool, weight=0.7),
]  # fmt: skip

# ---------------------------------------------------------------------- attention


def _attention(pool: Pool) -> Choice:
    dtype = pool.float_dtype()
    if dtype.startswith("fp8"):  # scores and weights are rounded, too: no digits are left
        raise NotApplicable
    batch = pool.one_of(((), (1,), (2,), (2, 2), (1, 3)))
    queries, keys, width = (pool.one_of((1, 1, 2, 3, 5, 7, 8, 17)) for _ in range(3))
    if pool.chance(0.2) and pool.limit > 5000:
        queries = keys = pool.one_of((64, 65, 96))
    names = [weight(pool, (*batch, n, width), dtype) for n in (queries, keys, keys)]
    return names, {"causal": queries == keys and pool.chance(0.4)}


def attention(q: Array, k: Array, v: Array, causal: bool = False, mask: Any = None) -> Array:
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if causal:
        mask = np.tril(np.ones(scores.shape[-2:], bool))
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    return softmax(scores) @ v


def _masked_attention(pool: Pool) -> Choice:
    names, _ = _attention(pool)
    queries, keys = pool[names[0]].shape[-2], pool[names[1]].shape[-2]
    return [*names, pool.leaf((queries, keys), "bool")], {}


def _masked_reference(q: Array, k: Array, v: Array, mask: Array) -> Array:
    """Attention where every query may attend to the first key, so that no row is fully masked."""
    allowed = mask | (np.arange(mask.shape[-1]) == 0)
    return attention(q, k, v, mask=allowed)


ATTENTION = [
    Op("attention", "{0}.scaled_dot_product_attention({1}, {2}, is_causal={causal})", attention,
       _attention, weight=1.2),
    Op("masked attention",
       "{0}.scaled_dot_product_attention({1}, {2}, {3} | (Tensor.arange({3}.shape[-1]) == 0))",
       _masked_reference, _masked_attention, weight=0.4),
]  # fmt: skip
CONTRACTION = [*PRODUCTS, *WINDOWS, *ATTENTION]
