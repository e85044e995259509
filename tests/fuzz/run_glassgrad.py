"""Program -> what glassgrad makes of it: the text is executed, eagerly or captured."""

from __future__ import annotations

from collections.abc import Sequence
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


def run(program: Program, seeds: Sequence[int], is_captured: bool) -> list[list[Array | None]]:
    """Several calls of one function, eager or captured, with inputs of these seeds.

    An eager program runs more than once, too: the second time most of it is recognised.
    """
    from glassgrad import TinyJit

    names = names_for(program)
    function = defined(program, names)
    if is_captured:
        function = TinyJit(function)
    found = []
    for seed in seeds:
        moved = program.with_seeds(seed)
        fresh = names_for(moved)
        given = [fresh[leaf.name] for leaf in moved.leaves if not leaf.is_held]
        found.append(arrays(function(*given)))
    return found
