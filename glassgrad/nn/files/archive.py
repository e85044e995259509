"""zip and tar archives -> their files, as windows on the archive."""

from __future__ import annotations

import io
import tarfile
from os import PathLike
from zipfile import ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from glassgrad.base.dtype import dtypes
from glassgrad.base.errors import FormatError
from glassgrad.nn.files.error_paths import naming
from glassgrad.nn.files.mapped import Bytes, mapped, part, tensor
from glassgrad.tensor.tensor import Tensor

LOCAL = 30  # bytes of a zip file's header before each file, without the name
IS_ENCRYPTED = 1


@naming
def zip_extract(fn: Tensor | str | PathLike[str]) -> dict[str, Tensor]:
    """The bytes of every file of a zip archive that is not compressed."""
    raw = mapped(fn)
    return {entry.filename: _as_tensor(stored(raw, entry, True)) for entry in zip_entries(raw)}


@naming
def tar_extract(fn: Tensor | str | PathLike[str]) -> dict[str, Tensor]:
    """The bytes of every file of a tar archive."""
    raw = mapped(fn)
    found = {}
    try:
        with tarfile.open(fileobj=_Stream(raw), mode="r:") as archive:
            for member in archive:
                if member.isfile() and not member.issparse():
                    place = part(raw, member.offset_data, member.size, member.name[:60])
                    found[member.name] = _as_tensor(place)
    except (tarfile.TarError, ValueError, OverflowError, EOFError, OSError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"this is no tar archive: {error}") from None
    return found


def zip_entries(raw: Bytes) -> list[ZipInfo]:
    """What an archive says it holds."""
    try:
        with ZipFile(_Stream(raw)) as archive:
            everything = archive.infolist()
    except (BadZipFile, ValueError, OverflowError, NotImplementedError, OSError) as error:
        raise FormatError(f"this is no zip archive: {error}") from None
    entries = [entry for entry in everything if not entry.filename.endswith("/")]
    if len({entry.filename for entry in entries}) != len(entries):
        raise FormatError("a file's name stands twice in this archive")
    return entries


def stored(raw: Bytes, entry: ZipInfo, must_be_plain: bool = False) -> Bytes:
    """The bytes of one file as they lie in the archive."""
    name = entry.filename[:60]
    if entry.flag_bits & IS_ENCRYPTED or (must_be_plain and entry.compress_type != ZIP_STORED):
        raise FormatError(f"{name} is compressed or encrypted", hint="unpack the archive first")
    header = part(raw, entry.header_offset, LOCAL, f"the header of {name}").tobytes()
    if header[:4] != b"PK\x03\x04":
        raise FormatError(f"{name} does not lie where the archive says")
    names = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    if entry.compress_type == ZIP_STORED and entry.compress_size != entry.file_size:
        raise FormatError(f"{name} has two sizes")
    return part(raw, entry.header_offset + LOCAL + names, entry.compress_size, name)


def _as_tensor(raw: Bytes) -> Tensor:
    return tensor(raw, dtypes.uint8, (len(raw),))


class _Stream(io.RawIOBase):
    """Bytes as a file that is read in small pieces: no copy of all of it."""

    def __init__(self, raw: Bytes) -> None:
        self.raw, self.place = raw, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.place

    def seek(self, offset: int, whence: int = 0) -> int:
        base = {0: 0, 1: self.place, 2: len(self.raw)}[whence]
        if base + offset < 0:
            raise ValueError("a place before the beginning")
        self.place = base + offset
        return self.place

    def read(self, size: int = -1) -> bytes:
        end = len(self.raw) if size < 0 else min(self.place + size, len(self.raw))
        found = self.raw[self.place : end].tobytes() if self.place < end else b""
        self.place += len(found)
        return found
