"""The page is one self-contained file."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode
from html.parser import HTMLParser

import numpy as np

from glassgrad import Tensor
from glassgrad.viz.page import compress_text, page_of
from glassgrad.viz.recording import record

VOID = {"meta", "link", "input", "br"}


class Reader(HTMLParser):
    """Checks that elements close in order; collects scripts by type."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.scripts: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag, attrs) -> None:
        self.addresses += [value for name, value in attrs if name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data


def page(title: str = "a title") -> tuple[str, Reader]:
    x = Tensor(np.ones((32, 32), np.float32)).realize()
    with record() as seen:
        (x @ x).softmax().realize()
    text = page_of(seen, title)
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert not reader.open
    return text, reader


def test_the_page_parses_and_fetches_nothing() -> None:
    text, reader = page()
    assert len(reader.scripts) == 2
    assert reader.addresses == ["data:,"]
    for word in ("http:", "https:", "@import", "fetch(", "/*DATA*/", "/*STYLE*/", "/*SCRIPT*/"):
        assert word not in text.replace("http://www.w3.org/2000/svg", "")


def test_names_that_look_like_markup_stay_text() -> None:
    nasty = "</script><script>alert(1)</script><!--"
    _, reader = page(nasty)
    assert len(reader.scripts) == 2
    assert json.loads(reader.scripts[0])["title"] == nasty
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert word not in reader.scripts[1]


def test_every_stage_of_every_kernel_is_in_the_page() -> None:
    _, reader = page()
    data = json.loads(reader.scripts[0])
    assert {kernel["code"] for kernel in data["graphs"][0]["kernels"]} == set(
        range(len(data["codes"]))
    )
    for code in data["codes"]:
        texts = {
            stage: zlib.decompress(b64decode(t)).decode() for stage, t in code["texts"].items()
        }
        assert set(texts) == {"kernel", "nest", "program", "source", "machine"}
        assert "data0[" in texts["kernel"]
        assert f'@"{code["name"]}"' in texts["source"]
        assert f"{code['name']}:" in texts["machine"]
        assert "RANGE" in texts["program"] or "STORE" in texts["program"]
        assert code["name"] == "_".join([code["name"][0], *[str(size) for size, _ in code["axes"]]])
        assert code["runs"] == 1


def test_compressed_text_round_trips() -> None:
    text = "définir <&> \n" * 50
    assert zlib.decompress(b64decode(compress_text(text))).decode() == text
