"""Elementwise operations: arithmetic, comparisons, functions, activations, casts, masks."""

from __future__ import annotations

from collections.abc import Callable
from math import erf, erfc
from typing import Any

import numpy as np

from fuzz.dtypes import bits, cast, is_float
from fuzz.ops.table import Choice, Op, boolean, by_name, floating, promoted, promoted_float, second
from fuzz.pool import NotApplicable, Pool, axes, exact, floats, ints, numbers, smaller
from fuzz.programs import Array, Shape


def can_broadcast(one: Shape, other: Shape) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(one[::-1], other[::-1], strict=False))


def shape_to_broadcast(pool: Pool, shape: Shape) -> Shape:
    """A random shape that broadcasts to this one."""
    found = tuple(1 if pool.chance(0.25) else n for n in shape)
    return found[pool.rng.randrange(len(found) + 1) :] if pool.chance(0.4) else found


def second_operand(pool: Pool, name: str, *conditions: Callable[[Any], Any]) -> str:
    """A second operand: usually of the same dtype, with a shape that broadcasts."""
    x = pool[name]
    if pool.chance(0.7):
        try:
            return pool.pick(
                lambda y: y.dtype == x.dtype or (pool.chance(0.1) and _can_mix(x.dtype, y.dtype)),
                lambda y: can_broadcast(x.shape, y.shape),
                lambda y: pool.fits(np.broadcast_shapes(x.shape, y.shape)),
                *conditions,
            )
        except NotApplicable:
            pass
    return pool.leaf(shape_to_broadcast(pool, x.shape), x.dtype)


def _can_mix(one: str, other: str) -> bool:
    """False for uint64, which NumPy promotes to float64, and for fp8, which mixes with nothing."""
    return "uint64" not in (one, other) and not (one[:3] == "fp8" or other[:3] == "fp8")


def operands(*conditions: Callable[[Any], Any]) -> Callable[[Pool], Choice]:
    def choose(pool: Pool) -> Choice:
        name = pool.pick(*conditions)
        both = [name, second_operand(pool, name, *conditions)]
        return (both if pool.chance(0.5) else both[::-1]), {}

    return choose


def operand(*conditions: Callable[[Any], Any]) -> Callable[[Pool], Choice]:
    return lambda pool: ([pool.pick(*conditions)], {})


# ---------------------------------------------------------------------- arithmetic


def _binary(name: str, text: str, reference: Any, weight: float = 1.0, **more: Any) -> Op:
    options = {"exactness": "exact", "result": promoted, "promotes": True, **more}
    choose = options.pop("choose", operands(numbers))
    return Op(name, text, reference, choose, weight=weight, **options)


def _divisor(pool: Pool) -> Choice:
    name = pool.pick(floats)
    return [name, second_operand(pool, name, floats)], {}


def _scalar(pool: Pool) -> Choice:
    name = pool.pick(numbers)
    constants: tuple[float, ...] = (2, 3, 1, 0)
    if is_float(pool[name].dtype):
        constants = (*constants, 0.5, -0.25, -1.5)
    return [name], {"c": pool.one_of(constants)}


def _with_scalar(operation: Callable[[Any, Any], Any]) -> Callable[..., Array]:
    """The constant takes the dtype of the array."""
    return lambda x, c: operation(x, np.asarray(c, x.dtype))


def _whole_scalar(pool: Pool) -> Choice:
    name = pool.pick(ints)
    return [name], {"c": pool.one_of((1, 2, 3, 5, 7, 8))}


def _shift(pool: Pool) -> Choice:
    name = pool.pick(ints)
    return [name], {"c": pool.rng.randrange(bits(pool[name].dtype) - 1)}


def _power(x: Array, c: int) -> Array:
    found = x
    for _ in range(c - 1):
        found = found * x
    return found


def _floor_mod(x: Array, y: Array) -> Array:
    return np.mod(x, y)


