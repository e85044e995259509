"""A refused kernel -> code by a simpler recipe: slower, but right; the user gets one warning.

A loop move, the lowering, a proof or the compiler may refuse what a recipe made of a kernel. That
is a bug of ours, and no reason for a program to end: the kernel is compiled again with less and
less of its recipe, then without any move, and at last with its loops as they were scheduled and
without prefetching. Such code is kept in memory only, so the next process tries, and warns, again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

from glassgrad.base.counters import GlobalCounters
from glassgrad.base.errors import CompilerWarning, DeviceError, SettingError
from glassgrad.base.fast_dataclasses import replace
from glassgrad.base.origin import here
from glassgrad.devices.protocol import Device
from glassgrad.engine.compile.optimizer_policy import Chooser, heuristic_chooser
from glassgrad.ir.stages import Choose, Executable, Kernel, Nest, Source, Target

Shape = Callable[[Kernel, Target], Nest]
Write = Callable[[Shape, Target], Source]
FINAL = (MemoryError, DeviceError, SettingError)  # no recipe changes these


class Attempt:
    """How the loops of a kernel are shaped first; it knows what to try if that is refused."""

    def __init__(self, chooser: Chooser) -> None:
        self.chooser = chooser
        self.recipe: tuple[object, ...] = ()

    def __call__(self, kernel: Kernel, target: Target) -> Nest:
        return _optimized(self._choose)(kernel, target)

    def _choose(self, nest: Nest, target: Target) -> tuple[object, ...]:
        self.recipe = self.chooser(nest, target)
        return self.recipe

    def simpler(self, target: Target) -> Iterator[tuple[Shape, Target]]:
        """What to try after this, the fastest first."""
        from glassgrad.loops import unoptimized

        usual = heuristic_chooser()
        if self.chooser.key not in (usual.key, "none"):
            yield _optimized(usual), target
        recipe = self.recipe
        while recipe:
            recipe = recipe[: len(recipe) // 2]
            yield _optimized(_fixed(recipe)), target
        if not self.recipe:
            yield _optimized(_fixed(())), target
        yield unoptimized, replace(target, has_hints=False)


def _optimized(choose: Choose) -> Shape:
    def shape(kernel: Kernel, target: Target) -> Nest:
        from glassgrad.loops import optimize  # where sources are on disk nobody optimizes

        return optimize(kernel, target, choose)

    return shape


def _fixed(recipe: tuple[object, ...]) -> Choose:
    return lambda nest, target: recipe


def compile_simpler(error: Exception, attempt: Attempt, write: Write, device: Device) -> Executable:
    """The code of a kernel that `error` says was refused; that error if nothing simpler helps."""
    if isinstance(error, FINAL):
        raise error
    from glassgrad.ir.coverage import CoverageError  # where nothing is refused nobody needs it

    if isinstance(error, CoverageError):
        GlobalCounters.uncovered(1)
    for shape, target in attempt.simpler(device.target):
        try:
            made = device.compile(write(shape, target))
        except FINAL:
            raise
        except Exception:  # noqa: BLE001 - the first error says more
            continue
        _warn(made.source.name, error)
        return made
    raise error


def _warn(name: str, error: Exception) -> None:
    line = here()
    place = "" if line is None else f"\n  {line}"
    message = (
        f"the optimized version of kernel {name} does not compile "
        f"({type(error).__name__}: {error}); a slower version of it is used, with the same results"
        f"{place}\n  hint: this is a bug of glassgrad; to report it, send this message "
        "and what the program prints with DEBUG=3"
    )
    try:
        warnings.warn(message, CompilerWarning, stacklevel=3)
    except CompilerWarning as raised:  # warnings are errors here
        raise raised from error
