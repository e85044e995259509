"""__array_interface__, __cuda_array_interface__ <-> MemoryView, for objects without a better way.

NumPy arrays come as buffers (bridge_buffer.py).
"""

from __future__ import annotations

from math import prod
from typing import Any

from glassgrad.memory.errors import RefusedError
from glassgrad.memory.item import Component, single_number
from glassgrad.memory.layout import Ints
from glassgrad.memory.memory_view import MemoryView

LETTERS = {
    "b1": "?", "i1": "b", "i2": "h", "i4": "i", "i8": "q", "u1": "B", "u2": "H", "u4": "I",
    "u8": "Q", "f2": "e", "f4": "f", "f8": "d", "f16": "g", "c8": "Zf", "c16": "Zd", "c32": "Zg",
}  # fmt: skip
BY_KIND = {  # (format letter, size) -> typestr
    **{(letter, size): f"i{size}" for letter in "bhilqn" for size in (1, 2, 4, 8)},
    **{(letter, size): f"u{size}" for letter in "BHILQNP" for size in (1, 2, 4, 8)},
    ("?", 1): "b1", ("e", 2): "f2", ("f", 4): "f4", ("d", 8): "f8", ("g", 16): "f16",
    ("Zf", 8): "c8", ("Zd", 16): "c16", ("Zg", 32): "c32", ("c", 1): "S1",
}  # fmt: skip


def get(obj: Any, flags: int) -> MemoryView:
    """Read whichever of the two dictionaries the object has."""
    device, name = "CUDA", "__cuda_array_interface__"
    if getattr(obj, name, None) is None:
        device, name = "CPU", "__array_interface__"
    try:
        entry = getattr(obj, name)
        shape = tuple([size.__index__() for size in entry["shape"]])
        fmt = format_of(entry["typestr"], entry.get("descr"))
        size = size_of(entry["typestr"])
        steps = entry.get("strides")
        strides = None if steps is None else tuple([step.__index__() for step in steps])
        return _to_view(obj, entry, device, fmt, size, shape, strides)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise RefusedError(f"{type(obj).__name__} has an invalid {name}: {error!r}") from None


def _to_view(
    obj: Any, entry: Any, device: str, fmt: str, size: int, shape: Ints, strides: Ints | None
) -> MemoryView:
    data = entry.get("data")
    inner = None
    if isinstance(data, tuple):
        address, readonly = int(data[0] or 0), bool(data[1])
    else:  # no address: `data` or the object itself exports a buffer
        from glassgrad.memory.hub import get as get_any

        inner = get_any(obj if data is None else data, 0)
        address, readonly = inner.data + int(entry.get("offset", 0)), inner.readonly
    return MemoryView(
        obj,
        address,
        prod(shape) * size,
        readonly=readonly,
        format=fmt,
        item_size=size,
        shape=shape,
        strides=strides,
        private_data=(entry, inner),
        device=device,
        release=release_view,
    )


def release_view(view: MemoryView) -> None:
    _, inner = view.private_data
    if inner is not None:
        inner.release()


# ---------------------------------------------------------------------- types and formats


def size_of(typestr: str) -> int:
    """The bytes of a typestr; those of times have a unit after them, as in "<M8[s]"."""
    size = int(typestr[2:].partition("[")[0])
    return 4 * size if typestr[1] == "U" else size


def format_of(typestr: str, descr: Any = None) -> str:
    """The format of a typestr such as "<f4"; records have their fields in `descr`.

    >>> format_of("<i2"), format_of(">f8"), format_of("|S5"), format_of("<U3")
    ('<h', '>d', '5s', '<3w')
    """
    order, kind, size = typestr[0], typestr[1], int(typestr[2:].partition("[")[0])
    if kind == "V" and descr and not (len(descr) == 1 and descr[0][0] == ""):
        return "T{" + "".join([_field(*entry) for entry in descr]) + "}"
    sign = order if order in "<>" else ""
    if kind in "SVOtmM" or typestr[1:] not in LETTERS:
        return f"{sign}{size}w" if kind == "U" else f"{size}s"
    return sign + LETTERS[typestr[1:]]


def _field(name: Any, kind: Any, shape: Any = ()) -> str:
    """The format of a field; an unnamed void field is padding."""
    if isinstance(name, tuple):  # (title, name)
        name = name[1]
    sizes = shape if isinstance(shape, tuple) else (shape,)
    prefix = f"({','.join(map(str, sizes))})" if sizes else ""
    if isinstance(kind, list):
        return f"={prefix}T{{" + "".join([_field(*entry) for entry in kind]) + f"}}:{name}:"
    if not name and kind[1] == "V":
        return f"{kind[2:]}x"
    inner = format_of(kind)
    inner = inner if inner[0] in "<>" else f"={inner}"
    return f"{inner[0]}{prefix}{inner[1:]}:{name}:"


def interface_of(view: MemoryView) -> dict[str, Any]:
    """The dictionary that NumPy reads."""
    if view.sub_offsets is not None:
        raise RefusedError("NumPy has no sub-offsets (rows behind pointers)", hint="copy it first")
    found = {
        "version": 3,
        "shape": view.shape,
        "typestr": f"|V{view.item_size}",
        "data": (view.data, view.readonly),
        "strides": None if view.is_row_major_contiguous() else view.strides,
    }
    part = single_number(view.item_desc) if view._dtype is None else None
    if part is not None and part.format != "T":
        found["typestr"] = typestr_of(part)
    elif view._dtype is None:
        fields = part.parts if part is not None else view.item_desc
        found["descr"] = list(descr_of(fields, view.item_size))
    return found


def typestr_of(part: Component) -> str:
    if part.format in ("s", "p"):
        return f"|S{part.size}" if part.format == "s" else f"|V{part.size}"
    order = "<" if part.is_little else ">"
    if part.format == "w":
        return f"{order}U{part.size // 4}"
    kind = BY_KIND.get((part.format, part.size))
    if kind is None:
        return f"|V{part.size}"
    return f"{'|' if part.size == 1 else order}{kind}"


def descr_of(parts: tuple[Component, ...], size: int) -> list[tuple[Any, ...]]:
    """Fields in order, with padding in gaps."""
    found: list[tuple[Any, ...]] = []
    offset = 0
    for number, part in enumerate(parts):
        if part.offset > offset:
            found.append(("", f"|V{part.offset - offset}"))
        kind: Any = typestr_of(part)
        if part.format == "T":
            kind = descr_of(part.parts, part.size)
        name = part.name or f"f{number}"
        shape = part.shape or ((part.repeat,) if part.repeat != 1 else ())
        found.append((name, kind, shape) if shape else (name, kind))
        offset = part.offset + part.size * part.repeat
    if size > offset:
        found.append(("", f"|V{size - offset}"))
    return found
