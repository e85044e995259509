"""environment -> settings: one table of every name, default and meaning; `Context` overrides them.

A setting behaves like its value (`if DEBUG >= 2`). Overrides live in a `contextvars` variable, so
threads and asyncio tasks do not see each other's. The environment is read once, at import.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Generator
from contextvars import ContextVar as Override
from contextvars import Token
from types import GeneratorType, TracebackType
from typing import Any, Generic, ParamSpec, Self, TypeVar, cast

from glassgrad.base.errors import SettingError

T = TypeVar("T", bound=int | str)
P = ParamSpec("P")
R = TypeVar("R")

WORDS = {"": 0, "true": 1, "yes": 1, "on": 1, "false": 0, "no": 0, "off": 0}
UNITS = {"k": 10, "m": 20, "g": 30, "t": 40}

SETTINGS: dict[str, Setting[Any]] = {}


def _parse_int(name: str, text: str) -> int:
    """A number as people write it: 1, true, 0x10, 512M."""
    word = text.strip().lower()
    if word in WORDS:
        return WORDS[word]
    shift = UNITS.get(word[-1], 0)
    try:
        return int(word[:-1] if shift else word, 0) << shift
    except ValueError:
        hint = f"set {name} to a number such as 0, 1 or 2, or unset it"
        raise SettingError(f"{name}={text!r} is not a whole number", hint) from None


class Setting(Generic[T]):
    """One row of the table: a name, what it is now, and what it means.

    >>> from glassgrad.base.config import DEBUG, Context
    >>> with Context(DEBUG=2):
    ...     print(DEBUG >= 2, DEBUG)
    True 2
    """

    __slots__ = ("_override", "base", "default", "is_touched", "meaning", "name", "variable")

    def __init__(self, name: str, default: T, meaning: str, variable: str | None = None) -> None:
        self.name = name
        self.default: T = default
        self.meaning = meaning
        self.variable = variable or name
        self.base: T = self._from_environment()
        self._override: Override[T] = Override(name)
        self.is_touched = self.base != default  # False: it has always been the default
        SETTINGS[name] = self

    def _from_environment(self) -> T:
        text = os.environ.get(self.variable)
        return self.default if text is None else self.convert(text)

    def convert(self, value: object) -> T:
        """A value from the environment or a Context as this setting's type."""
        if isinstance(self.default, str):
            return cast(T, str(value))
        if isinstance(value, str):
            return cast(T, _parse_int(self.variable, value))
        if isinstance(value, (int, Setting)):
            return cast(T, int(value))
        raise SettingError(f"{self.name}={value!r} is not a whole number")

    @property
    def value(self) -> T:
        return self._override.get(self.base)

    @value.setter
    def value(self, value: T) -> None:
        self.is_touched = True
        self._override.set(self.convert(value))

    def override(self, value: object) -> Token[T]:
        """Change the value in this thread or task; `restore` takes what this returns."""
        self.is_touched = True
        return self._override.set(self.convert(value))

    def restore(self, token: Token[T]) -> None:
        self._override.reset(token)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return int(self.value)

    __index__ = __int__

    def __str__(self) -> str:
        return str(self.value)

    def __repr__(self) -> str:
        return f"Setting({self.name}={self.value!r})"

    def __eq__(self, other: object) -> bool:
        return bool(self.value == (other.value if isinstance(other, Setting) else other))

    def __lt__(self, other: Any) -> bool:
        return bool(self.value < other)

    def __le__(self, other: Any) -> bool:
        return bool(self.value <= other)

    def __gt__(self, other: Any) -> bool:
        return bool(self.value > other)

    def __ge__(self, other: Any) -> bool:
        return bool(self.value >= other)

    __hash__ = object.__hash__


# ---------------------------------------------------------------------- the table

