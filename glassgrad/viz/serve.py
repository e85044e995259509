"""Serves a page on localhost until Ctrl-C."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOST = "127.0.0.1"  # not reachable from other machines


def server_of(page: str, port: int = 0) -> ThreadingHTTPServer:
    """A server for the page; port 0 chooses a free one."""
    body = page.encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_page = self.path.split("?")[0] == "/"
            self.send_response(200 if is_page else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body) if is_page else 0))
            self.end_headers()
            if is_page:
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    return ThreadingHTTPServer((HOST, port), Handler)
