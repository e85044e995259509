"""Downloads and stored results, from files and from a local server."""

import gzip
import hashlib
import io
import socket
import tarfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest

from glassgrad.base.config import Context
from glassgrad.base.errors import CacheWarning, DownloadError, FormatError
from glassgrad.base.files import diskcache, fetch, temp
from glassgrad.base.folders import IS_PRIVATE


@pytest.fixture(autouse=True)
def cache(tmp_path):
    with Context(CACHE=str(tmp_path / "cache")):
        yield tmp_path / "cache"


@pytest.fixture
def served(tmp_path):
    path = tmp_path / "served"
    path.write_bytes(b"weights")
    return path


def leftovers(cache):
    return [path for path in cache.rglob("*") if path.name.startswith(".part-")]


def test_a_file_is_fetched_once(served, cache):
    first = fetch(served.as_uri())
    assert first.read_bytes() == b"weights"
    served.write_bytes(b"changed")
    assert fetch(served.as_uri()) == first
    assert first.read_bytes() == b"weights"
    assert fetch(served.as_uri(), allow_caching=False).read_bytes() == b"changed"
    assert not leftovers(cache)


def test_names_and_folders_are_used(served, cache):
    assert fetch(served.as_uri(), name="w", subdir="models") == cache / "downloads" / "models" / "w"
    assert fetch(served.as_uri(), name=cache / "here").read_bytes() == b"weights"


def test_paths_are_returned_as_they_are(served):
    assert fetch(str(served)) == served


def test_a_wrong_hash_is_refused_and_nothing_is_stored(served, cache):
    with pytest.raises(FormatError, match="has the SHA-256 hash"):
        fetch(served.as_uri(), sha256="0" * 64)
    assert not [path for path in cache.rglob("*") if path.is_file()]
    assert fetch(served.as_uri(), sha256=hashlib.sha256(b"weights").hexdigest().upper()).exists()


@pytest.mark.parametrize("gunzip", [False, True])
def test_a_file_that_was_fetched_before_is_checked_as_well(tmp_path, gunzip):
    served, old, new = tmp_path / "w", *(gzip.compress(text, mtime=0) for text in (b"old", b"new"))
    served.write_bytes(old)
    first = fetch(served.as_uri(), gunzip=gunzip)
    assert fetch(served.as_uri(), gunzip=gunzip, sha256=hashlib.sha256(old).hexdigest()) == first
    with pytest.raises(FormatError, match="has the SHA-256 hash"):
        fetch(served.as_uri(), gunzip=gunzip, sha256=hashlib.sha256(new).hexdigest())
    served.write_bytes(new)
    found = fetch(served.as_uri(), gunzip=gunzip, sha256=hashlib.sha256(new).hexdigest())
    assert found.read_bytes() == (b"new" if gunzip else new)


def test_a_path_is_checked_as_well(served):
    assert fetch(str(served), sha256=hashlib.sha256(b"weights").hexdigest()) == served
    with pytest.raises(FormatError, match="has the SHA-256 hash"):
        fetch(str(served), sha256="0" * 64)


def test_a_missing_file_is_a_clear_error(tmp_path, cache):
    with pytest.raises(DownloadError, match="cannot fetch file:"):
        fetch((tmp_path / "absent").as_uri())
    assert not leftovers(cache)


def test_compressed_files_are_unpacked(tmp_path):
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(b"plain"))
    assert fetch(packed.as_uri(), gunzip=True).read_bytes() == b"plain"
    assert fetch(packed.as_uri()).read_bytes() == packed.read_bytes()


def make_tar(path, name):
    with tarfile.open(path, "w") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = 2
        archive.addfile(entry, io.BytesIO(b"hi"))


class Served(BaseHTTPRequestHandler):
    """Weights, weights behind another address, half of the weights, and nothing."""

    asked: ClassVar[list[str]] = []

    def do_GET(self):
        self.asked.append(self.headers["User-Agent"])
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/weights")
            self.end_headers()
            return
        body = b"weights" * 1000
        self.send_response(404 if self.path == "/nothing" else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if self.path == "/half" else body)

    def log_message(self, format, *args):
        pass