ARITHMETIC = [
    _binary("add", "{0} + {1}", np.add, 3),
    _binary("sub", "{0} - {1}", np.subtract, 2),
    _binary("mul", "{0} * {1}", np.multiply, 3),
    _binary("maximum", "{0}.maximum({1})", np.maximum, exactness="move"),
    _binary("minimum", "{0}.minimum({1})", np.minimum, exactness="move"),
    _binary(
        "div", "{0} / ({1}.abs() + 1)", lambda x, y: x / (np.abs(y) + 1),
        choose=_divisor, exactness="function", result=promoted_float,
    ),
    _binary(
        "copysign", "{0}.copysign({1} + 0.125)", lambda x, y: np.copysign(x, y + 0.125),
        choose=_divisor, exactness="move", is_smooth=False,
    ),
    _binary("logaddexp", "{0}.logaddexp({1})", np.logaddexp, choose=_divisor, exactness="function",
            floor=1.0),
    _binary(
        "lerp", "{0}.lerp({1}, 0.25)", lambda x, y: x + (y - x) * 0.25,
        choose=_divisor, exactness="function",
    ),
    Op("add scalar", "{0} + {c}", _with_scalar(np.add), _scalar, "exact"),
    Op("scalar sub", "{c} - {0}", lambda x, c: np.asarray(c, x.dtype) - x, _scalar, "exact"),
    Op("mul scalar", "{0} * {c}", _with_scalar(np.multiply), _scalar, "exact"),
    Op("clip", "{0}.clip(-{c}, {c})", lambda x, c: np.clip(x, -c, c),
       lambda pool: ([pool.pick(floats)], {"c": pool.one_of((1, 2, 0.5))}), "move"),
    Op("power", "{0} ** {c}", _power,
       lambda pool: ([pool.pick(numbers)], {"c": pool.one_of((1, 2, 3))}), "exact"),
    Op("neg", "-{0}", np.negative, operand(numbers), "move"),
    Op("abs", "{0}.abs()", np.abs, operand(numbers), "move"),
    Op("square", "{0}.square()", np.square, operand(numbers), "exact"),
    Op("floordiv", "{0} // {c}", _with_scalar(np.floor_divide), _whole_scalar, "move"),
    Op("mod", "{0} % {c}", _with_scalar(np.mod), _whole_scalar, "move"),
    Op("fmod", "{0}.fmod({c})", _with_scalar(np.fmod), _whole_scalar, "move"),
    _binary("floordiv values", "{0} // {1}", np.floor_divide, 0.5, choose=operands(ints)),
    _binary("mod values", "{0} % {1}", _floor_mod, 0.5, choose=operands(ints)),
    Op("lshift", "{0} << {c}", _with_scalar(np.left_shift), _shift, "move", weight=0.5),
    Op("rshift", "{0} >> {c}", _with_scalar(np.right_shift), _shift, "move", weight=0.5),
]  # fmt: skip


def _not_float(one: Any) -> bool:
    return not is_float(one.dtype)


BITS = [
    _binary("and", "{0} & {1}", np.bitwise_and, choose=operands(_not_float)),
    _binary("or", "{0} | {1}", np.bitwise_or, choose=operands(_not_float)),
    _binary("xor", "{0} ^ {1}", np.bitwise_xor, choose=operands(_not_float)),
    Op("not", "~{0}", np.invert, operand(_not_float), "move"),
]

# ---------------------------------------------------------------------- comparisons and masks


def _exact_pair(pool: Pool) -> Choice:
    name = pool.pick(exact)
    x = pool[name]
    same = (lambda y: y.dtype == x.dtype,)
    return [name, second_operand(pool, name, *same)], {}


def _comparison(name: str, sign: str, reference: Any) -> Op:
    text = f"{{0}} {sign} {{1}}"
    return Op(name, text, reference, _exact_pair, "move", boolean, weight=0.4, is_smooth=False)


def _where(pool: Pool) -> Choice:
    name = pool.pick()
    x = pool[name]
    other = second_operand(pool, name, lambda y: y.dtype == x.dtype)
    wide = np.broadcast_shapes(x.shape, pool[other].shape)
    try:
        mask = pool.pick(lambda m: m.dtype == "bool", lambda m: can_broadcast(m.shape, wide))
    except NotApplicable:
        mask = pool.leaf(shape_to_broadcast(pool, wide), "bool")
    if not pool.fits(np.broadcast_shapes(wide, pool[mask].shape)):
        raise NotApplicable
    return [mask, name, other], {}


