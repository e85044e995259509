"""A safe unpickler: lists, dicts, numbers and strings; names are resolved by a Builder.

Python's own unpickler imports and calls whatever a pickle names. Here a Builder decides what a name
stands for, and supports few. Memory is proportional to the length of the pickle.
"""

from __future__ import annotations

from collections.abc import Callable
from pickletools import genops
from typing import Any, NamedTuple, NoReturn, Protocol, cast

from glassgrad.base.errors import FormatError


class Call(NamedTuple):
    """A global name in a pickle, which may be called."""

    name: str


class Unfinished:
    """A result of a call whose state follows later in the pickle."""

    def __init__(self) -> None:
        self.memo_ids: list[int] = []  # memo entries to replace when it is finished

    def finished(self, state: Any) -> Any:
        """The object with this state."""
        raise NotImplementedError


class Builder(Protocol):
    """Builds the objects that a pickle names."""

    def persistent(self, description: Any) -> Any:
        """An object outside of the pickle, such as a storage."""

    def named(self, name: str) -> Any:
        """The object of a global name; usually a Call."""

    def called(self, name: str, args: tuple[Any, ...]) -> Any:
        """The result of calling this name."""

    def created(self, name: str) -> Any:
        """A new object of the class of this name."""


class File(Protocol):
    """A file that is read in sequence."""

    def read(self, size: int, /) -> bytes: ...

    def readline(self) -> bytes: ...

    def tell(self) -> int: ...


MARK = object()
# Exceptions that a damaged pickle can raise; the warning only where warnings are errors.
DAMAGE_ERRORS = (
    IndexError, KeyError, TypeError, AttributeError, ValueError, OverflowError, DeprecationWarning,
)  # fmt: skip
COPIED_TYPES = (str, bytes, list, dict)
MAX_COPY_RATIO = 4  # bytes and items in arguments of calls per byte of the pickle so far
FREE_COPIES = 1 << 16  # bytes and items that do not count


def unpickle(data: bytes | File, builder: Builder) -> Any:
    """The object in a pickle; a file is read up to the end of the pickle."""
    machine = Machine(builder)
    try:
        # genops needs only the methods of File.
        for opcode, arg, machine.position in genops(cast(Any, data)):
            step = OPCODES.get(opcode.name)
            if step is not None:
                step(machine, arg)
            elif opcode.name in CONSTANTS:
                machine.stack.append(CONSTANTS[opcode.name])
            elif opcode.name in VALUES:
                machine.stack.append(arg)
            elif opcode.name not in IGNORED:
                raise FormatError(f"unsupported opcode {opcode.name} in the pickle")
    except DAMAGE_ERRORS as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"the pickle is damaged: {error}") from None
    if len(machine.stack) != 1:
        raise FormatError("the pickle is damaged: it must leave one value on the stack")
    return machine.stack[0]


