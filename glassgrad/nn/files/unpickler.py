"""a pickle -> the lists, dicts, numbers and texts in it, by a machine that runs nobody's code.

Python's own reader imports what a pickle names and calls it. This one asks a Builder, which knows a
few names; memory is as much as the pickle is long.
"""

from __future__ import annotations

from collections.abc import Callable
from pickletools import genops
from typing import Any, NamedTuple, NoReturn, Protocol, cast

from glassgrad.base.errors import FormatError


class Call(NamedTuple):
    """A name of a pickle's, which may be called."""

    name: str


class Unfinished:
    """What a call gives while its state, which follows in the pickle, is not known."""

    def __init__(self) -> None:
        self.numbers: list[int] = []  # of the places in the memo where it stands meanwhile

    def finished(self, state: Any) -> Any:
        """The value itself."""
        raise NotImplementedError


class Builder(Protocol):
    """What names stand for."""

    def persistent(self, found: Any) -> Any:
        """The thing outside of the pickle that is described."""

    def named(self, name: str) -> Any:
        """What a name stands for by itself; most are a Call."""

    def called(self, name: str, args: tuple[Any, ...]) -> Any:
        """What a call of this name gives."""

    def created(self, name: str) -> Any:
        """An object of the class of this name."""


class File(Protocol):
    """What is read from front to back."""

    def read(self, size: int, /) -> bytes: ...

    def readline(self) -> bytes: ...

    def tell(self) -> int: ...


MARK = object()
# What a damaged pickle makes Python say; a warning where those are errors.
DAMAGE = (
    IndexError, KeyError, TypeError, AttributeError, ValueError, OverflowError, DeprecationWarning,
)  # fmt: skip
COPIED = (str, bytes, list, dict)
MOST_HANDED = 4  # times the length of the pickle so far
SMALL = 1 << 16


def unpickled(data: bytes | File, builder: Builder) -> Any:
    """The value of a pickle; a file is read to the end of the pickle, and no further."""
    machine = Machine(builder)
    try:
        # It asks for no more than a File has.
        for opcode, arg, machine.place in genops(cast(Any, data)):
            step = STEPS.get(opcode.name)
            if step is not None:
                step(machine, arg)
            elif opcode.name in CONSTANTS:
                machine.stack.append(CONSTANTS[opcode.name])
            elif opcode.name in VALUES:
                machine.stack.append(arg)
            elif opcode.name not in IGNORED:
                raise FormatError(f"a pickle of tensors has no {opcode.name}")
    except DAMAGE as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"the pickle is damaged: {error}") from None
    if len(machine.stack) != 1:
        raise FormatError("the pickle is damaged: it leaves more than one value, or none")
    return machine.stack[0]


