"""NumPy's .npy and .npz files <-> tensors that view the file; no pickles are read."""

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
from glassgrad.nn.files.archive import entry_bytes, zip_entries
from glassgrad.nn.files.atomic import write_atomically
from glassgrad.nn.files.error_paths import path_in_errors
from glassgrad.nn.files.mapped import Bytes, are_valid_sizes, checked_slice, map_file
from glassgrad.tensor.tensor import Tensor

MAGIC = b"\x93NUMPY"
MAX_HEADER_BYTES = 10_000
MAX_UNPACKED_BYTES = 1 << 32  # of one compressed array
KINDS = "biuf"  # NumPy dtype kinds: bool, int, unsigned int, float


class Header(NamedTuple):
    """The header before the elements."""

    dtype: np.dtype[Any]
    is_fortran: bool
    shape: tuple[int, ...]
    start: int  # of the elements, in bytes


@path_in_errors
def npy_load(fn: Tensor | str | PathLike[str]) -> Tensor:
    """The array of a .npy file."""
    return _array(map_file(fn), "the array")


@path_in_errors
def npz_load(fn: Tensor | str | PathLike[str]) -> dict[str, Tensor]:
    """The arrays of a .npz file, by name."""
    raw = map_file(fn)
    found = {}
    for entry in zip_entries(raw):
        name = entry.filename.removesuffix(".npy")
        found[name] = _array(_content(raw, entry), name)
    return found


def npy_save(x: Tensor, fn: str | PathLike[str]) -> None:
    """Write one array."""
    if x.dtype.format is None:
        raise FormatError(
            f"NumPy has no dtype {x.dtype.name}", hint="convert with x.float(), or use safe_save"
        )
    array = np.ascontiguousarray(x.numpy())
    header = {"descr": array.dtype.str, "fortran_order": False, "shape": x.numpy().shape}
    text = repr(header).encode()
    text += b" " * (-(len(MAGIC) + 5 + len(text)) % 64) + b"\n"
    preamble = MAGIC + b"\x01\x00" + len(text).to_bytes(2, "little")
    write_atomically(Path(fn), [preamble, text, array.tobytes()])


def _header(raw: Bytes, what: str) -> Header:
    start = checked_slice(raw, 0, 10, f"the header of {what}").tobytes()
    if start[:6] != MAGIC or start[6] not in (1, 2, 3):
        raise FormatError(f"{what} is not a .npy file: it does not start like one")
    size = 2 if start[6] == 1 else 4
    length = int.from_bytes(checked_slice(raw, 8, size, "a length").tobytes(), "little")
    if length > MAX_HEADER_BYTES:
        raise FormatError(
            f"the header of {what} has {length} bytes; at most {MAX_HEADER_BYTES} are allowed"
        )
    text = checked_slice(raw, 8 + size, length, f"the header of {what}").tobytes()
    try:
        found = ast.literal_eval(text.decode("latin1").strip())
        descr, is_fortran, shape = (found[key] for key in ("descr", "fortran_order", "shape"))
        dtype = np.dtype(descr) if isinstance(descr, str) else None
    except (ValueError, SyntaxError, TypeError, KeyError, RecursionError, MemoryError):
        raise FormatError(f"the header of {what} cannot be read: {text!r:.60}") from None
    if dtype is None or dtype.kind not in KINDS or dtype.itemsize > 8:
        raise FormatError(
            f"{what} has dtype {descr!r:.40}; only bools, ints and floats are supported"
        )
    if not isinstance(shape, tuple) or not are_valid_sizes(shape) or type(is_fortran) is not bool:
        raise FormatError(f"{what} has the invalid shape {shape!r:.40}")
    return Header(dtype, is_fortran, shape, 8 + size + length)


def _array(raw: Bytes, what: str) -> Tensor:
    dtype, is_fortran, shape, start = _header(raw, what)
    elements = checked_slice(raw, start, prod(shape) * dtype.itemsize, what)
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


def _content(raw: Bytes, entry: ZipInfo) -> Bytes:
    """A file of an archive, decompressed if necessary."""
    packed = entry_bytes(raw, entry)
    if entry.compress_type == ZIP_STORED:
        return packed
    if entry.compress_type != ZIP_DEFLATED or entry.file_size > MAX_UNPACKED_BYTES:
        raise FormatError(
            f"{entry.filename:.60} has an unsupported compression, or is too large",
            hint="unpack the archive first",
        )
    unpack = zlib.decompressobj(-zlib.MAX_WBITS)
    try:  # limit the output to the announced size
        found = unpack.decompress(packed.tobytes(), entry.file_size + 1)
    except zlib.error as error:
        raise FormatError(f"{entry.filename:.60} is damaged: {error}") from None
    if len(found) != entry.file_size:
        raise FormatError(f"{entry.filename:.60} does not decompress to {entry.file_size} bytes")
    return np.frombuffer(found, np.uint8)
