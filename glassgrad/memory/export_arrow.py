"""MemoryView -> Arrow C array: a row of numbers as a column, in two capsules.

The functions that release schema and column are machine code, made by LLVM when they are first
needed: see `capsules.py` for why, and for how what was released is found.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, NamedTuple

from glassgrad.memory.bridge_arrow import FORMATS, ArrowArray, ArrowSchema
from glassgrad.memory.capsules import Lent, allocate, offer
from glassgrad.memory.errors import RefusedError
from glassgrad.memory.export_buffer import hold
from glassgrad.memory.memory_view import MemoryView

LETTERS = {fmt: letter for letter, fmt in FORMATS.items()}
# Arrow wants `release` to be cleared, in whatever copy of the structure it is called with. The
# private data of a column is the address of the word that marks it.
TEXT = f"""
define void @release_array(ptr %array) {{
  %release = getelementptr i8, ptr %array, i64 {ArrowArray.release.offset}
  store ptr null, ptr %release
  %private = getelementptr i8, ptr %array, i64 {ArrowArray.private_data.offset}
  %mark = load ptr, ptr %private
  store atomic i64 1, ptr %mark release, align 8
  ret void
}}

define void @release_schema(ptr %schema) {{
  %release = getelementptr i8, ptr %schema, i64 {ArrowSchema.release.offset}
  store ptr null, ptr %release
  ret void
}}
"""


class Releases(NamedTuple):
    """Addresses of functions."""

    array: int
    schema: int


@cache
def releases() -> Releases:
    """Made once and never unloaded: consumers may call them late."""
    try:
        import llvmlite.binding as llvm
    except ImportError as error:
        raise RefusedError("Arrow columns need llvmlite", hint="pip install llvmlite") from error
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    linker = llvm.create_lljit_compiler()
    builder: Any = llvm.JITLibraryBuilder().add_ir(TEXT)
    for name in ("release_array", "release_schema"):
        builder.export_symbol(name)
    library = builder.link(linker, "releases")
    for forever in (linker, library):
        hold(forever)
    return Releases(library["release_array"], library["release_schema"])


class Schema(ctypes.Structure):
    """A schema, and the letter that it points at."""

    _fields_ = (("schema", ArrowSchema), ("letter", ctypes.c_char * 2))


class Column(ctypes.Structure):
    """An array, and what it needs as long as a consumer has it."""

    _fields_ = (
        ("array", ArrowArray),
        ("buffers", ctypes.c_void_p * 2),
        ("mark", ctypes.c_int64),
    )


class LentColumn(Lent):
    """Whoever takes a column clears `release` of this one, and marks it when done."""

    __slots__ = ()

    def is_taken(self, capsule: Any) -> bool:
        return not Column.from_address(self.address).array.release

    def is_done(self) -> bool:
        return bool(Column.from_address(self.address).mark)


class LentSchema(Lent):
    """Whoever takes a schema needs nothing more of us; it goes with its capsule."""

    __slots__ = ()

    def is_taken(self, capsule: Any) -> bool:
        return False

    def is_done(self) -> bool:
        return False


def export(view: MemoryView) -> tuple[Any, Any]:
    """The capsules of schema and array. Arrow knows nothing of strides or axes."""
    if view.ndim != 1 or not view.is_row_major_contiguous():
        raise RefusedError(
            f"a column has one axis without gaps, not shape {view.shape} and strides "
            f"{view.strides}",
            hint="reshape or copy it first",
        )
    dtype = view.dtype
    if dtype is None or dtype.format not in LETTERS:
        raise RefusedError(f"Arrow cannot look at items of format {view.format!r}")
    release = releases()
    schema = LentSchema(_schema(LETTERS[str(dtype.format)], release.schema), None)
    column = LentColumn(_column(view, release.array), view)
    return offer(schema, b"arrow_schema"), offer(column, b"arrow_array")


def _schema(letter: bytes, release: int) -> int:
    address: int = allocate(ctypes.sizeof(Schema))
    made: Any = Schema.from_address(address)
    made.letter = letter
    text = address + Schema.letter.offset  # and an empty name behind it
    made.schema = ArrowSchema(text, text + 1, None, 0, 0, None, None, release, None)
    return address


def _column(view: MemoryView, release: int) -> int:
    address: int = allocate(ctypes.sizeof(Column))
    made: Any = Column.from_address(address)
    made.buffers[:] = (None, view.data)
    made.mark = 0
    buffers, mark = address + Column.buffers.offset, address + Column.mark.offset
    made.array = ArrowArray(view.shape[0], 0, 0, 2, 0, buffers, None, None, release, mark)
    return address
