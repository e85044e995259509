"""The reference: NumPy with explicit aliasing, and gradients by finite differences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from fuzz.dtypes import cast, is_float, reference_dtype, round_to
from fuzz.ops import OPS
from fuzz.ops.table import Op, promoted
from fuzz.programs import Array, Leaf, Program, Statement
from fuzz.stochastic import NOISE_ULPS, Arithmetic, Discard, View, check_well_conditioned, new_value

State = dict[str, View]


def leaf_value(leaf: Leaf, arithmetic: Arithmetic, numbers: Array | None = None) -> View:
    array = leaf.numbers() if numbers is None else numbers
    array = array.astype(reference_dtype(leaf.dtype))
    if is_float(leaf.dtype) and arithmetic.is_rounded:
        array = round_to(array, leaf.dtype)
    samples = np.broadcast_to(array, (arithmetic.samples, *array.shape))
    sources = frozenset([leaf.name]) if leaf.is_parameter else frozenset[str]()
    found = new_value(samples, leaf.dtype, sources)
    found.memory.is_parameter = leaf.is_parameter
    return found


def leaf_values(program: Program, arithmetic: Arithmetic) -> State:
    return {leaf.name: leaf_value(leaf, arithmetic) for leaf in program.leaves}


def evaluate(program: Program, arithmetic: Arithmetic, state: State | None = None) -> State:
    """Every value at the end of the program. Raises Discard if the answer is unknown."""
    state = leaf_values(program, arithmetic) if state is None else state
    for statement in program.statements:
        step(state, statement, arithmetic)
    return state


def step(state: State, one: Statement, arithmetic: Arithmetic) -> None:
    """Execute one statement."""
    op = OPS[one.op]
    inputs = [state[name] for name in one.inputs]
    if op.effect == "none":
        if op.name == "forget":
            del state[one.inputs[0]]
    elif op.effect == "view":
        state.update(zip(one.outs, _views(op, one, inputs[0], arithmetic), strict=True))
    elif op.effect == "write":
        _write(op, one, inputs, arithmetic)
    else:
        state.update(zip(one.outs, _values(op, one, inputs, arithmetic), strict=True))


def _views(op: Op, one: Statement, x: View, arithmetic: Arithmetic) -> list[View]:
    if op.name == "bitcast":
        return [replace(x, dtype=one.args["dtype"])]
    if op.name == "detach":
        return [_detached(one, x, arithmetic)]
    found = op.reference(x.indices, **one.args)
    parts = found if isinstance(found, list) else [found]
    has_aliases = x.has_aliases or op.name in ("expand", "unfold")
    return [replace(x, indices=indices, has_aliases=has_aliases) for indices in parts]


def _detached(one: Statement, x: View, arithmetic: Arithmetic) -> View:
    """The same elements; constant in finite differences, because no gradient flows through them."""
    x.memory.is_detached = True
    if arithmetic.frozen is None or not x.sources:
        return replace(x, is_detached=True)
    value = arithmetic.frozen.setdefault(one.outs[0], x.read().copy())
    return new_value(value, x.dtype)


def _write(op: Op, one: Statement, inputs: list[View], arithmetic: Arithmetic) -> None:
    target = inputs[0]
    if target.memory.is_parameter or target.has_aliases:
        raise Discard("the target of a write is a parameter or has aliased elements")
    function = partial(op.reference, **one.args)
    (values,) = arithmetic.compute(function, inputs, (target.dtype,), op.exactness, op.floor)
    target.write(values)
    sources = [target.memory.sources, *(x.sources for x in inputs)]
    target.memory.sources = frozenset[str]().union(*sources)


def _values(op: Op, one: Statement, inputs: list[View], arithmetic: Arithmetic) -> list[View]:
    names = tuple(x.dtype for x in inputs)
    dtypes = op.dtypes_of(names, one.args)
    function = partial(op.reference, **one.args)
    if op.promotes and len(set(names)) > 1:
        function = _with_promotion(function, names)
    sources = frozenset[str]()
    if op.is_smooth:
        sources = sources.union(*(x.sources for x in inputs))
    if not inputs:
        array = function()
        samples = np.broadcast_to(array, (arithmetic.samples, *array.shape))
        return [new_value(samples, dtypes[0])]
    found = arithmetic.compute(function, inputs, dtypes, op.exactness, op.floor)
    return [
        new_value(samples, dtype, sources if is_float(dtype) else frozenset())
        for samples, dtype in zip(found, dtypes, strict=True)
    ]


def _with_promotion(function: Any, names: tuple[str, ...]) -> Any:
    """The function with its inputs cast to their common dtype first."""
    target = promoted(names, {})

    def compute(*arrays: Array) -> Any:
        return function(
            *(
                _to_float(cast(x, name, target), target) if not is_float(name) else x
                for x, name in zip(arrays, names, strict=True)
            )
        )

    return compute


def _to_float(x: Array, target: str) -> Array:
    return round_to(x, target) if is_float(target) else x


# ---------------------------------------------------------------------- gradients


@dataclass(frozen=True)
class DirectionalDerivative:
    """The derivative of the loss by one parameter along a direction."""

    parameter: str
    direction: Array
    expected: float
    error: float  # of the finite difference, and of rounding in the dtypes of the program


STEP = 2.0**-18  # of finite differences


def loss_of(program: Program, arithmetic: Arithmetic, replaced: dict[str, Array]) -> float:
    state = {
        leaf.name: leaf_value(leaf, arithmetic, replaced.get(leaf.name)) for leaf in program.leaves
    }
    evaluate(program, arithmetic, state)
    total = 0.0
    for name in program.loss:
        x = state[name].read()[0].astype(np.float64)
        total += float((x * (x + 0.5)).mean()) if x.size else np.nan
    return total


def derivatives(
    program: Program, seed: int, global_values: dict[str, Array] | None = None
) -> list[DirectionalDerivative]:
    """Central differences in float64, along one random direction for each parameter.

    `global_values` replace those leaves that earlier calls have written to.
    """
    others = global_values or {}
    rng = np.random.default_rng(seed)
    frozen: dict[str, Array] = {}
    middle = loss_of(program, _unrounded(0.0, frozen, 0), others)
    found = []
    for leaf in program.parameters:
        signs = rng.choice([-1.0, 1.0], leaf.shape)
        direction = np.asarray(rng.uniform(0.5, 1.5, leaf.shape) * signs)
        above, below = _sides(program, leaf, STEP * direction, 0.0, frozen, others)
        expected, kink = (above - below) / (2 * STEP), abs(above - 2 * middle + below) / STEP
        far_above, far_below = _sides(
            program, leaf, 3 * STEP * direction, NOISE_ULPS, frozen, others
        )
        error = 16 * abs((far_above - far_below) / (6 * STEP) - expected) + 2 * kink + 1e-6
        if not np.isfinite(error) or error > 0.02 * (abs(expected) + 1):
            raise Discard("a gradient is ill-conditioned or does not exist")
        found.append(DirectionalDerivative(leaf.name, direction, expected, error))
    return found


def _sides(
    program: Program,
    leaf: Leaf,
    move: Array,
    noise_ulps: float,
    frozen: dict[str, Array],
    others: dict[str, Array],
) -> tuple[float, float]:
    """The loss on both sides of a parameter, with nearly equal rounding errors."""
    base = round_to(leaf.numbers(), leaf.dtype)
    above = loss_of(program, _unrounded(noise_ulps, frozen, 1), {**others, leaf.name: base + move})
    below = loss_of(program, _unrounded(noise_ulps, frozen, 2), {**others, leaf.name: base - move})
    return above, below


def _unrounded(noise_ulps: float, frozen: dict[str, Array], side: int) -> Arithmetic:
    """Float64 with random errors. Terms of a derivative are rounded, too, and may cancel where no
    value does: so errors of the two sides differ in proportion to the step.
    """
    rng = np.random.default_rng(side) if noise_ulps else None
    return Arithmetic(1, False, noise_ulps, side=rng, spread=3 * STEP, frozen=frozen)


def check_outputs(program: Program, state: State) -> None:
    """Discard a program whose outputs are deleted or ill-conditioned."""
    for name in program.outputs:
        if name not in state:
            raise Discard("an output was deleted")
        check_well_conditioned(state[name].read(), state[name].dtype)
