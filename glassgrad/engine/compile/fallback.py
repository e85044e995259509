"""A kernel that fails to compile -> code by a simpler recipe: slower, but right, with one warning.

A loop move, lowering, a proof or the compiler may refuse a recipe. That is a bug of glassgrad and
no reason for the user's program to end: the kernel is compiled again with less and less of its
recipe, then without moves, and at last with the loops as scheduled and without prefetches. Such
code is kept in memory only, so the next process tries, and warns, again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

from glassgrad.base.counters import GlobalCounters
from glassgrad.base.errors import CompilerWarning, DeviceError, SettingError
from glassgrad.base.fast_dataclasses import replace
from glassgrad.base.origin import here
from glassgrad.devices.protocol import Device
from glassgrad.engine.compile.optimizer_policy import OptimizerPolicy, heuristic_policy
from glassgrad.ir.stages import Choose, Executable, Kernel, Nest, Source, Target

Optimize = Callable[[Kernel, Target], Nest]
WriteSource = Callable[[Optimize, Target], Source]
UNRECOVERABLE = (MemoryError, DeviceError, SettingError)  # a simpler recipe does not help


class RecipeAttempt:
    """Chooses a kernel's recipe, and knows what to try if that is refused."""

    def __init__(self, policy: OptimizerPolicy) -> None:
        self.policy = policy
        self.recipe: tuple[object, ...] = ()

    def __call__(self, kernel: Kernel, target: Target) -> Nest:
        return _optimize_with(self._choose)(kernel, target)

    def _choose(self, nest: Nest, target: Target) -> Nest | tuple[object, ...]:
        chosen = self.policy(nest, target)
        self.recipe = chosen.recipe if isinstance(chosen, Nest) else chosen
        return chosen

    def simpler_attempts(self, target: Target) -> Iterator[tuple[Optimize, Target]]:
        """What to try next, the fastest first."""
        from glassgrad.loops import unoptimized

        usual = heuristic_policy()
        if self.policy.key not in (usual.key, "none"):
            yield _optimize_with(usual), target
        recipe = self.recipe
        while recipe:
            recipe = recipe[: len(recipe) // 2]
            yield _optimize_with(_fixed_recipe(recipe)), target
        if not self.recipe:
            yield _optimize_with(_fixed_recipe(())), target
        yield unoptimized, replace(target, has_hints=False)


def _optimize_with(choose: Choose) -> Optimize:
    def run(kernel: Kernel, target: Target) -> Nest:
        from glassgrad.loops import optimize  # not needed where sources are on disk

        return optimize(kernel, target, choose)

    return run


def _fixed_recipe(recipe: tuple[object, ...]) -> Choose:
    return lambda nest, target: recipe


def compile_with_simpler_recipe(
    error: Exception, attempt: RecipeAttempt, write: WriteSource, device: Device
) -> Executable:
    """The code of a kernel that was refused with `error`; raises it if no simpler recipe
    compiles.
    """
    if isinstance(error, UNRECOVERABLE):
        raise error
    from glassgrad.ir.coverage import CoverageError  # imported only where a kernel is refused

    if isinstance(error, CoverageError):
        GlobalCounters.uncovered(1)
    for optimize, target in attempt.simpler_attempts(device.target):
        try:
            executable = device.compile(write(optimize, target))
        except UNRECOVERABLE:
            raise
        except Exception:  # noqa: BLE001 - the first error is the one to report
            continue
        _warn(executable.source.name, error)
        return executable
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
    except CompilerWarning as raised:  # warnings are configured as errors
        raise raised from error