DEBUG = Setting(
    "DEBUG", 0, "1 devices, 2 kernels, 3 recipes, 4 source, 5 passes, 6 programs, 7 asm"
)
NOOPT = Setting("NOOPT", 0, "1: apply no loop moves")
BEAM = Setting("BEAM", 0, "search for recipes, this many candidates wide")
BEAM_SECONDS = Setting("BEAM_SECONDS", 60, "give up a search for one kernel after this time")
THREADS = Setting("THREADS", 0, "threads of the CPU device; 0: one per core that we may use")
DEV = Setting("DEV", "", "the default device, such as CPU, CLANG or PYTHON")
CACHE = Setting("CACHE", "", "folder of compiled kernels and downloads", "GLASSGRAD_CACHE")
CACHELEVEL = Setting("CACHELEVEL", 2, "0: keep nothing on disk, 1: compiled kernels, 2: plans, too")
JIT = Setting("JIT", 1, "0: run captured functions as plain functions")
JIT_CHECK = Setting(
    "JIT_CHECK", 2, "captures are compared with their functions: 0 never, 1 always, 2 ever rarer"
)
CHECK = Setting("CHECK", 0, "1: look for bad tensor indices on GPUs too; elsewhere always")
SPEC = Setting("SPEC", 0, "1: check after every pass that each node is legal at its stage")
POISON = Setting("POISON", 0, "1: fill memory whose contents are undefined with NaN")
VERIFY = Setting("VERIFY", 0, "1: run every kernel again without loop moves, and compare")
TRAINING = Setting("TRAINING", 0, "1: dropout and batch norm work as in training")
NO_GRAD = Setting("NO_GRAD", 0, "1: no gradient flows through the results of operations")
WINO = Setting("WINO", 0, "1: 3x3 convolutions by Winograd's method")
FUSE_OPTIM = Setting("FUSE_OPTIM", 0, "scripts set it; updates share kernels in any case")
MEM_LIMIT = Setting(
    "MEM_LIMIT", 0, "most bytes that a device may hand out, such as 4G; 0: no limit"
)
PROFILE = Setting("PROFILE", 0, "1: keep the time of every launch")
VIZ = Setting("VIZ", 0, "1: when the program ends, write a page that shows all it computed")
CI = Setting("CI", 0, "1: a machine that runs tests")
NO_COLOR = Setting("NO_COLOR", 0, "1: print no colours")


def table() -> str:
    """Every setting on one line: name, value, meaning."""
    rows = [(one.variable, str(one), one.meaning) for one in SETTINGS.values()]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return "\n".join(f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}" for a, b, c in rows)


def _setting(name: str) -> Setting[Any]:
    found = SETTINGS.get(name)
    if found is None:
        import difflib  # takes a tenth of the time that all of glassgrad takes to import

        near = difflib.get_close_matches(name.upper(), SETTINGS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"one of {', '.join(SETTINGS)}"
        raise SettingError(f"there is no setting {name}", hint)
    return found


class Context:
    """Settings with other values for a while: `with Context(DEBUG=2):`, or `@Context(DEBUG=2)`.

    A decorated generator has them while it runs and not while it waits. (A `with` that spans a
    `yield` shows them to whoever runs the generator: Python has one context per thread or task.)
    """

    def __init__(self, **values: object) -> None:
        self.values = [(_setting(name), value) for name, value in values.items()]
        self._entered: list[list[tuple[Setting[Any], Token[Any]]]] = []

    def __enter__(self) -> Self:
        converted = [(setting, setting.convert(value)) for setting, value in self.values]
        self._entered.append([(setting, setting.override(value)) for setting, value in converted])
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for setting, token in reversed(self._entered.pop()):
            setting.restore(token)

    def _again(self) -> Context:
        """A fresh one, so that threads and recursion do not share the list of what was entered."""
        return Context(**{setting.name: value for setting, value in self.values})

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def inside(*args: P.args, **kwargs: P.kwargs) -> R:
            with self._again():
                result = function(*args, **kwargs)
            if isinstance(result, GeneratorType):
                return self._steps(result)  # type: ignore[return-value]
            return result

        return inside

    def _steps(self, generator: Generator[Any, Any, R]) -> Generator[Any, Any, R]:
        sent: Any = None
        step: Callable[[Any], Any] = generator.send
        while True:
            with self._again():
                try:
                    item = step(sent)
                except StopIteration as end:
                    return end.value  # type: ignore[no-any-return]
            try:
                sent = yield item
                step = generator.send
            except GeneratorExit:
                generator.close()
                raise
            except BaseException as error:  # noqa: BLE001 (it goes to the generator)
                sent, step = error, generator.throw


def getenv(name: str, default: Any = 0) -> Any:
    """An environment variable of the user's own, as the type of its default.

    >>> getenv("SURELY_NOT_SET", 3)
    3
    """
    text = os.environ.get(name)
    if text is None:
        return default
    if isinstance(default, str):
        return text
    if isinstance(default, float):
        try:
            return float(text)
        except ValueError:
            raise SettingError(f"{name}={text!r} is not a number") from None
    number = _parse_int(name, text)
    return bool(number) if isinstance(default, bool) else number
