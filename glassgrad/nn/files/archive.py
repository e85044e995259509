"""zip and tar archives -> their files, as views of the archive."""

from __future__ import annotations

import io
import tarfile
from os import PathLike
from zipfile import ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from glassgrad.base.dtype import dtypes
from glassgrad.base.errors import FormatError
from glassgrad.nn.files.error_paths import path_in_errors
from glassgrad.nn.files.mapped import Bytes, checked_slice, map_file, tensor_view
from glassgrad.tensor.tensor import Tensor

LOCAL_HEADER_BYTES = 30  # of a zip file before the content of each file, without the name
ENCRYPTED_FLAG = 1


@path_in_errors
def zip_extract(fn: Tensor | str | PathLike[str]) -> dict[str, Tensor]:
    """The bytes of every file of an uncompressed zip archive."""
    raw = map_file(fn)
    return {entry.filename: _as_tensor(entry_bytes(raw, entry, True)) for entry in zip_entries(raw)}


@path_in_errors
def tar_extract(fn: Tensor | str | PathLike[str]) -> dict[str, Tensor]:
    """The bytes of every file of a tar archive."""
    raw = map_file(fn)
    found = {}
    try:
        with tarfile.open(fileobj=_Stream(raw), mode="r:") as archive:
            for member in archive:
                if member.isfile() and not member.issparse():
                    content = checked_slice(raw, member.offset_data, member.size, member.name[:60])
                    found[member.name] = _as_tensor(content)
    except (tarfile.TarError, ValueError, OverflowError, EOFError, OSError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"not a tar archive: {error}") from None
    return found


def zip_entries(raw: Bytes) -> list[ZipInfo]:
    """The directory of a zip archive, without folders."""
    try:
        with ZipFile(_Stream(raw)) as archive:
            everything = archive.infolist()
    except (BadZipFile, ValueError, OverflowError, NotImplementedError, OSError) as error:
        raise FormatError(f"not a zip archive: {error}") from None
    entries = [entry for entry in everything if not entry.filename.endswith("/")]
    if len({entry.filename for entry in entries}) != len(entries):
        raise FormatError("two files of the archive have the same name")
    return entries


def entry_bytes(raw: Bytes, entry: ZipInfo, must_be_stored: bool = False) -> Bytes:
    """The bytes of one file, compressed if they are in the archive."""
    name = entry.filename[:60]
    if entry.flag_bits & ENCRYPTED_FLAG or (must_be_stored and entry.compress_type != ZIP_STORED):
        raise FormatError(f"{name} is compressed or encrypted", hint="unpack the archive first")
    header = checked_slice(
        raw, entry.header_offset, LOCAL_HEADER_BYTES, f"the header of {name}"
    ).tobytes()
    if header[:4] != b"PK\x03\x04":
        raise FormatError(f"there is no file header at the offset of {name} in the archive")
    variable = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    if entry.compress_type == ZIP_STORED and entry.compress_size != entry.file_size:
        raise FormatError(f"{name} is not compressed, but has two different sizes")
    return checked_slice(
        raw, entry.header_offset + LOCAL_HEADER_BYTES + variable, entry.compress_size, name
    )


def _as_tensor(raw: Bytes) -> Tensor:
    return tensor_view(raw, dtypes.uint8, (len(raw),))


class _Stream(io.RawIOBase):
    """A file object that reads mapped bytes, copying only what is read."""

    def __init__(self, raw: Bytes) -> None:
        self.raw, self.position = raw, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.position

    def seek(self, offset: int, whence: int = 0) -> int:
        base = {0: 0, 1: self.position, 2: len(self.raw)}[whence]
        if base + offset < 0:
            raise ValueError("the position is before the start of the file")
        self.position = base + offset
        return self.position

    def read(self, size: int = -1) -> bytes:
        end = len(self.raw) if size < 0 else min(self.position + size, len(self.raw))
        found = self.raw[self.position : end].tobytes() if self.position < end else b""
        self.position += len(found)
        return found