class Machine:
    """The pickle machine: a stack and a memo."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.position: int | None = 0  # in the pickle, in bytes
        self.copied = 0  # bytes and items in the arguments of all calls

    def pop_to_mark(self) -> list[Any]:
        """Pop the values above the topmost mark, and the mark."""
        index = len(self.stack) - 1
        while self.stack[index] is not MARK:
            index -= 1
            if index < 0:
                raise FormatError("the pickle is damaged: a mark is missing")
        values = self.stack[index + 1 :]
        del self.stack[index:]
        return values

    def pop(self) -> Any:
        found = self.stack.pop()
        if found is MARK:
            raise FormatError("the pickle is damaged: a value is missing")
        return found

    def drop(self) -> None:
        self.pop()

    def make_tuple(self, count: int) -> None:
        self.stack.append(tuple(reversed([self.pop() for _ in range(count)])))

    def extend(self, items: list[Any]) -> None:
        if not isinstance(self.stack[-1], list):
            raise FormatError("the pickle is damaged: only a list can be extended")
        self.stack[-1].extend(items)

    def set_items(self, pairs: list[Any]) -> None:
        """key, value, key, value … into the dict below"""
        target = self.stack[-1]
        if not isinstance(target, dict) or len(pairs) % 2:
            raise FormatError("the pickle is damaged: only a dict can have items set")
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            if not is_plain(key):
                raise FormatError(
                    f"a dict key is a {type(key).__name__}, not a string, number or tuple of them"
                )
            target[key] = value

    def push_global(self) -> None:
        name, module = self.pop(), self.pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise FormatError("the pickle is damaged: a global name is not a string")
        self.stack.append(self.builder.named(f"{module}.{name}"))

    def call(self) -> None:
        args, callee = self.pop(), self.pop()
        if not isinstance(callee, Call) or not isinstance(args, tuple) or isinstance(args, Call):
            raise FormatError("the pickle is damaged: only a global name can be called")
        self.count_copies(args)
        self.stack.append(self.builder.called(callee.name, args))

    def count_copies(self, args: Any) -> None:
        """Limit copies: calls may copy their arguments, and one long string may be passed often."""
        if isinstance(args, tuple):
            self.copied += sum(len(one) for one in args if isinstance(one, COPIED_TYPES))
        if self.copied > MAX_COPY_RATIO * (self.position or 0) + FREE_COPIES:
            raise FormatError("the pickle copies the same data too often")

    def new_object(self) -> None:
        self.drop()
        kind = self.pop()
        if not isinstance(kind, Call):
            raise_object("an unknown class")
        self.stack.append(self.builder.created(kind.name))

    def build(self) -> None:
        """Set the state of the object below; attributes of dicts are ignored."""
        state, target = self.pop(), self.stack[-1]
        if isinstance(target, Unfinished):
            self.count_copies(state)
            self.stack[-1] = finished = target.finished(state)
            self.memo.update(dict.fromkeys(target.memo_ids, finished))
        elif not isinstance(target, dict):
            raise FormatError("the pickle is damaged: it sets the state of an object that has none")

    def new_list(self, items: list[Any]) -> None:
        self.stack.append(items)

    def new_dict(self, pairs: list[Any]) -> None:
        self.stack.append({})
        self.set_items(pairs)


def _global(machine: Machine, arg: str) -> None:
    module, _, name = arg.partition(" ")
    machine.stack.append(machine.builder.named(f"{module}.{name}"))


def raise_object(name: str) -> NoReturn:
    raise FormatError(
        f"the file has an object of the class {name:.80}, which cannot be built without its code",
        hint="save the state instead: torch.save(model.state_dict(), path)",
    )


def is_plain(key: Any) -> bool:
    """True if it can be a dict key; nested tuples cannot, because hashing them is recursive."""
    if isinstance(key, tuple):
        return all(isinstance(one, (str, int, float, bytes)) for one in key)
    return key is None or isinstance(key, (str, int, float, bytes))


def _put(machine: Machine, memo_id: int) -> None:
    machine.memo[memo_id] = top = machine.stack[-1]
    if isinstance(top, Unfinished):
        top.memo_ids.append(memo_id)


OPCODES: dict[str, Callable[[Machine, Any], None]] = {
    "MARK": lambda m, _: m.stack.append(MARK),
    "POP": lambda m, _: m.drop(),
    "EMPTY_LIST": lambda m, _: m.new_list([]),
    "EMPTY_DICT": lambda m, _: m.new_dict([]),
    "LIST": lambda m, _: m.new_list(m.pop_to_mark()),
    "DICT": lambda m, _: m.new_dict(m.pop_to_mark()),
    "APPEND": lambda m, _: m.extend([m.pop()]),
    "APPENDS": lambda m, _: m.extend(m.pop_to_mark()),
    "SETITEM": lambda m, _: m.set_items([m.pop(), m.pop()][::-1]),
    "SETITEMS": lambda m, _: m.set_items(m.pop_to_mark()),
    "TUPLE": lambda m, _: m.stack.append(tuple(m.pop_to_mark())),
    "TUPLE1": lambda m, _: m.make_tuple(1),
    "TUPLE2": lambda m, _: m.make_tuple(2),
    "TUPLE3": lambda m, _: m.make_tuple(3),
    "PUT": _put,
    "BINPUT": _put,
    "LONG_BINPUT": _put,
    "MEMOIZE": lambda m, _: _put(m, len(m.memo)),
    "GET": lambda m, memo_id: m.stack.append(m.memo[memo_id]),
    "BINGET": lambda m, memo_id: m.stack.append(m.memo[memo_id]),
    "LONG_BINGET": lambda m, memo_id: m.stack.append(m.memo[memo_id]),
    "GLOBAL": _global,
    "STACK_GLOBAL": lambda m, _: m.push_global(),
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
