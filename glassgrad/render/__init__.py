"""Program -> Source: write a program in the language that a target's compiler takes."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import Any

from glassgrad.base.errors import DeviceError
from glassgrad.ir.stages import Program, Source, Target

# language -> (module, class); the class takes a Target and has render(name, uops) -> str
RENDERERS = {
    "llvm": ("glassgrad.render.llvm", "LLVMRenderer"),
    "c": ("glassgrad.render.c", "ClangRenderer"),
    "cuda": ("glassgrad.render.cuda", "CUDARenderer"),
    "metal": ("glassgrad.render.metal", "MetalRenderer"),
    "opencl": ("glassgrad.render.opencl", "OpenCLRenderer"),
    "python": ("glassgrad.render.python", "PythonRenderer"),
}
PUBLIC = {name: module for module, name in RENDERERS.values()}


def render(program: Program, target: Target) -> Source:
    """The program as text in the target's language."""
    text = _renderer(target)(program.name, program.uops)
    return Source(program.name, text, target.language, program)


@lru_cache(maxsize=64)
def _renderer(target: Target) -> Callable[[str, tuple[Any, ...]], str]:
    if target.language not in RENDERERS:
        known = ", ".join(RENDERERS)
        raise DeviceError(
            f"there is no renderer for the language {target.language!r}", hint=f"known: {known}"
        )
    module, name = RENDERERS[target.language]
    return getattr(import_module(module), name)(target).render  # type: ignore[no-any-return]


def __getattr__(name: str) -> Any:
    if name in PUBLIC:
        return getattr(import_module(PUBLIC[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
