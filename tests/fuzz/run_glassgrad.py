"""Program -> what glassgrad makes of it: the text is executed, eagerly or captured."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz.programs import Array, Program


def names_for(program: Program) -> dict[str, Any]:
    """What a program's text may use, and its leaves."""
    import glassgrad
    from glassgrad import Tensor, nn

    found: dict[str, Any] = {"np": np, "Tensor": Tensor, "nn": nn, "glassgrad": glassgrad}
    for leaf in program.leaves:
        found[leaf.name] = eval(leaf.text(), found)
    return found


def arrays(tensors: list[Any]) -> list[Array | None]:
    return [None if one is None else np.array(one.numpy()) for one in tensors]


def defined(program: Program, names: dict[str, Any]) -> Any:
    """The program as a function; its text is kept for tracebacks."""
    import linecache

    text = program.function()
    file = f"<program {id(names)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), names)
    return names["program"]


def run(program: Program) -> list[Array | None]:
    """Once, eagerly."""
    names = names_for(program)
    given = [names[leaf.name] for leaf in program.leaves if not leaf.is_held]
    return arrays(defined(program, names)(*given))


def run_captured(program: Program, calls: int) -> list[list[Array | None]]:
    """Several calls of a captured function, with other inputs each time."""
    from glassgrad import TinyJit

    names = names_for(program)
    captured = TinyJit(defined(program, names))
    found = []
    for call in range(calls):
        moved = program.with_seeds(call)
        fresh = names_for(moved)
        given = [fresh[leaf.name] for leaf in moved.leaves if not leaf.is_held]
        found.append(arrays(captured(*given)))
    return found
