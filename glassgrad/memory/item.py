"""Bytes and components <-> Python values: the items of imported memory."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from ctypes import c_longdouble
from functools import lru_cache
from typing import Any

from glassgrad.base.errors import FormatError
from glassgrad.base.fast_dataclasses import frozen

SIGNED = {1: "b", 2: "h", 4: "i", 8: "q"}
FLOATS = frozenset("efd")
TEXT = {"u": "utf-16", "w": "utf-32"}


@frozen
class Component:
    """Part of an item: `repeat` values of a type, `size` bytes each, from `offset` on.

    `parts` are the fields of a record (format "T"), with offsets relative to the record. A part
    with a shape is one nested value; without a shape its values are separate.
    """

    format: str
    offset: int
    size: int
    repeat: int = 1
    is_little: bool = True
    name: str | None = None
    shape: tuple[int, ...] = ()
    parts: tuple[Component, ...] = ()


Raw = bytes | bytearray | memoryview


def extract_item(raw: Raw, components: Sequence[Component]) -> Any:
    r"""The value of an item: a single value, or a tuple with one for each component.

    >>> from glassgrad.memory.format import parse_format
    >>> extract_item(b"\x01\x00\x02\x03", parse_format("<hbb")[1])
    (1, 2, 3)
    """
    values = _extract(raw, components, 0)
    is_single = len(components) == 1 and (components[0].repeat == 1 or components[0].shape)
    return values[0] if is_single else tuple(values)


def _extract(raw: Raw, components: Sequence[Component], base: int) -> list[Any]:
    values: list[Any] = []
    for part in components:
        start = base + part.offset
        offsets = range(start, start + part.size * part.repeat, part.size or 1)
        found = [_decode(raw, part, offset) for offset in offsets]
        if not part.size:  # empty text
            found = [_decode(raw, part, start)] * part.repeat
        if part.shape:
            values.append(_nested(iter(found), part.shape))
        else:
            values.extend(found)
    return values


def _nested(values: Iterator[Any], shape: tuple[int, ...]) -> tuple[Any, ...]:
    if len(shape) == 1:
        return tuple([next(values) for _ in range(shape[0])])
    return tuple([_nested(values, shape[1:]) for _ in range(shape[0])])


def store_item(raw: Any, components: Sequence[Component], value: Any) -> None:
    """Write a value, as returned by `extract_item`, into an item's bytes."""
    is_single = len(components) == 1 and (components[0].repeat == 1 or components[0].shape)
    try:
        _store(raw, components, 0, [value] if is_single else list(value))
    except (struct.error, TypeError, AttributeError, OverflowError) as error:
        kinds = ", ".join(part.format for part in components)
        raise FormatError(f"{value!r} does not fit an item of type {kinds}: {error}") from None


def _store(raw: Any, components: Sequence[Component], base: int, values: list[Any]) -> None:
    wanted = sum(1 if part.shape else part.repeat for part in components)
    if len(values) != wanted:
        raise TypeError(f"{wanted} values are needed, {len(values)} were given")
    rest = iter(values)
    for part in components:
        if part.shape:
            found = list(_flat(next(rest), part.shape))
        else:
            found = [next(rest) for _ in range(part.repeat)]
        for number, value in enumerate(found):
            _encode(raw, part, base + part.offset + number * part.size, value)


def _flat(value: Any, shape: tuple[int, ...]) -> Iterator[Any]:
    if not shape:
        yield value
        return
    if len(value) != shape[0]:
        raise TypeError(f"{shape[0]} values are needed, {len(value)} were given")
    for item in value:
        yield from _flat(item, shape[1:])


# ---------------------------------------------------------------------- one value


@lru_cache(maxsize=256)
def plain(letters: str, size: int, is_little: bool) -> struct.Struct | None:
    """The struct that reads and writes single values of a type; None if there is none."""
    code = letters if letters in FLOATS or letters in "?c" else SIGNED.get(size, "")
    if letters in "BHILQNP&X":
        code = code.upper()
    elif letters not in "bhilqnefd?c":
        return None
    return struct.Struct(f"{'<' if is_little else '>'}{code}")