def _masked_fill(pool: Pool) -> Choice:
    name = pool.pick(numbers)
    mask = pool.leaf(shape_to_broadcast(pool, pool[name].shape), "bool")
    return [name, mask], {"c": pool.one_of((0, 1, 2))}


COMPARISONS = [
    _comparison("lt", "<", np.less),
    _comparison("le", "<=", np.less_equal),
    _comparison("gt", ">", np.greater),
    _comparison("eq", "==", np.equal),
    _comparison("ne", "!=", np.not_equal),
    Op("where", "{0}.where({1}, {2})", np.where, _where, "move", second, weight=2),
    Op("masked_fill", "{0}.masked_fill({1}, {c})",
       lambda x, mask, c: np.where(mask, np.asarray(c, x.dtype), x), _masked_fill, "move"),
    Op("sign", "{0}.sign()", np.sign, operand(numbers), "move", is_smooth=False),
    Op("floor", "{0}.floor()", np.floor, operand(floats, exact), "move", is_smooth=False),
    Op("round", "{0}.round()", np.round, operand(floats, exact), "move", is_smooth=False),
    Op("trunc", "{0}.trunc()", np.trunc, operand(floats, exact), "move", is_smooth=False),
    Op("logical_not", "{0}.logical_not()", np.logical_not,
       operand(exact), "move", boolean, weight=0.3, is_smooth=False),
]  # fmt: skip

# ---------------------------------------------------------------------- functions


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _erf(x: Array) -> Array:
    return np.vectorize(erf, otypes=[np.float64])(x)


def _softplus(x: Array) -> Array:
    return np.logaddexp(0, x)


def _gelu(x: Array) -> Array:
    """x (1 + tanh(z)) / 2, without the cancellation."""
    return x * _sigmoid(2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))


def _exact_gelu(x: Array) -> Array:
    return 0.5 * x * np.vectorize(erfc, otypes=[np.float64])(-x / np.sqrt(2))


FUNCTION_TABLE: dict[str, tuple[str, Callable[[Array], Array]]] = {
    "sin": ("{0}.sin()", np.sin),
    "cos": ("{0}.cos()", np.cos),
    "tanh": ("{0}.tanh()", np.tanh),
    "exp": ("({0} * 0.5).exp()", lambda x: np.exp(x * 0.5)),
    "exp2": ("({0} * 0.5).exp2()", lambda x: np.exp2(x * 0.5)),
    "log": ("({0}.square() + 0.5).log()", lambda x: np.log(np.square(x) + 0.5)),
    "log2": ("({0}.abs() + 0.5).log2()", lambda x: np.log2(np.abs(x) + 0.5)),
    "sqrt": ("({0}.abs() + 0.25).sqrt()", lambda x: np.sqrt(np.abs(x) + 0.25)),
    "rsqrt": ("({0}.square() + 0.25).rsqrt()", lambda x: 1 / np.sqrt(np.square(x) + 0.25)),
    "reciprocal": ("({0}.abs() + 0.5).reciprocal()", lambda x: 1 / (np.abs(x) + 0.5)),
    "pow": ("({0}.abs() + 0.5) ** 1.5", lambda x: (np.abs(x) + 0.5) ** 1.5),
    "atan": ("{0}.atan()", np.arctan),
    "asin": ("({0}.tanh() * 0.75).asin()", lambda x: np.arcsin(np.tanh(x) * 0.75)),
    "sinh": ("({0}.tanh()).sinh()", lambda x: np.sinh(np.tanh(x))),
    "asinh": ("{0}.asinh()", np.arcsinh),
    "sigmoid": ("{0}.sigmoid()", _sigmoid),
    "relu": ("{0}.relu()", lambda x: np.maximum(x, 0)),
    "relu6": ("{0}.relu6()", lambda x: np.clip(x, 0, 6)),
    "leaky_relu": ("{0}.leaky_relu(0.125)", lambda x: np.where(x > 0, x, x * 0.125)),
    "gelu": ("{0}.gelu()", _gelu),
    "quick_gelu": ("{0}.quick_gelu()", lambda x: x * _sigmoid(1.702 * x)),
    "silu": ("{0}.silu()", lambda x: x * _sigmoid(x)),
    "mish": ("{0}.mish()", lambda x: x * np.tanh(_softplus(x))),
    "softplus": ("{0}.softplus()", _softplus),
    "softsign": ("{0}.softsign()", lambda x: x / (1 + np.abs(x))),
    "elu": ("{0}.elu()", lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0)))),
    "celu": ("{0}.celu(2.0)", lambda x: np.where(x > 0, x, 2 * np.expm1(np.minimum(x, 0) / 2))),
    "logsigmoid": ("{0}.logsigmoid()", lambda x: -_softplus(-x)),
    "hardswish": ("{0}.hardswish()", lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "hardtanh": ("{0}.hardtanh()", lambda x: np.clip(x, -1, 1)),
    "hardsigmoid": ("{0}.hardsigmoid()", lambda x: np.clip(x / 6 + 0.5, 0, 1)),
}
FUNCTIONS = [
    *(Op(name, text, reference, operand(floats), weight=0.35, floor=float("log" in name))
      for name, (text, reference) in FUNCTION_TABLE.items()),
    Op("erf", "{0}.erf()", _erf, operand(floats, smaller(500)), weight=0.3),
    Op("exact gelu", '{0}.gelu("none")', _exact_gelu,
       operand(floats, smaller(500)), weight=0.3, floor=0.5),
    Op("float function", "{0}.sqrt()", lambda x: np.sqrt(x.astype(np.float64)),
       operand(ints, lambda one: not len(one.memory.samples) or bool((one.read() >= 0).all())),
       result=floating, weight=0.3, is_smooth=False),
]  # fmt: skip

