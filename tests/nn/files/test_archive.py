from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from glassgrad import Tensor
from glassgrad.base.errors import FormatError
from glassgrad.nn.files.archive import tar_extract, zip_extract

FILES = {"a.txt": b"hello", "folder/b": bytes(range(256)), "empty": b""}


def zip_archive(compression: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, contents in FILES.items():
            archive.writestr(name, contents)
    return out.getvalue()


def tar_archive() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, contents in FILES.items():
            info = tarfile.TarInfo(name)
            info.size = len(contents)
            archive.addfile(info, io.BytesIO(contents))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return out.getvalue()


def contents(found: dict[str, Tensor]) -> dict[str, bytes]:
    return {name: bytes(t.numpy().tobytes()) for name, t in found.items()}


def test_files_of_a_zip_archive_are_read(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(zip_archive())
    assert contents(zip_extract(tmp_path / "x.zip")) == FILES


def test_files_of_a_tar_archive_are_read_and_links_skipped() -> None:
    assert contents(tar_extract(Tensor(tar_archive()))) == FILES


def test_compressed_files_are_refused() -> None:
    with pytest.raises(FormatError, match=r"a\.txt is compressed or encrypted"):
        zip_extract(Tensor(zip_archive(zipfile.ZIP_DEFLATED)))


def test_a_size_past_the_end_is_refused() -> None:
    raw = zip_archive().replace((256).to_bytes(4, "little"), (1 << 20).to_bytes(4, "little"))
    with pytest.raises(FormatError, match="should be bytes"):
        zip_extract(Tensor(raw))


@pytest.mark.parametrize("read", [zip_extract, tar_extract])
def test_other_files_are_refused(read: object) -> None:
    with pytest.raises(FormatError, match=r"not a (zip|tar) archive"):
        read(Tensor(b"x" * 2000))


def test_duplicate_names_are_refused() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a", b"1")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("a", b"2")
    with pytest.raises(FormatError, match="same name"):
        zip_extract(Tensor(out.getvalue()))
