"""MemoryView -> Arrow C array: a one-dimensional view as a column, in two capsules.

The functions that release schema and column are machine code, compiled by LLVM on first use;
`capsules.py` says why, and how released columns are found.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, NamedTuple

from glassgrad.memory.bridge_arrow import FORMATS, ArrowArray, ArrowSchema
from glassgrad.memory.capsules import ExportedStructure, allocate, make_capsule
from glassgrad.memory.errors import RefusedError
from glassgrad.memory.export_buffer import incref
from glassgrad.memory.memory_view import MemoryView

LETTERS = {fmt: letter for letter, fmt in FORMATS.items()}
# Arrow requires that `release` is cleared in the copy of the structure that it is called with. The
# private data of a column is the address of its mark.
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
    """Addresses of the release functions."""

    array: int
    schema: int


@cache
def releases() -> Releases:
    """Compiled once and never unloaded: consumers may call them late."""
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
        incref(forever)
    return Releases(library["release_array"], library["release_schema"])


class Schema(ctypes.Structure):
    """A schema, and the format letter that it points to."""

    _fields_ = (("schema", ArrowSchema), ("letter", ctypes.c_char * 2))


class Column(ctypes.Structure):
    """An array, and the memory that it needs while a consumer uses it."""

    _fields_ = (
        ("array", ArrowArray),
        ("buffers", ctypes.c_void_p * 2),
        ("mark", ctypes.c_int64),
    )


class ExportedColumn(ExportedStructure):
    """A consumer clears `release` when it takes a column, and marks it when it is done."""

    __slots__ = ()

    def is_taken(self, capsule: Any) -> bool:
        return not Column.from_address(self.address).array.release

    def is_done(self) -> bool:
        return bool(Column.from_address(self.address).mark)


class ExportedSchema(ExportedStructure):
    """A consumer copies a schema, so it is freed with its capsule."""

    __slots__ = ()

    def is_taken(self, capsule: Any) -> bool:
        return False

    def is_done(self) -> bool:
        return False


def export(view: MemoryView) -> tuple[Any, Any]:
    """The capsules of schema and array. Arrow has no strides and no axes."""
    if view.ndim != 1 or not view.is_row_major_contiguous():
        raise RefusedError(
            f"an Arrow column has one contiguous axis, not shape {view.shape} and strides "
            f"{view.strides}",
            hint="reshape or copy it first",
        )
    dtype = view.dtype
    if dtype is None or dtype.format not in LETTERS:
        raise RefusedError(f"Arrow has no type for items of format {view.format!r}")
    release = releases()
    schema = ExportedSchema(_schema(LETTERS[str(dtype.format)], release.schema), None)
    column = ExportedColumn(_column(view, release.array), view)
    return make_capsule(schema, b"arrow_schema"), make_capsule(column, b"arrow_array")


def _schema(letter: bytes, release: int) -> int:
    address: int = allocate(ctypes.sizeof(Schema))
    structure: Any = Schema.from_address(address)
    structure.letter = letter
    text = address + Schema.letter.offset  # followed by an empty name
    structure.schema = ArrowSchema(text, text + 1, None, 0, 0, None, None, release, None)
    return address


def _column(view: MemoryView, release: int) -> int:
    address: int = allocate(ctypes.sizeof(Column))
    structure: Any = Column.from_address(address)
    structure.buffers[:] = (None, view.data)
    structure.mark = 0
    buffers, mark = address + Column.buffers.offset, address + Column.mark.offset
    structure.array = ArrowArray(view.shape[0], 0, 0, 2, 0, buffers, None, None, release, mark)
    return address
