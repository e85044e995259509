"""Program -> what it must give: NumPy, with explicit aliasing, and gradients by differences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from fuzz.dtypes import cast, is_float, kept_as, rounded
from fuzz.ops import OPS
from fuzz.ops.table import Op, met
from fuzz.programs import Array, Leaf, Program, Statement
from fuzz.stochastic import UNITS, Arithmetic, Discard, Shown, check_tame, shown

State = dict[str, Shown]


def leaf_value(leaf: Leaf, arithmetic: Arithmetic, numbers: Array | None = None) -> Shown:
    array = leaf.numbers() if numbers is None else numbers
    array = array.astype(kept_as(leaf.dtype))
    if is_float(leaf.dtype) and arithmetic.is_rounded:
        array = rounded(array, leaf.dtype)
    lanes = np.broadcast_to(array, (arithmetic.lanes, *array.shape))
    sources = frozenset([leaf.name]) if leaf.is_parameter else frozenset[str]()
    found = shown(lanes, leaf.dtype, sources)
    found.memory.is_parameter = leaf.is_parameter
    return found


def leaf_values(program: Program, arithmetic: Arithmetic) -> State:
    return {leaf.name: leaf_value(leaf, arithmetic) for leaf in program.leaves}


def evaluate(program: Program, arithmetic: Arithmetic, state: State | None = None) -> State:
    """Every value at the end of the program. Raises Discard where nobody can say what is right."""
    state = leaf_values(program, arithmetic) if state is None else state
    for statement in program.statements:
        step(state, statement, arithmetic)
    return state


def step(state: State, one: Statement, arithmetic: Arithmetic) -> None:
    """Carry out one statement."""
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


def _views(op: Op, one: Statement, x: Shown, arithmetic: Arithmetic) -> list[Shown]:
    if op.name == "bitcast":
        return [replace(x, dtype=one.args["dtype"])]
    if op.name == "detach":
        return [_detached(one, x, arithmetic)]
    found = op.reference(x.at, **one.args)
    parts = found if isinstance(found, list) else [found]
    is_repeated = x.is_repeated or op.name in ("expand", "unfold")
    return [replace(x, at=at, is_repeated=is_repeated) for at in parts]


def _detached(one: Statement, x: Shown, arithmetic: Arithmetic) -> Shown:
    """The same elements; under differences they stay what they were, as no gradient flows."""
    x.memory.is_detached = True
    if arithmetic.frozen is None or not x.sources:
        return replace(x, is_detached=True)
    value = arithmetic.frozen.setdefault(one.outs[0], x.read().copy())
    return shown(value, x.dtype)


def _write(op: Op, one: Statement, inputs: list[Shown], arithmetic: Arithmetic) -> None:
    target = inputs[0]
    if target.memory.is_parameter or target.is_repeated:
        raise Discard("this may not be written to")
    function = partial(op.reference, **one.args)
    (values,) = arithmetic.compute(function, inputs, (target.dtype,), op.exactness, op.floor)
    target.write(values)
    sources = [target.memory.sources, *(x.sources for x in inputs)]
    target.memory.sources = frozenset[str]().union(*sources)


def _values(op: Op, one: Statement, inputs: list[Shown], arithmetic: Arithmetic) -> list[Shown]:
    names = tuple(x.dtype for x in inputs)
    dtypes = op.dtypes_of(names, one.args)
    function = partial(op.reference, **one.args)
    if op.meets and len(set(names)) > 1:
        function = _meeting(function, names)
    sources = frozenset[str]()
    if op.is_smooth:
        sources = sources.union(*(x.sources for x in inputs))
    if not inputs:
        array = function()
        lanes = np.broadcast_to(array, (arithmetic.lanes, *array.shape))
        return [shown(lanes, dtypes[0])]
    found = arithmetic.compute(function, inputs, dtypes, op.exactness, op.floor)
    return [
        shown(lanes, dtype, sources if is_float(dtype) else frozenset())
        for lanes, dtype in zip(found, dtypes, strict=True)
    ]


def _meeting(function: Any, names: tuple[str, ...]) -> Any:
    """Inputs are cast to the dtype they meet in first."""
    target = met(names, {})

    def compute(*arrays: Array) -> Any:
        return function(
            *(
                _to_float(cast(x, name, target), target) if not is_float(name) else x
                for x, name in zip(arrays, names, strict=True)
            )
        )

    return compute


def _to_float(x: Array, target: str) -> Array:
    return rounded(x, target) if is_float(target) else x


# ---------------------------------------------------------------------- gradients


@dataclass(frozen=True)
class Slope:
    """The derivative of the loss when one parameter moves along a direction."""

    parameter: str
    direction: Array
    wanted: float
    error: float  # of differences, and of rounding in the program's own dtype


STEP = 2.0**-18


def loss_of(program: Program, arithmetic: Arithmetic, moved: dict[str, Array]) -> float:
    state = {
        leaf.name: leaf_value(leaf, arithmetic, moved.get(leaf.name)) for leaf in program.leaves
    }
    evaluate(program, arithmetic, state)
    total = 0.0
    for name in program.loss:
        x = state[name].read()[0].astype(np.float64)
        total += float((x * (x + 0.5)).mean()) if x.size else np.nan
    return total


def slopes(program: Program, seed: int, held: dict[str, Array] | None = None) -> list[Slope]:
    """Central differences in float64, along one random direction for each parameter.

    `held` are numbers of leaves that are not those of their seeds.
    """
    others = held or {}
    rng = np.random.default_rng(seed)
    frozen: dict[str, Array] = {}
    middle = loss_of(program, _unrounded(0.0, frozen, 0), others)
    found = []
    for leaf in program.parameters:
        signs = rng.choice([-1.0, 1.0], leaf.shape)
        direction = np.asarray(rng.uniform(0.5, 1.5, leaf.shape) * signs)
        above, below = _sides(program, leaf, STEP * direction, 0.0, frozen, others)
        wanted, kink = (above - below) / (2 * STEP), abs(above - 2 * middle + below) / STEP
        higher, lower = _sides(program, leaf, 3 * STEP * direction, UNITS, frozen, others)
        error = 16 * abs((higher - lower) / (6 * STEP) - wanted) + 2 * kink + 1e-6
        if not np.isfinite(error) or error > 0.02 * (abs(wanted) + 1):
            raise Discard("a gradient is ill-conditioned, or not there")
        found.append(Slope(leaf.name, direction, wanted, error))
    return found


def _sides(
    program: Program,
    leaf: Leaf,
    move: Array,
    units: float,
    frozen: dict[str, Array],
    others: dict[str, Array],
) -> tuple[float, float]:
    """The loss on both sides of a parameter; rounding errors are nearly the same."""
    base = rounded(leaf.numbers(), leaf.dtype)
    above = loss_of(program, _unrounded(units, frozen, 1), {**others, leaf.name: base + move})
    below = loss_of(program, _unrounded(units, frozen, 2), {**others, leaf.name: base - move})
    return above, below


def _unrounded(units: float, frozen: dict[str, Array], side: int) -> Arithmetic:
    """Float64, with errors of so many units. A derivative rounds its own terms, which may cancel
    where no value does: so errors on two sides differ by what a step changes.
    """
    rng = np.random.default_rng(side) if units else None
    return Arithmetic(1, False, units, side=rng, spread=3 * STEP, frozen=frozen)


def check_end(program: Program, state: State) -> None:
    """What is compared in the end must be there and be well conditioned."""
    for name in program.outputs:
        if name not in state:
            raise Discard("a value that is looked at is gone")
        check_tame(state[name].read(), state[name].dtype)
