"""Shrinking: a failing program -> a smaller one that fails in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from fuzz.dtypes import is_float
from fuzz.ops import OPS
from fuzz.ops.table import Index
from fuzz.programs import Leaf, Program, Statement
from fuzz.reference import leaf_value, step
from fuzz.stochastic import Arithmetic, Discard

Fails = Callable[[Program], bool]


def shrink(program: Program, fails: Fails, seconds: float = 60.0) -> Program:
    """Try smaller programs until none of them fails, or the time is up."""
    end = time.monotonic() + seconds
    small = prune(program)
    if small != program and not _is_failing(small, fails):
        small = replace(program, keeps_unused=True)
    program = small
    is_changed = True
    while is_changed and time.monotonic() < end:
        is_changed = False
        for kind in (fewer_outputs, fewer_statements, leaves_for_statements, simpler):
            smaller = _descend(program, kind, fails, end)
            is_changed = is_changed or smaller != program
            program = smaller
    return program


def _descend(
    program: Program, kind: Callable[[Program], Iterator[Program]], fails: Fails, end: float
) -> Program:
    """Take the first candidate that fails, and start over from there."""
    is_changed = True
    while is_changed:
        is_changed = False
        for candidate in kind(program):
            if time.monotonic() > end:
                return program
            if candidate != program and _is_failing(candidate, fails):
                program, is_changed = candidate, True
                break
    return program


def _is_failing(program: Program, fails: Fails) -> bool:
    is_program = bool(program.parameters if program.loss else program.outputs)
    try:
        return is_program and fails(program)
    except Exception:  # noqa: BLE001 - the reference cannot run it: it is no program
        return False


# ---------------------------------------------------------------------- kinds of smaller programs


def fewer_outputs(program: Program) -> Iterator[Program]:
    for name in program.outputs:
        yield prune(replace(program, outputs=(name,)))
    for i in range(len(program.outputs)):
        rest = (*program.outputs[:i], *program.outputs[i + 1 :])
        yield prune(replace(program, outputs=rest))
    if len(program.loss) > 1:
        for name in program.loss:
            yield prune(replace(program, loss=(name,)))
    if program.loss:
        yield prune(replace(program, loss=()))
    for leaf in program.parameters:
        yield _with_leaf(program, replace(leaf, is_parameter=False))


def fewer_statements(program: Program) -> Iterator[Program]:
    """Remove a range of statements and everything that depends on it; long ranges first."""
    count = len(program.statements)
    length = count // 2
    while length >= 1:
        for start in range(count - length, -1, -length):
            yield without(program, set(range(start, start + length)))
        length //= 2


def leaves_for_statements(program: Program) -> Iterator[Program]:
    """Replace the result of a statement by a new leaf, or by one of its inputs."""
    arithmetic = Arithmetic()
    state = {leaf.name: leaf_value(leaf, arithmetic) for leaf in program.leaves}
    for i, one in enumerate(program.statements):
        try:
            step(state, one, arithmetic)
        except Discard:
            return
        if len(one.outs) != 1:
            continue
        made = state[one.outs[0]]
        rest = (*program.statements[:i], *program.statements[i + 1 :])
        for name in one.inputs:
            if name in state and (state[name].shape, state[name].dtype) == (made.shape, made.dtype):
                yield _renamed(replace(program, statements=rest), one.outs[0], name)
        leaf = _leaf_like(one.outs[0], made.shape, made.dtype)
        yield prune(replace(program, statements=rest, leaves=(*program.leaves, leaf)))


def simpler(program: Program) -> Iterator[Program]:
    """Smaller sizes, more common dtypes and simpler numbers."""
    yield replace(program, realizes_together=False)
    for size in sorted({n for leaf in program.leaves for n in leaf.shape}, reverse=True):
        for smaller in dict.fromkeys((1, 2, 3, size // 2, size - 1)):
            if 0 < smaller < size:
                yield _resized(program, size, smaller)
    for dtype in sorted({leaf.dtype for leaf in program.leaves} - {"float32", "int32", "bool"}):
        yield _cast(program, dtype, "float32" if is_float(dtype) else "int32")
    for leaf in program.leaves:
        if leaf.is_global:
            yield _with_leaf(program, replace(leaf, is_global=False))
        if leaf.divisor > 4:
            yield _with_leaf(program, replace(leaf, low=-8, high=9, divisor=4))
        if leaf.seed:
            yield _with_leaf(program, replace(leaf, seed=0))


# ---------------------------------------------------------------------- pieces


def without(program: Program, dropped: set[int]) -> Program:
    """Without these statements, and those that depend on them."""
    removed: set[str] = set()
    kept = []
    for i, one in enumerate(program.statements):
        if i in dropped or removed.intersection(one.inputs):
            removed.update(one.outs)
        else:
            kept.append(one)
    return prune(
        replace(
            program,
            statements=tuple(kept),
            outputs=tuple(name for name in program.outputs if name not in removed),
            loss=tuple(name for name in program.loss if name not in removed),
        )
    )


def prune(program: Program) -> Program:
    """Without unused values. Writes are needed if their target is."""
    if program.keeps_unused:
        return program.without_unused()
    needed = {*program.outputs, *program.loss}
    kept: list[Statement] = []
    is_changed = True
    while is_changed:  # a write to a view is needed if any other view of the memory is
        before = len(needed)
        kept = []
        for one in reversed(program.statements):
            op = OPS[one.op]
            is_needed = bool(needed.intersection(one.outs))
            if op.effect in ("write", "none"):
                is_needed = one.inputs[0] in needed
            if is_needed:
                kept.append(one)
                needed.update(one.inputs)
        needed.update(_aliases(program, needed))
        is_changed = len(needed) != before
    return replace(program, statements=tuple(reversed(kept))).without_unused()


def _aliases(program: Program, needed: set[str]) -> set[str]:
    """Views of needed values that are the target of a write."""
    roots: dict[str, str] = {}
    for one in program.statements:
        if OPS[one.op].effect == "view":
            source = one.inputs[0]
            roots.update((out, roots.get(source, source)) for out in one.outs)
    written = {one.inputs[0] for one in program.statements if OPS[one.op].effect == "write"}
    alive = {roots.get(name, name) for name in needed}
    return {name for name in written if roots.get(name, name) in alive}


def _leaf_like(name: str, shape: tuple[int, ...], dtype: str) -> Leaf:
    if dtype == "bool":
        return Leaf(name, shape, dtype, 0, 2, 1)
    if dtype.startswith(("int", "uint")):
        return Leaf(name, shape, dtype, 0, 2, 1)
    return Leaf(name, shape, dtype, -4, 5, 2)


def _renamed(program: Program, old: str, new: str) -> Program:
    def name(one: str) -> str:
        return new if one == old else one

    statements = [replace(s, inputs=tuple(map(name, s.inputs))) for s in program.statements]
    outputs = tuple(dict.fromkeys(map(name, program.outputs)))
    loss = tuple(dict.fromkeys(map(name, program.loss)))
    return prune(replace(program, statements=tuple(statements), outputs=outputs, loss=loss))


def _with_leaf(program: Program, leaf: Leaf) -> Program:
    leaves = tuple(leaf if leaf.name == one.name else one for one in program.leaves)
    return replace(program, leaves=leaves)


def _resized(program: Program, size: int, smaller: int) -> Program:
    """Replace a size in every shape and constant."""

    def number(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(number(one) for one in value)
        if isinstance(value, (bool, str, slice, Index)):
            return value
        return smaller if value == size else value

    leaves = [replace(leaf, shape=number(leaf.shape)) for leaf in program.leaves]
    leaves = [
        replace(leaf, high=smaller) if leaf.divisor == 1 and leaf.high == size else leaf
        for leaf in leaves
    ]
    statements = [
        replace(one, args={name: number(value) for name, value in one.args.items()})
        for one in program.statements
    ]
    return replace(program, leaves=tuple(leaves), statements=tuple(statements))


def _cast(program: Program, dtype: str, plain: str) -> Program:
    leaves = [replace(one, dtype=plain) if one.dtype == dtype else one for one in program.leaves]
    statements = [
        replace(one, args={k: plain if v == dtype else v for k, v in one.args.items()})
        for one in program.statements
    ]
    return replace(program, leaves=tuple(leaves), statements=tuple(statements))