class Machine:
    """A stack of values, and those that were put aside to be used again."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.place: int | None = 0  # in the pickle
        self.handed = 0  # how many bytes and items calls were given

    def marked(self) -> list[Any]:
        """Everything above the topmost mark, which goes, too."""
        place = len(self.stack) - 1
        while self.stack[place] is not MARK:
            place -= 1
            if place < 0:
                raise FormatError("the pickle is damaged: a mark is missing")
        found = self.stack[place + 1 :]
        del self.stack[place:]
        return found

    def pop(self) -> Any:
        found = self.stack.pop()
        if found is MARK:
            raise FormatError("the pickle is damaged: a value is missing")
        return found

    def drop(self) -> None:
        self.pop()

    def together(self, count: int) -> None:
        self.stack.append(tuple(reversed([self.pop() for _ in range(count)])))

    def extend(self, items: list[Any]) -> None:
        if not isinstance(self.stack[-1], list):
            raise FormatError("the pickle is damaged: what is extended is no list")
        self.stack[-1].extend(items)

    def fill(self, pairs: list[Any]) -> None:
        """key, value, key, value … into the dict below"""
        target = self.stack[-1]
        if not isinstance(target, dict) or len(pairs) % 2:
            raise FormatError("the pickle is damaged: what is filled is no dict")
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            if not is_plain(key):
                raise FormatError(f"a key is a {type(key).__name__}, not a text or a number")
            target[key] = value

    def name(self) -> None:
        name, module = self.pop(), self.pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise FormatError("the pickle is damaged: a name is no text")
        self.stack.append(self.builder.named(f"{module}.{name}"))

    def call(self) -> None:
        args, callee = self.pop(), self.pop()
        if not isinstance(callee, Call) or not isinstance(args, tuple) or isinstance(args, Call):
            raise FormatError("the pickle is damaged: what is called is no name")
        self.hand(args)
        self.stack.append(self.builder.called(callee.name, args))

    def hand(self, args: Any) -> None:
        """Calls may copy what they are given: a long text in the memo must not be given often."""
        if isinstance(args, tuple):
            self.handed += sum(len(one) for one in args if isinstance(one, COPIED))
        if self.handed > MOST_HANDED * (self.place or 0) + SMALL:
            raise FormatError("the pickle makes more of its parts than an honest one would")

    def new_object(self) -> None:
        self.drop()
        kind = self.pop()
        if not isinstance(kind, Call):
            raise_object("no known kind")
        self.stack.append(self.builder.created(kind.name))

    def build(self) -> None:
        """State for the object below: a dict's attributes, as PyTorch's versions, are left out."""
        state, target = self.pop(), self.stack[-1]
        if isinstance(target, Unfinished):
            self.hand(state)
            self.stack[-1] = made = target.finished(state)
            self.memo.update(dict.fromkeys(target.numbers, made))
        elif not isinstance(target, dict):
            raise FormatError("the pickle sets the state of something that has none")

    def new_list(self, items: list[Any]) -> None:
        self.stack.append(items)

    def new_dict(self, pairs: list[Any]) -> None:
        self.stack.append({})
        self.fill(pairs)


def _global(machine: Machine, arg: str) -> None:
    module, _, name = arg.partition(" ")
    machine.stack.append(machine.builder.named(f"{module}.{name}"))


def raise_object(kind: str) -> NoReturn:
    raise FormatError(
        f"the file holds an object of {kind:.80}, which only its own code can read",
        hint="save what it holds instead: torch.save(model.state_dict(), path)",
    )


def is_plain(key: Any) -> bool:
    """Can this be a key? Hashing deep tuples would need as deep a stack."""
    if isinstance(key, tuple):
        return all(isinstance(one, (str, int, float, bytes)) for one in key)
    return key is None or isinstance(key, (str, int, float, bytes))


def _put(machine: Machine, number: int) -> None:
    machine.memo[number] = top = machine.stack[-1]
    if isinstance(top, Unfinished):
        top.numbers.append(number)


STEPS: dict[str, Callable[[Machine, Any], None]] = {
    "MARK": lambda m, _: m.stack.append(MARK),
    "POP": lambda m, _: m.drop(),
    "EMPTY_LIST": lambda m, _: m.new_list([]),
    "EMPTY_DICT": lambda m, _: m.new_dict([]),
    "LIST": lambda m, _: m.new_list(m.marked()),
    "DICT": lambda m, _: m.new_dict(m.marked()),
    "APPEND": lambda m, _: m.extend([m.pop()]),
    "APPENDS": lambda m, _: m.extend(m.marked()),
    "SETITEM": lambda m, _: m.fill([m.pop(), m.pop()][::-1]),
    "SETITEMS": lambda m, _: m.fill(m.marked()),
    "TUPLE": lambda m, _: m.stack.append(tuple(m.marked())),
    "TUPLE1": lambda m, _: m.together(1),
    "TUPLE2": lambda m, _: m.together(2),
    "TUPLE3": lambda m, _: m.together(3),
    "PUT": _put,
    "BINPUT": _put,
    "LONG_BINPUT": _put,
    "MEMOIZE": lambda m, _: _put(m, len(m.memo)),
    "GET": lambda m, number: m.stack.append(m.memo[number]),
    "BINGET": lambda m, number: m.stack.append(m.memo[number]),
    "LONG_BINGET": lambda m, number: m.stack.append(m.memo[number]),
    "GLOBAL": _global,
    "STACK_GLOBAL": lambda m, _: m.name(),
    "REDUCE": lambda m, _: m.call(),
    "NEWOBJ": lambda m, _: m.new_object(),
    "BUILD": lambda m, _: m.build(),
    "BINPERSID": lambda m, _: m.stack.append(m.builder.persistent(m.pop())),
}
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
VALUES = {
    "INT", "BININT", "BININT1", "BININT2", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "BINUNICODE",
    "SHORT_BINUNICODE", "BINUNICODE8", "UNICODE", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8",
    "SHORT_BINSTRING", "BINSTRING",
}  # fmt: skip
IGNORED = {"PROTO", "FRAME", "STOP"}
