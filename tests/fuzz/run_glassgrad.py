"""Runs the text of a program with glassgrad, eagerly or captured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fuzz.programs import Array, Leaf, Program


def names_for(leaves: Iterable[Leaf]) -> dict[str, Any]:
    """The globals of a program: modules and leaves."""
    import glassgrad
    from glassgrad import Tensor, nn

    found: dict[str, Any] = {"np": np, "Tensor": Tensor, "nn": nn, "glassgrad": glassgrad}
    for leaf in leaves:
        found[leaf.name] = eval(leaf.text(), found)
    return found


def arrays(tensors: list[Any]) -> list[Array | None]:
    return [None if one is None else np.array(one.numpy()) for one in tensors]


def compile_program(program: Program, names: dict[str, Any]) -> Any:
    """Compile the program; tracebacks show its text."""
    import linecache

    text = program.function()
    file = f"<program {id(names)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), names)
    return names["program"]


def run(program: Program, seeds: Sequence[int], is_captured: bool) -> list[list[Array | None]]:
    """Call a function, eager or captured, with inputs of these seeds.

    Eager programs run more than once, too, so that the step cache is used.
    """
    from glassgrad import TinyJit

    names = names_for(leaf for leaf in program.leaves if leaf.is_global)
    function = compile_program(program, names)
    if is_captured:
        function = TinyJit(function)
    found = []
    for seed in seeds:
        passed = [leaf for leaf in program.with_seeds(seed).leaves if not leaf.is_global]
        names = names_for(passed)
        arguments = [names[leaf.name] for leaf in passed]
        found.append(arrays(function(*arguments)))
    return found
