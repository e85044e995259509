"""URL or key -> a file in the cache folder: downloads and stored results."""

from __future__ import annotations

import ast
import atexit
import functools
import getpass
import gzip
import hashlib
import os
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar, cast

from glassgrad.base.config import CACHELEVEL
from glassgrad.base.errors import DownloadError, FormatError
from glassgrad.base.folders import private_folder
from glassgrad.base.progress import tqdm

P = ParamSpec("P")
T = TypeVar("T")
CHUNK = 1 << 20


def temp(name: str, append_user: bool = False) -> str:
    """A path in the system's temporary folder."""
    full = f"{name}.{getpass.getuser()}" if append_user else name
    return str(Path(tempfile.gettempdir()) / full)


def fetch(
    url: str,
    name: Path | str | None = None,
    subdir: str | None = None,
    gunzip: bool = False,
    allow_caching: bool = True,
    headers: dict[str, str] | None = None,
    sha256: str | None = None,
    extract: bool = False,
) -> Path:
    """The file at a URL, downloaded once. A local path is returned unchanged.

    `gunzip` decompresses it, `extract` unpacks a tar archive and returns the folder, `sha256` is
    the expected hash of the bytes (before decompression), also for local paths and earlier
    downloads.
    """
    if url.startswith(("/", ".")):
        if sha256 is not None:
            _check_hash(url, _hash(Path(url)), sha256)
        return Path(url)
    target = _target_path(url, name, subdir, gunzip)
    if not allow_caching or not _is_downloaded(target, gunzip, sha256):
        _download(url, target, gunzip, headers or {}, sha256)
    return _extract(target) if extract else target


def _target_path(url: str, name: Path | str | None, subdir: str | None, gunzip: bool) -> Path:
    if name is not None and (isinstance(name, Path) or "/" in name):
        return Path(name)
    short = name or hashlib.sha256(url.encode()).hexdigest()[:32] + (".unzipped" if gunzip else "")
    return Path(_downloads()) / (subdir or "") / short


def _downloads() -> str:
    """The downloads folder: temporary, for this process, if others can write to the cache
    folder.
    """
    return private_folder("downloads", create=True) or _temporary_folder()


@functools.cache
def _temporary_folder() -> str:
    folder = tempfile.mkdtemp(prefix="glassgrad-downloads-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _download(
    url: str, target: Path, gunzip: bool, headers: dict[str, str], sha256: str | None
) -> None:
    """Downloads to a temporary name first, so that an incomplete file is never used."""
    target.parent.mkdir(parents=True, exist_ok=True)
    request = urllib.request.Request(url, headers={"User-Agent": "glassgrad", **headers})
    handle, part = tempfile.mkstemp(dir=target.parent, prefix=".part-")
    try:
        with os.fdopen(handle, "wb") as out:
            found = _stream_to_file(request, out, url)
        if sha256 is not None:
            _check_hash(url, found, sha256)
        if gunzip:
            _gunzip(part)
        Path(part).replace(target)
        shutil.rmtree(_folder(target), ignore_errors=True)  # extracted from an earlier archive
        if gunzip:
            _hash_file(target).write_text(found)
    finally:
        Path(part).unlink(missing_ok=True)


def _is_downloaded(target: Path, gunzip: bool, sha256: str | None) -> bool:
    """True if the file exists and has this hash. For decompressed files the hash is in a file
    beside it.
    """
    if not target.is_file() or sha256 is None:
        return target.is_file()
    if not gunzip:
        return _hash(target) == sha256.lower()
    noted = _hash_file(target)
    return noted.is_file() and noted.read_text() == sha256.lower()


def _hash_file(target: Path) -> Path:
    return target.with_name(f"{target.name}.sha256")


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_hash(url: str, found: str, wanted: str) -> None:
    if found != wanted.lower():
        raise FormatError(
            f"{url} has the SHA-256 hash {found}, not {wanted}", "the file has changed"
        )


def _stream_to_file(request: urllib.request.Request, out: object, url: str) -> str:
    """Write the response to a file; returns its hash."""
    digest = hashlib.sha256()
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            size = int(response.headers.get("Content-Length") or 0)
            desc = url.rsplit("/", 1)[-1]
            bar: tqdm[int] = tqdm(total=size, unit="B", unit_scale=True, desc=desc, rate=10)
            with bar:
                got = 0
                while chunk := response.read(CHUNK):
                    out.write(chunk)  # type: ignore[attr-defined]
                    digest.update(chunk)
                    got += len(chunk)
                    bar.update(len(chunk))
            if got < size:  # a broken connection looks like the end of the file
                raise DownloadError(f"cannot fetch {url}: it ended after {got:,} of {size:,} bytes")
    except (urllib.error.URLError, OSError) as error:
        raise DownloadError(f"cannot fetch {url}: {error}", "is the machine online?") from None
    return digest.hexdigest()


def _gunzip(path: str) -> None:
    plain = f"{path}.plain"
    with gzip.open(path, "rb") as packed, Path(plain).open("wb") as out:
        shutil.copyfileobj(packed, out)
    Path(plain).replace(path)


def _folder(archive: Path) -> Path:
    return archive.with_name(f"{archive.name}.extracted")


def _extract(archive: Path) -> Path:
    folder = _folder(archive)
    if not folder.is_dir():
        part = Path(tempfile.mkdtemp(dir=archive.parent, prefix=".part-"))
        with tarfile.open(archive) as opened:
            opened.extractall(part, filter="data")
        try:
            part.rename(folder)
        except OSError:  # another process extracted it first
            shutil.rmtree(part, ignore_errors=True)
    return folder


# ---------------------------------------------------------------------- stored results


def diskcache(function: Callable[P, T]) -> Callable[P, T]:
    """Store results on disk, by function name and arguments.

    Only plain values are stored (numbers, text, bytes, and lists, tuples, sets and dicts of them),
    as text, so reading them runs no code. Other results are computed each time.
    """

    @functools.wraps(function)
    def cached(*args: P.args, **kwargs: P.kwargs) -> T:
        if CACHELEVEL < 1:
            return function(*args, **kwargs)
        key = repr((function.__module__, function.__qualname__, args, sorted(kwargs.items())))
        folder = _results()
        if folder is None:
            return function(*args, **kwargs)
        path = Path(folder) / hashlib.sha256(key.encode()).hexdigest()
        found, value = _read_result(path, key)
        if found:
            return cast(T, value)
        result = function(*args, **kwargs)
        _write_result(path, key, result)
        return result

    return cached


def _results() -> str | None:
    try:
        return private_folder("results", create=True)
    except OSError:
        return None


def _read_result(path: Path, key: str) -> tuple[bool, object]:
    try:
        kept_key, value = ast.literal_eval(path.read_text())
    except (OSError, ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False, None
    return kept_key == key, value


def _write_result(path: Path, key: str, value: object) -> None:
    text = repr((key, value))
    try:
        if ast.literal_eval(text) != (key, value):
            return
        handle, part = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "w") as out:
            out.write(text)
        Path(part).replace(path)
    except (OSError, ValueError, SyntaxError, RecursionError):  # not a plain value, or not writable
        return