@pytest.fixture
def address():
    with ThreadingHTTPServer(("127.0.0.1", 0), Served) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        Served.asked.clear()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_files_come_over_http_once_with_their_hash_checked(address, cache):
    digest = hashlib.sha256(b"weights" * 1000).hexdigest()
    path = fetch(f"{address}/weights", sha256=digest)
    assert path.read_bytes() == b"weights" * 1000
    assert fetch(f"{address}/weights", sha256=digest) == path
    assert Served.asked == ["glassgrad"]
    assert fetch(f"{address}/moved", sha256=digest).read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("path", "sha256", "message"),
    [
        ("/half", None, "it ended after 3,500 of 7,000 bytes"),
        ("/nothing", None, "404"),
        ("/weights", "0" * 64, "has the SHA-256 hash"),
    ],
)
def test_failed_downloads_leave_no_files(address, cache, path, sha256, message):
    with pytest.raises((DownloadError, FormatError), match=message):
        fetch(f"{address}{path}", sha256=sha256)
    assert not [found for found in cache.rglob("*") if found.is_file()]


def test_a_server_that_does_not_answer_is_a_clear_error(cache):
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(DownloadError, match="is the machine online"):
            fetch(f"http://127.0.0.1:{taken.getsockname()[1]}/weights")


def test_archives_are_extracted(tmp_path):
    make_tar(tmp_path / "a.tar", "inner/file")
    folder = fetch((tmp_path / "a.tar").as_uri(), extract=True)
    assert (folder / "inner" / "file").read_bytes() == b"hi"
    assert fetch((tmp_path / "a.tar").as_uri(), extract=True) == folder


def test_archives_cannot_write_outside_of_the_folder(tmp_path):
    make_tar(tmp_path / "a.tar", "../../escaped")
    with pytest.raises(tarfile.OutsideDestinationError):
        fetch((tmp_path / "a.tar").as_uri(), extract=True)
    assert not list(tmp_path.rglob("escaped"))


def test_results_are_stored_between_calls(cache):
    calls = []

    @diskcache
    def square(number, *, offset=0):
        calls.append(number)
        return {"value": [number * number + offset], "bytes": b"x"}

    assert square(3) == square(3) == {"value": [9], "bytes": b"x"}
    assert square(3, offset=1)["value"] == [10]
    assert calls == [3, 3]
    with Context(CACHELEVEL=0):
        square(3)
    assert calls == [3, 3, 3]


def test_damaged_results_are_computed_again(cache):
    calls = []

    @diskcache
    def one():
        calls.append(1)
        return 1

    one()
    for path in (cache / "results").iterdir():
        path.write_text("__import__('os')")
    assert one() == 1
    assert one() == 1
    assert calls == [1, 1]


def test_results_that_are_not_plain_are_not_stored(cache):
    calls = []

    @diskcache
    def thing():
        calls.append(1)
        return object()

    thing()
    thing()
    assert calls == [1, 1]


def test_temporary_paths():
    assert Path(temp("file")).name == "file"
    assert Path(temp("file", append_user=True)).name.startswith("file.")


def test_a_stored_download_is_checked_again(served):
    digest = hashlib.sha256(b"weights").hexdigest()
    path = fetch(served.as_uri(), sha256=digest)
    path.write_bytes(b"poison!")
    assert fetch(served.as_uri(), sha256=digest).read_bytes() == b"weights"


def test_downloads_of_a_shared_cache_folder_are_not_used(served, cache):
    IS_PRIVATE.clear()
    path = fetch(served.as_uri())
    cache.chmod(0o777)
    IS_PRIVATE.clear()
    with pytest.warns(CacheWarning):
        other = fetch(served.as_uri())
    assert cache not in other.parents
    assert other.read_bytes() == path.read_bytes()
    IS_PRIVATE.clear()
