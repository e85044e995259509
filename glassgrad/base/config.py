"""Environment -> settings: one table of names, defaults and meanings; `Context` overrides them.

A setting compares like its value (`if DEBUG >= 2`). Overrides are stored in a `contextvars`
variable, so threads and asyncio tasks do not see each other's. The environment is read once, at
import.
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
    """An integer in common notations: 1, true, 0x10, 512M."""
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
    """A row of the table: name, current value, and meaning.

    >>> from glassgrad.base.config import DEBUG, Context
    >>> with Context(DEBUG=2):
    ...     print(DEBUG >= 2, DEBUG)
    True 2
    """

    __slots__ = ("_override", "base", "default", "meaning", "name", "variable", "was_changed")

    def __init__(self, name: str, default: T, meaning: str, variable: str | None = None) -> None:
        self.name = name
        self.default: T = default
        self.meaning = meaning
        self.variable = variable or name
        self.base: T = self._from_environment()
        self._override: Override[T] = Override(name)
        self.was_changed = self.base != default  # False: never set to anything but the default
        SETTINGS[name] = self

    def _from_environment(self) -> T:
        text = os.environ.get(self.variable)
        return self.default if text is None else self.convert(text)

    def convert(self, value: object) -> T:
        """A value from the environment or a Context, converted to this setting's type."""
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
        self.was_changed = True
        self._override.set(self.convert(value))

    def override(self, value: object) -> Token[T]:
        """Change the value in this thread or task; pass the returned token to `restore`."""
        self.was_changed = True
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
    "DEBUG",
    0,
    "print: 1 devices, 2 kernels, 3 recipes, 4 sources, 5 passes, 6 programs, 7 assembly",
)
NOOPT = Setting("NOOPT", 0, "1: compile plain loops, without any loop moves")
BEAM = Setting("BEAM", 0, "n > 0: search for faster loops with a beam of width n")
BEAM_SECONDS = Setting("BEAM_SECONDS", 60, "time limit of the search for one kernel")
THREADS = Setting("THREADS", 0, "threads of the CPU device; 0: one per available core")
DEV = Setting("DEV", "", "the default device: CPU, CLANG or PYTHON")
CACHE = Setting("CACHE", "", "folder for compiled kernels and downloads", "GLASSGRAD_CACHE")
CACHELEVEL = Setting(
    "CACHELEVEL", 2, "cache on disk: 0 nothing, 1 compiled kernels, 2 kernels and plans"
)
JIT = Setting("JIT", 1, "0: call functions decorated with TinyJit directly")
JIT_CHECK = Setting(
    "JIT_CHECK", 2, "compare replays with the function: 0 never, 1 always, 2 at growing intervals"
)
CHECK = Setting("CHECK", 0, "1: report out-of-range tensor indices on GPUs, too (CPUs always do)")
SPEC = Setting("SPEC", 0, "1: check after every stage that each node is legal there")
POISON = Setting("POISON", 0, "1: fill uninitialized memory with NaN")
VERIFY = Setting(
    "VERIFY", 0, "1: also run every kernel without loop moves, and compare the results"
)
TRAINING = Setting("TRAINING", 0, "1: training mode of dropout and batch norm")
NO_GRAD = Setting("NO_GRAD", 0, "1: record no gradients")
WINO = Setting("WINO", 0, "1: use Winograd's algorithm for 3x3 convolutions")
FUSE_OPTIM = Setting(
    "FUSE_OPTIM", 0, "accepted for compatibility; optimizer updates are always fused"
)
MEM_LIMIT = Setting("MEM_LIMIT", 0, "limit of memory per device, such as 4G; 0: none")
PROFILE = Setting("PROFILE", 0, "1: record the time of every launch")
VIZ = Setting("VIZ", 0, "1: at exit, write an HTML page that shows all computations")
CI = Setting("CI", 0, "1: running in continuous integration")
NO_COLOR = Setting("NO_COLOR", 0, "1: no colours in the output")


def table() -> str:
    """Every setting on a line: name, value, meaning."""
    rows = [(one.variable, str(one), one.meaning) for one in SETTINGS.values()]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return "\n".join(f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}" for a, b, c in rows)


def _setting(name: str) -> Setting[Any]:
    found = SETTINGS.get(name)
    if found is None:
        import difflib  # its import takes a tenth of that of glassgrad

        near = difflib.get_close_matches(name.upper(), SETTINGS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"one of {', '.join(SETTINGS)}"
        raise SettingError(f"there is no setting {name}", hint)
    return found


class Context:
    """Overrides settings temporarily: `with Context(DEBUG=2):`, or `@Context(DEBUG=2)`.

    A decorated generator has the overrides while it runs, not while it is suspended. (A `with` that
    spans a `yield` leaks them to the caller: Python has one context per thread or task.)
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

    def _fresh_copy(self) -> Context:
        """A new Context, so that threads and recursion do not share `_entered`."""
        return Context(**{setting.name: value for setting, value in self.values})

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def inside(*args: P.args, **kwargs: P.kwargs) -> R:
            with self._fresh_copy():
                result = function(*args, **kwargs)
            if isinstance(result, GeneratorType):
                return self._run_generator(result)  # type: ignore[return-value]
            return result

        return inside

    def _run_generator(self, generator: Generator[Any, Any, R]) -> Generator[Any, Any, R]:
        sent: Any = None
        step: Callable[[Any], Any] = generator.send
        while True:
            with self._fresh_copy():
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
            except BaseException as error:  # noqa: BLE001 - passed on to the generator
                sent, step = error, generator.throw


def is_switched_on(name: str) -> bool:
    """True for NAME=1 in the environment. PYTHON=/usr/bin/python3 is meant for other programs."""
    text = os.environ.get(name, "").strip()
    return text.isdecimal() and int(text) > 0


def getenv(name: str, default: Any = 0) -> Any:
    """An environment variable, converted to the type of the default.

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