# ---------------------------------------------------------------------- casts


def _cast(pool: Pool) -> Choice:
    name = pool.pick(exact) if pool.chance(0.7) else pool.pick(floats)
    source = pool[name].dtype
    target = pool.one_of((*pool.float_dtypes, *pool.float_dtypes, *pool.int_dtypes, "bool"))
    if not pool[name].is_exact:
        target = pool.one_of(pool.float_dtypes)
    if pool.has_gradients:
        target = pool.float_dtype()
    return [name], {"dtype": target, "source": source}


BITCAST_TARGETS = {
    "float32": ("int32", "uint32"), "int32": ("float32", "uint32"), "uint32": ("int32",),
    "bfloat16": ("int16", "uint16"), "float16": ("int16",), "int16": ("uint16",),
    "uint8": ("int8",), "int8": ("uint8",), "float64": ("int64",), "int64": ("uint64",),
}  # fmt: skip


def _bitcast(pool: Pool) -> Choice:
    """Of exact values without zeros, whose sign may depend on the order of evaluation."""

    def fits(one: Any) -> bool:
        if one.dtype not in BITCAST_TARGETS or not one.is_exact:
            return False
        return not is_float(one.dtype) or bool((one.read() != 0).all())

    name = pool.pick(fits)
    source = pool[name].dtype
    if is_float(source) and pool.has_gradients:
        raise NotApplicable
    targets = [t for t in BITCAST_TARGETS[source] if not is_float(t)]
    if not targets:
        raise NotApplicable
    return [name], {"dtype": pool.one_of(targets)}


CASTS = [
    Op("cast", "{0}.cast({dtype})", lambda x, dtype, source: cast(x, source, dtype),
       _cast, "exact", by_name, weight=2),
    Op("bitcast", "{0}.bitcast({dtype})", lambda x, dtype: x, _bitcast, "move", by_name,
       effect="view", weight=0.7, is_smooth=False),
    Op("float()", "{0}.float()", lambda x: x.astype(np.float64), operand(axes(0)), "exact",
       lambda names, args: "float32", weight=0.5),
]  # fmt: skip

ELEMENTWISE = [*ARITHMETIC, *BITS, *COMPARISONS, *FUNCTIONS, *CASTS]
