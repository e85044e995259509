"""NumPy's .npy and .npz files -> tensors: arrays as windows on the file; no pickles."""

from __future__ import annotations

import ast
import zlib
from math import prod
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipInfo

import numpy as np

from glassgrad.base.errors import DTypeError, FormatError
from glassgrad.nn.files.archive import stored, zip_entries
from glassgrad.nn.files.atomic import written_whole
from glassgrad.nn.files.error_paths import naming
from glassgrad.nn.files.mapped import Bytes, are_sizes, mapped, part
from glassgrad.tensor.tensor import Tensor

MAGIC = b"\x93NUMPY"
LONGEST_HEADER = 10_000
LARGEST_UNPACKED = 1 << 32  # bytes of one array that was compressed
KINDS = "biuf"


class Header(NamedTuple):
    """What stands before the elements."""

    dtype: np.dtype[Any]
    is_fortran: bool
    shape: tuple[int, ...]
    length: int  # of the header, in bytes


@naming
def npy_load(fn: Tensor | str | PathLike[str]) -> Tensor:
    """The array of a .npy file."""
    return _array(mapped(fn), "the array")


@naming
def npz_load(fn: Tensor | str | PathLike[str]) -> dict[str, Tensor]:
    """The arrays of a .npz file, by name."""
    raw = mapped(fn)
    found = {}
    for entry in zip_entries(raw):
        name = entry.filename.removesuffix(".npy")
        found[name] = _array(_contents(raw, entry), name)
    return found


def npy_save(x: Tensor, fn: str | PathLike[str]) -> None:
    """Write one array."""
    if x.dtype.format is None:
        raise FormatError(
            f"NumPy has no {x.dtype.name} to write", hint="x.float(), or nn.state.safe_save"
        )
    array = np.ascontiguousarray(x.numpy())
    head = {"descr": array.dtype.str, "fortran_order": False, "shape": x.numpy().shape}
    text = repr(head).encode()
    text += b" " * (-(len(MAGIC) + 5 + len(text)) % 64) + b"\n"
    start = MAGIC + b"\x01\x00" + len(text).to_bytes(2, "little")
    written_whole(Path(fn), [start, text, array.tobytes()])


def _header(raw: Bytes, what: str) -> Header:
    start = part(raw, 0, 10, f"the header of {what}").tobytes()
    if start[:6] != MAGIC or start[6] not in (1, 2, 3):
        raise FormatError(f"{what} is no .npy file: it does not begin as one")
    size = 2 if start[6] == 1 else 4
    length = int.from_bytes(part(raw, 8, size, "a length").tobytes(), "little")
    if length > LONGEST_HEADER:
        raise FormatError(f"the header of {what} is said to have {length} bytes")
    text = part(raw, 8 + size, length, f"the header of {what}").tobytes()
    try:
        found = ast.literal_eval(text.decode("latin1").strip())
        descr, is_fortran, shape = (found[key] for key in ("descr", "fortran_order", "shape"))
        dtype = np.dtype(descr) if isinstance(descr, str) else None
    except (ValueError, SyntaxError, TypeError, KeyError, RecursionError, MemoryError):
        raise FormatError(f"the header of {what} cannot be read: {text!r:.60}") from None
    if dtype is None or dtype.kind not in KINDS or dtype.itemsize > 8:
        raise FormatError(f"{what} holds {descr!r:.40}, and only numbers can be read")
    if not isinstance(shape, tuple) or not are_sizes(shape) or type(is_fortran) is not bool:
        raise FormatError(f"{what} has a shape that is none: {shape!r:.40}")
    return Header(dtype, is_fortran, shape, 8 + size + length)


def _array(raw: Bytes, what: str) -> Tensor:
    dtype, is_fortran, shape, length = _header(raw, what)
    elements = part(raw, length, prod(shape) * dtype.itemsize, what)
    if elements.ctypes.data % dtype.itemsize:
        elements = elements.copy()
    array = elements.view(dtype).reshape(shape, order="F" if is_fortran else "C")
    if not array.size:
        array = np.zeros(shape, dtype)
    try:
        if not array.dtype.isnative:
            return Tensor(array, requires_grad=False)
        return Tensor.from_memory(array).is_param_(is_param=False)
    except DTypeError as error:
        raise FormatError(f"{what} cannot be a tensor: {error.message}") from None


def _contents(raw: Bytes, entry: ZipInfo) -> Bytes:
    """A file of an archive, unpacked if need be."""
    packed = stored(raw, entry)
    if entry.compress_type == ZIP_STORED:
        return packed
    if entry.compress_type != ZIP_DEFLATED or entry.file_size > LARGEST_UNPACKED:
        raise FormatError(
            f"{entry.filename:.60} is packed in a way that is not read, or too large",
            hint="unpack the archive first",
        )
    unpack = zlib.decompressobj(-zlib.MAX_WBITS)
    try:  # no more than was announced, however much the packed bytes would give
        found = unpack.decompress(packed.tobytes(), entry.file_size + 1)
    except zlib.error as error:
        raise FormatError(f"{entry.filename:.60} is damaged: {error}") from None
    if len(found) != entry.file_size:
        raise FormatError(f"{entry.filename:.60} has another size than is said")
    return np.frombuffer(found, np.uint8)
