"""Movement: views (reshape, permute, slices, …) and copies (pad, roll, cat, …)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fuzz.ops.table import Choice, Index, Op, promoted
from fuzz.pool import NotApplicable, Pool, axes, full, numbers, some
from fuzz.programs import Array, Shape


def _random_factors(pool: Pool, size: int) -> Shape:
    """A random shape with this number of elements."""
    if size == 0:
        return (0, pool.one_of((1, 2, 3)))
    found: list[int] = []
    for _ in range(pool.rng.randrange(3)):
        divisors = [d for d in range(1, min(size, 64) + 1) if size % d == 0]
        found.append(pool.one_of(divisors))
        size //= found[-1]
    return (*found, size)


def _reshape(pool: Pool) -> Choice:
    name = pool.pick()
    shape = _random_factors(pool, pool[name].size)
    if pool.chance(0.15):
        shape = pool[name].shape
    return [name], {"shape": shape}


def _permute(pool: Pool) -> Choice:
    name = pool.pick(axes(1))
    order = list(range(len(pool[name].shape)))
    pool.rng.shuffle(order)
    return [name], {"order": tuple(order)}


def _expand(pool: Pool) -> Choice:
    name = pool.pick(lambda one: 1 in one.shape or pool.chance(0.2))
    shape = tuple(pool.size() if n == 1 and pool.chance(0.7) else n for n in pool[name].shape)
    shape = (pool.size(), *shape) if pool.chance(0.2) else shape
    if not pool.fits(shape):
        raise NotApplicable
    return [name], {"shape": shape}


def _one_axis(pool: Pool) -> Choice:
    name = pool.pick(axes(1))
    return [name], {"axis": pool.axis(name)}


def _new_axis(pool: Pool) -> Choice:
    name = pool.pick(axes(0, 4))
    return [name], {"axis": pool.rng.randrange(len(pool[name].shape) + 1)}


def _squeeze(pool: Pool) -> Choice:
    name = pool.pick(lambda one: 1 in one.shape)
    return [name], {"axis": pool.one_of([i for i, n in enumerate(pool[name].shape) if n == 1])}


def _slice(pool: Pool, size: int) -> Any:
    """An index of an axis: a range, a step, a reversal, or one element."""
    kind = pool.rng.random()
    if kind < 0.25:
        return slice(None)
    if size and kind < 0.4:
        return pool.rng.randrange(-size, size)
    if kind < 0.5:
        return slice(None, None, pool.one_of((-1, 2, 3, -2)))
    start = pool.rng.randrange(size + 1)
    stop = pool.rng.randint(start, size)
    if start == stop and pool.chance(0.8):
        return slice(0, max(1, size // 2))
    return slice(start or None, stop)


def basic_index(pool: Pool, shape: Shape) -> Index:
    parts: list[Any] = [_slice(pool, n) for n in shape[: pool.rng.randint(1, len(shape))]]
    if pool.chance(0.1):
        parts.insert(pool.rng.randrange(len(parts) + 1), None)
    if pool.chance(0.1) and len(parts) < len(shape):
        parts.insert(0, Ellipsis)
        parts[1:] = [_slice(pool, n) for n in shape[len(shape) - len(parts) + 1 :]]
    return Index(tuple(parts))


def _get(pool: Pool) -> Choice:
    name = pool.pick(axes(1))
    return [name], {"index": basic_index(pool, pool[name].shape)}


def _shrink(pool: Pool) -> Choice:
    name = pool.pick(axes(1))
    bounds = []
    for n in pool[name].shape:
        start = pool.rng.randrange(n + 1) if pool.chance(0.4) else 0
        bounds.append((start, pool.rng.randint(start, n) if pool.chance(0.3) else n))
    return [name], {"bounds": tuple(bounds)}


def _split(pool: Pool) -> Choice:
    name = pool.pick(full, lambda one: max(one.shape) > 1)
    shape = pool[name].shape
    axis = pool.one_of([i for i, n in enumerate(shape) if n > 1])
    return [name], {"sizes": -(-shape[axis] // pool.one_of((2, 3))), "axis": axis}


def _numpy_split(x: Array, sizes: int, axis: int) -> list[Array]:
    return np.split(x, list(range(sizes, x.shape[axis], sizes)), axis)


def _diagonal(pool: Pool) -> Choice:
    return [pool.pick(axes(2, 2), some)], {}


def _unfold(pool: Pool) -> Choice:
    name = pool.pick(full)
    axis = pool.rng.randrange(len(pool[name].shape))
    size = pool.rng.randint(1, min(4, pool[name].shape[axis]))
    step = pool.one_of((1, 2, 3))
    if not pool.fits((pool[name].size, size)):
        raise NotApplicable
    return [name], {"axis": axis, "size": size, "step": step}


def _numpy_unfold(x: Array, axis: int, size: int, step: int) -> Array:
    windows = np.lib.stride_tricks.sliding_window_view(x, size, axis)
    return windows[(slice(None),) * axis + (slice(None, None, step),)]


def _view(
    name: str, text: str, reference: Any, choose: Callable[[Pool], Choice], weight: float = 1
) -> Op:
    return Op(name, text, reference, choose, "move", effect="view", weight=weight)


VIEWS = [
    _view("reshape", "{0}.reshape({shape})", lambda x, shape: x.reshape(shape), _reshape, 3),
    _view("permute", "{0}.permute({order})", lambda x, order: x.transpose(order), _permute, 2),
    _view("expand", "{0}.expand({shape})", lambda x, shape: np.broadcast_to(x, shape), _expand, 2),
    _view("flip", "{0}.flip({axis})", lambda x, axis: np.flip(x, axis), _one_axis),
    _view("unsqueeze", "{0}.unsqueeze({axis})", np.expand_dims, _new_axis, 2),
    _view("squeeze", "{0}.squeeze({axis})", lambda x, axis: np.squeeze(x, axis), _squeeze),
    _view("index", "{0}[{index}]", lambda x, index: x[index.key], _get, 4),
    _view("shrink", "{0}.shrink({bounds})",
          lambda x, bounds: x[tuple(slice(*b) for b in bounds)], _shrink),
    _view("flatten", "{0}.flatten()", lambda x: x.reshape(-1), lambda pool: ([pool.pick()], {})),
    _view("transpose", "{0}.transpose(0, -1)", lambda x: x.swapaxes(0, -1),
          lambda pool: ([pool.pick(axes(2))], {})),
    _view("diagonal", "{0}.diagonal()", lambda x: x.diagonal(), _diagonal, 0.5),
    _view("unfold", "{0}.unfold({axis}, {size}, {step})", _numpy_unfold, _unfold, 0.5),
    _view("split", "{0}.split({sizes}, {axis})", _numpy_split, _split),
]  # fmt: skip

# ---------------------------------------------------------------------- copies


def _pad(pool: Pool) -> Choice:
    name = pool.pick(axes(1, 4))
    shape = pool[name].shape
    padding = tuple(
        (pool.rng.randrange(3), pool.rng.randrange(3)) if pool.chance(0.5) else (0, 0)
        for _ in shape
    )
    if not pool.fits(tuple(n + sum(a) for n, a in zip(shape, padding, strict=True))):
        raise NotApplicable
    mode = "constant"
    if pool.chance(0.3) and all(n > 2 for n in shape):
        mode = pool.one_of(("reflect", "replicate", "circular"))
    value = 0 if pool[name].dtype == "bool" else pool.one_of((0, 0, 1))
    return [name], {"padding": padding, "mode": mode, "value": value}


def _numpy_pad(x: Array, padding: Any, mode: str, value: int) -> Array:
    if mode == "constant":
        return np.pad(x, padding, constant_values=np.asarray(value, x.dtype))
    names = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    return np.pad(x, padding, names[mode])


def _roll(pool: Pool) -> Choice:
    name = pool.pick(axes(1))
    return [name], {"shift": pool.one_of((-2, -1, 0, 1, 3)), "axis": pool.axis(name)}


def _repeat(pool: Pool) -> Choice:
    name = pool.pick(axes(1, 3))
    times = tuple(pool.one_of((1, 1, 2, 3)) for _ in pool[name].shape)
    if not pool.fits((pool[name].size, *times)):
        raise NotApplicable
    return [name], {"times": times}


def _interleave(pool: Pool) -> Choice:
    name = pool.pick(axes(1))
    times = pool.one_of((1, 2, 3))
    if not pool.fits((pool[name].size, times)):
        raise NotApplicable
    return [name], {"times": times, "axis": pool.rng.randrange(len(pool[name].shape))}


def _triangle(pool: Pool) -> Choice:
    return [pool.pick(axes(2), numbers)], {"k": pool.one_of((-1, 0, 1))}


def _stack(pool: Pool) -> Choice:
    name = pool.pick(axes(0, 4))
    x = pool[name]
    others = [
        pool.pick(lambda y: y.shape == x.shape and y.dtype == x.dtype)
        for _ in range(pool.rng.randrange(3))
    ]
    if not pool.fits((x.size, len(others) + 1)):
        raise NotApplicable
    return [name, *others], {"axis": pool.rng.randrange(len(x.shape) + 1)}


def _cat(pool: Pool) -> Choice:
    name = pool.pick(axes(1))
    x = pool[name]
    axis = pool.rng.randrange(len(x.shape))

    def fits(y: Any) -> bool:
        rest = (*x.shape[:axis], *x.shape[axis + 1 :])
        return (
            y.dtype == x.dtype
            and len(y.shape) == len(x.shape)
            and (*y.shape[:axis], *y.shape[axis + 1 :]) == rest
        )

    others = [pool.pick(fits) for _ in range(pool.rng.randrange(1, 3))]
    if not pool.fits((sum(pool[one].size for one in (name, *others)),)):
        raise NotApplicable
    return [name, *others], {"axis": axis}


def _copy(x: Array) -> Array:
    return x.copy()


def _pick(pool: Pool) -> Choice:
    return [pool.pick()], {}


class VariadicOp(Op):
    """An op with any number of inputs in a list."""

    def text_of(self, one: Any) -> str:
        text = super().text_of(one)
        return text.replace("INPUTS", ", ".join(one.inputs))


COPIES = [
    Op("pad", "{0}.pad({padding}, {mode}, {value})", _numpy_pad, _pad, "move", weight=1.5),
    Op("roll", "{0}.roll({shift}, {axis})", lambda x, shift, axis: np.roll(x, shift, axis),
       _roll, "move"),
    Op("repeat", "{0}.repeat({times})", lambda x, times: np.tile(x, times), _repeat, "move"),
    Op("interleave", "{0}.repeat_interleave({times}, {axis})",
       lambda x, times, axis: np.repeat(x, times, axis), _interleave, "move"),
    Op("tril", "{0}.tril({k})", lambda x, k: np.tril(x, k), _triangle, "move", weight=0.5),
    Op("triu", "{0}.triu({k})", lambda x, k: np.triu(x, k), _triangle, "move", weight=0.5),
    VariadicOp("stack", "Tensor.stack(INPUTS, dim={axis})", lambda *xs, axis: np.stack(xs, axis),
           _stack, "move", promoted),
    VariadicOp("cat", "Tensor.cat(INPUTS, dim={axis})", lambda *xs, axis: np.concatenate(xs, axis),
           _cat, "move", promoted, weight=1.5),
    Op("clone", "{0}.clone()", _copy, _pick, "move"),
    Op("contiguous", "{0}.contiguous()", _copy, _pick, "move"),
    Op("no dropout", "{0}.dropout(0.5)", _copy, lambda pool: ([pool.pick(numbers)], {}), "move",
       weight=0.2),
]  # fmt: skip