def _decode(raw: Raw, part: Component, offset: int) -> Any:
    reader = plain(part.format, part.size, part.is_little)
    if reader is not None:
        return reader.unpack_from(raw, offset)[0]
    if part.format == "T":
        return tuple(_extract(raw, part.parts, offset))
    if part.format not in DECODERS:
        raise FormatError(
            f"items of type {part.format!r} cannot be read", hint="item_pointer() gives the address"
        )
    return DECODERS[part.format](bytes(raw[offset : offset + part.size]), part)


def _encode(raw: Any, part: Component, offset: int, value: Any) -> None:
    writer = plain(part.format, part.size, part.is_little)
    if writer is not None:
        writer.pack_into(raw, offset, value)
    elif part.format == "T":
        _store(raw, part.parts, offset, list(value))
    elif part.format not in ENCODERS:
        raise FormatError(f"items of type {part.format!r} cannot be written")
    else:
        raw[offset : offset + part.size] = ENCODERS[part.format](value, part)


def _complex(raw: bytes, part: Component) -> complex:
    order = "<" if part.is_little else ">"
    return complex(*struct.unpack(f"{order}2{part.format[1]}", raw))


def _from_complex(value: complex, part: Component) -> bytes:
    order = "<" if part.is_little else ">"
    number = complex(value)
    return struct.pack(f"{order}2{part.format[1]}", number.real, number.imag)


def _is_native(part: Component) -> bool:
    return part.is_little == (struct.pack("=H", 1)[0] == 1)


def _long_double(raw: bytes, part: Component) -> float:
    return float(c_longdouble.from_buffer_copy(raw if _is_native(part) else raw[::-1]).value)


def _from_long_double(value: float, part: Component) -> bytes:
    raw = bytes(c_longdouble(value))
    return raw if _is_native(part) else raw[::-1]


def _long_complex(raw: bytes, part: Component) -> complex:
    half = len(raw) // 2
    return complex(_long_double(raw[:half], part), _long_double(raw[half:], part))


def _from_long_complex(value: complex, part: Component) -> bytes:
    number = complex(value)
    return _from_long_double(number.real, part) + _from_long_double(number.imag, part)


def _text(raw: bytes, part: Component) -> str:
    coding = f"{TEXT[part.format]}-{'le' if part.is_little else 'be'}"
    return raw.decode(coding).rstrip("\0")


def _from_text(value: str, part: Component) -> bytes:
    coding = f"{TEXT[part.format]}-{'le' if part.is_little else 'be'}"
    return _padded(value.encode(coding), part)


def _padded(raw: bytes, part: Component) -> bytes:
    if len(raw) > part.size:
        raise TypeError(f"{len(raw)} bytes do not fit into {part.size}")
    return raw.ljust(part.size, b"\0")


def _pascal(raw: bytes, part: Component) -> bytes:
    value: bytes = struct.unpack(f"{part.size}p", raw)[0]
    return value


DECODERS: dict[str, Callable[[bytes, Component], Any]] = {
    "s": lambda raw, part: raw,
    "p": _pascal,
    "u": _text,
    "w": _text,
    "g": _long_double,
    "Zf": _complex,
    "Zd": _complex,
    "Zg": _long_complex,
}
ENCODERS: dict[str, Callable[[Any, Component], bytes]] = {
    "s": lambda value, part: _padded(bytes(value), part),
    "p": lambda value, part: struct.pack(f"{part.size}p", value),
    "u": _from_text,
    "w": _from_text,
    "g": _from_long_double,
    "Zf": _from_complex,
    "Zd": _from_complex,
    "Zg": _from_long_complex,
}


def single_number(components: Sequence[Component]) -> Component | None:
    """The component of an item that is a single number; None for other items."""
    if len(components) != 1:
        return None
    part = components[0]
    return part if part.repeat == 1 and not part.shape and not part.offset else None


def end(components: Sequence[Component]) -> int:
    """The offset after the last value: the size of an item without tail padding."""
    return max((_end(part) for part in components), default=0)


def _end(part: Component) -> int:
    last = part.offset + part.size * (part.repeat - 1)
    return last + (end(part.parts) if part.format == "T" else part.size)
