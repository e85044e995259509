"""A manifest and parts <-> one file: verified as a whole when read, and mapped instead of copied.

    MAGIC   sha256 of the manifest   its length   manifest (JSON)   parts, each on a 64-byte line

The manifest has the offsets and hashes of the parts.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from glassgrad.base.errors import FormatError

FORMAT = 2  # of the manifest; another one is refused
MAGIC = b"glassgrad export %d\n" % FORMAT
HEAD_BYTES = len(MAGIC) + 32 + 8
LINE_BYTES = 64


class Bundle(NamedTuple):
    """The contents of a file. Writes to the parts stay private to this process."""

    manifest: dict[str, Any]
    parts: dict[str, memoryview]


def write_bundle(
    path: Path, manifest: dict[str, Any], parts: Mapping[str, bytes | memoryview]
) -> None:
    """Write a temporary file and rename it, so that an existing file is always complete."""
    rows, at = {}, 0
    for name, part in parts.items():
        rows[name] = (at, len(part), sha256(part).hexdigest())
        at += -(-len(part) // LINE_BYTES) * LINE_BYTES
    text = json.dumps(manifest | {"parts": rows}).encode()
    text += b" " * (-(HEAD_BYTES + len(text)) % LINE_BYTES)
    temporary = path.with_name(f".{path.name}-{os.urandom(4).hex()}")
    try:
        with temporary.open("wb") as file:
            file.write(MAGIC + sha256(text).digest() + len(text).to_bytes(8, "little") + text)
            for part in parts.values():
                file.write(part)
                file.write(bytes(-len(part) % LINE_BYTES))
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read_bundle(path: Path) -> Bundle:
    """The file, mapped into memory; raises FormatError if a single byte differs from what was
    written.
    """
    with path.open("rb") as file:
        found = file.read(len(MAGIC))
        if found != MAGIC:
            is_other = found.startswith(MAGIC.rpartition(b" ")[0])
            what = "was exported by another version of glassgrad" if is_other else "is no export"
            raise FormatError(
                f"{path} {what}", hint="write it again with glassgrad.export(function, path)"
            )
        mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    start = HEAD_BYTES + int.from_bytes(mapped[HEAD_BYTES - 8 : HEAD_BYTES], "little")
    text = bytes(mapped[HEAD_BYTES:start])
    if sha256(text).digest() != mapped[len(MAGIC) : HEAD_BYTES - 8]:
        raise _damaged(path)
    manifest = json.loads(text)
    parts = {}
    for name, (at, nbytes, digest) in manifest.pop("parts").items():
        part = mapped[start + at : start + at + nbytes]
        if sha256(part).hexdigest() != digest:
            raise _damaged(path)
        parts[name] = part
    return Bundle(manifest, parts)


def _damaged(path: Path) -> FormatError:
    return FormatError(f"{path} is damaged: its checksum does not match", hint="export it again")
