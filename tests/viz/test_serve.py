"""The page is served on localhost."""

from __future__ import annotations

from threading import Thread
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from glassgrad.viz.serve import server_of


def test_the_page_is_served_on_this_machine_only_and_nothing_else_is() -> None:
    with server_of("<p>héllo</p>") as server:
        Thread(target=server.serve_forever, daemon=True).start()
        host, port = server.server_address[:2]
        assert host == "127.0.0.1"
        with urlopen(f"http://{host}:{port}/?x=1", timeout=10) as answer:
            assert answer.read().decode() == "<p>héllo</p>"
            assert "utf-8" in answer.headers["Content-Type"]
        with pytest.raises(HTTPError) as error:
            urlopen(f"http://{host}:{port}/etc/passwd", timeout=10)
        assert error.value.code == 404
        error.value.close()
        server.shutdown()
