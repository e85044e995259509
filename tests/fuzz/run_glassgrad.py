"""Program -> what glassgrad makes of it: the text is executed, eagerly or captured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fuzz.programs import Array, Leaf, Program


def names_for(leaves: Iterable[Leaf]) -> dict[str, Any]:
    """What a program's text may use, and leaves."""
    import glassgrad
    from glassgrad import Tensor, nn

    found: dict[str, Any] = {"np": np, "Tensor": Tensor, "nn": nn, "glassgrad": glassgrad}
    for leaf in leaves:
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

    names = names_for(leaf for leaf in program.leaves if leaf.is_held)
    function = defined(program, names)
    if is_captured:
        function = TinyJit(function)
    found = []
    for seed in seeds:
        passed = [leaf for leaf in program.with_seeds(seed).leaves if not leaf.is_held]
        fresh = names_for(passed)
        given = [fresh[leaf.name] for leaf in passed]
        found.append(arrays(function(*given)))
    return found
